"""The short list of what may differ between two correct brokers, in one place.

Everything else must be equal, or stand in `docs/deviations.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compat_tests.twin.comparison import Rule

CLOCK_TOLERANCE_MS = 30_000


def anything(_kafka: Any, _other: Any) -> bool:
    return True


def both_or_neither(kafka: Any, other: Any) -> bool:
    """Null on both sides or on none; the words of a message are each broker's own."""
    return (kafka is None) == (other is None)


def both_zero_or_neither(kafka: Any, other: Any) -> bool:
    return bool((kafka == 0) == (other == 0))


def same_sign(kafka: Any, other: Any) -> bool:
    """Both a real id, or both -1."""
    if isinstance(kafka, str) or isinstance(other, str):
        # The name of a producer, which both sides share.
        return bool(kafka == other)
    return bool((kafka < 0) == (other < 0))


def same_order_of_magnitude(kafka: Any, other: Any) -> bool:
    """Two readings of what changes meanwhile: the space that is left on one disk.

    Of a disk that is offline neither knows it.
    """
    if kafka < 0 or other < 0:
        return bool(kafka == other)
    return bool(kafka <= 2 * other and other <= 2 * kafka)


def same_items(kafka: Any, other: Any) -> bool:
    """The same in any order: Kafka keeps them in a hash set."""
    return sorted(kafka) == sorted(other)


def about_the_same_time(kafka: Any, other: Any) -> bool:
    """Both without a time, or two readings of the clock during one test."""
    if kafka is None or other is None:
        return kafka is other
    return bool(abs(kafka - other) <= CLOCK_TOLERANCE_MS)


# Fields by API: what each broker chooses for itself.
RULES: Mapping[str, Mapping[str, Rule]] = {
    "api_versions": {"finalized_features_epoch": same_sign},
    "metadata": {"cluster_id": both_or_neither, "brokers[].port": anything},
    "describe_cluster": {
        "cluster_id": both_or_neither,
        "brokers[].port": anything,
        "error_message": both_or_neither,
    },
    "create_topics": {"topics[].error_message": both_or_neither},
    "delete_topics": {"responses[].error_message": both_or_neither},
    "create_partitions": {"results[].error_message": both_or_neither},
    "alter_configs": {"responses[].error_message": both_or_neither},
    "incremental_alter_configs": {"responses[].error_message": both_or_neither},
    "describe_configs": {"results[].error_message": both_or_neither},
    "describe_log_dirs": {
        "results[].log_dir": anything,
        "results[].usable_bytes": same_order_of_magnitude,
    },
    "describe_producers": {"topics[].partitions[].error_message": both_or_neither},
    "alter_partition_reassignments": {"responses[].partitions[].error_message": both_or_neither},
    "elect_leaders": {
        "replica_election_results[].partition_result[].error_message": both_or_neither
    },
    "describe_quorum": {
        "topics[].partitions[].error_message": both_or_neither,
        "topics[].partitions[].leader_epoch": same_sign,
        "topics[].partitions[].high_watermark": both_zero_or_neither,
        "topics[].partitions[].current_voters[].replica_directory_id": anything,
        "topics[].partitions[].current_voters[].log_end_offset": both_zero_or_neither,
        "topics[].partitions[].current_voters[].last_fetch_timestamp": about_the_same_time,
        "topics[].partitions[].current_voters[].last_caught_up_timestamp": about_the_same_time,
        "nodes[].listeners[].port": anything,
    },
    "update_features": {"error_message": both_or_neither},
    "init_producer_id": {"producer_id": same_sign},
    "describe_transactions": {
        "transaction_states[].transaction_start_time": about_the_same_time,
        "transaction_states[].topics[].partitions": same_items,
    },
    "fetch": {"session_id": both_zero_or_neither, "node_endpoints[].port": anything},
    "consumer_group_heartbeat": {"assignment.topic_partitions[].partitions": same_items},
    "consumer_group_describe": {
        "groups[].members[].subscribed_topic_names": same_items,
        "groups[].members[].assignment.topic_partitions[].partitions": same_items,
        "groups[].members[].target_assignment.topic_partitions[].partitions": same_items,
    },
    "find_coordinator": {
        "port": anything,
        "coordinators[].port": anything,
        "error_message": both_or_neither,
        "coordinators[].error_message": both_or_neither,
    },
    "produce": {
        "responses[].partition_responses[].log_append_time": about_the_same_time,
        "responses[].partition_responses[].error_message": both_or_neither,
        "responses[].partition_responses[].record_errors[].batch_index_error_message": (
            both_or_neither
        ),
        "node_endpoints[].port": anything,
    },
}

# Lists whose order Kafka leaves to a hash map (or shuffles, as DeleteTopics does on purpose),
# with the field that names an item.
KEYED: Mapping[str, Mapping[str, str]] = {
    "api_versions": {
        "api_keys[]": "api_key",
        "supported_features[]": "name",
        "finalized_features[]": "name",
    },
    "metadata": {"topics[]": "name"},
    "create_topics": {"topics[]": "name", "topics[].configs[]": "name"},
    "add_partitions_to_txn": {
        "results_by_topic_v3_and_below[]": "name",
        "results_by_topic_v3_and_below[].results_by_partition[]": "partition_index",
        "results_by_transaction[]": "transactional_id",
        "results_by_transaction[].topic_results[]": "name",
        "results_by_transaction[].topic_results[].results_by_partition[]": "partition_index",
    },
    "describe_transactions": {"transaction_states[].topics[]": "topic"},
    "list_transactions": {"transaction_states[]": "transactional_id"},
    "write_txn_markers": {
        "markers[]": "producer_id",
        "markers[].topics[]": "name",
        "markers[].topics[].partitions[]": "partition_index",
    },
    "delete_records": {"topics[]": "name", "topics[].partitions[]": "partition_index"},
    "delete_topics": {"responses[]": "name"},
    "create_partitions": {"results[]": "name"},
    "describe_configs": {"results[].configs[]": "name"},
    "describe_log_dirs": {
        "results[].topics[]": "name",
        "results[].topics[].partitions[]": "partition_index",
    },
    "describe_producers": {"topics[].partitions[].active_producers[]": "producer_id"},
    "elect_leaders": {"replica_election_results[]": "topic"},
    "alter_replica_log_dirs": {
        "results[]": "topic_name",
        "results[].partitions[]": "partition_index",
    },
    "list_offsets": {"topics[]": "name", "topics[].partitions[]": "partition_index"},
    "fetch": {"logs[]": "log"},
    "produce": {
        "responses[]": "name or topic_id",
        "responses[].partition_responses[]": "index",
    },
    "join_group": {"members[]": "member_id"},
    "describe_groups": {"groups[]": "group_id", "groups[].members[]": "member_id"},
    "delete_groups": {"results[]": "group_id"},
    "list_groups": {"groups[]": "group_id"},
    "consumer_group_heartbeat": {"assignment.topic_partitions[]": "topic_id"},
    "consumer_group_describe": {
        "groups[]": "group_id",
        "groups[].members[]": "member_id",
        "groups[].members[].assignment.topic_partitions[]": "topic_name",
        "groups[].members[].target_assignment.topic_partitions[]": "topic_name",
    },
    "offset_fetch": {
        "topics[]": "name",
        "topics[].partitions[]": "partition_index",
        "groups[].topics[]": "name or topic_id",
        "groups[].topics[].partitions[]": "partition_index",
    },
    "offset_for_leader_epoch": {"topics[]": "topic", "topics[].partitions[]": "partition"},
}
