"""One valid request of every API that klamm serves, in all its versions, that changes nothing.

Where a request needs a topic it names one that does not exist, so that every broker can answer at
once and in a few bytes. What they are good for is being cut, stretched and damaged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from compat_tests.twin.batches import batch
from compat_tests.twin.codec import ZERO_UUID, Plain, encode_request, versions
from compat_tests.twin.conversation import Side
from compat_tests.twin.requests import (
    fetch,
    fetch_partition,
    list_offsets,
    offset_commit,
    offset_fetch,
    produce,
)

NOWHERE = "no-such-topic"
NOBODY = "no-such-group"
NO_ID = "no-such-transactional-id"
# Brokers give ids from 0 on: other tests may have got any small one.
NO_PRODUCER = 1 << 50

_SIDE = Side("nobody", 0)

SAMPLES: Mapping[str, Plain] = {
    "produce": produce(NOWHERE, batch())(_SIDE),
    "fetch": fetch({NOWHERE: [fetch_partition()]})(_SIDE),
    "list_offsets": list_offsets(NOWHERE, -1),
    # A name that can't be a topic's is not created on the way, either.
    "metadata": {"topics": [{"name": "a b"}], "allow_auto_topic_creation": False},
    "api_versions": {"client_software_name": "twin", "client_software_version": "1"},
    "create_topics": {
        "topics": [{"name": "a b", "num_partitions": 1, "replication_factor": 1}],
        "timeout": 1000,
        "validate_only": True,
    },
    "delete_topics": {
        "topics": [{"name": NOWHERE, "topic_id": ZERO_UUID}],
        "topic_names": [NOWHERE],
        "timeout": 1000,
    },
    "init_producer_id": {"transactional_id": "", "transaction_timeout": 1000},
    "offset_for_leader_epoch": {
        "replica_id": -1,
        "topics": [{"topic": NOWHERE, "partitions": [{"partition": 0, "leader_epoch": 0}]}],
    },
    "describe_configs": {
        "resources": [
            {"resource_type": 2, "resource_name": NOWHERE, "configuration_keys": ["retention.ms"]}
        ]
    },
    "alter_configs": {
        "resources": [
            {
                "resource_type": 2,
                "resource_name": NOWHERE,
                "configs": [{"name": "retention.ms", "value": "5"}],
            }
        ],
        "validate_only": True,
    },
    "incremental_alter_configs": {
        "resources": [
            {
                "resource_type": 2,
                "resource_name": NOWHERE,
                "configs": [{"name": "retention.ms", "config_operation": 0, "value": "5"}],
            }
        ],
        "validate_only": True,
    },
    "describe_log_dirs": {"topics": [{"topic": NOWHERE, "partitions": [0]}]},
    "describe_producers": {"topics": [{"name": NOWHERE, "partition_indexes": [0]}]},
    "alter_partition_reassignments": {
        "topics": [{"name": NOWHERE, "partitions": [{"partition_index": 0, "replicas": [1]}]}],
        "timeout": 1000,
    },
    "list_partition_reassignments": {"topics": [{"name": NOWHERE, "partition_indexes": [0]}]},
    "elect_leaders": {
        "topic_partitions": [{"topic": NOWHERE, "partitions": [0]}],
        "timeout": 1000,
    },
    "describe_quorum": {
        "topics": [{"topic_name": NOWHERE, "partitions": [{"partition_index": 0}]}]
    },
    "list_config_resources": {"resource_types": [16]},
    "update_features": {
        "feature_updates": [{"feature": "no such feature", "max_version_level": 1}],
        "timeout": 1000,
    },
    "alter_replica_log_dirs": {
        "dirs": [{"path": "/no/such/directory", "topics": [{"name": NOWHERE, "partitions": [0]}]}]
    },
    "create_partitions": {
        "topics": [{"name": NOWHERE, "count": 2, "assignments": None}],
        "timeout": 1000,
        "validate_only": True,
    },
    "describe_cluster": {"include_cluster_authorized_operations": False},
    "describe_topic_partitions": {"topics": [{"name": NOWHERE}]},
    "find_coordinator": {"key": "group", "key_type": 0, "coordinator_keys": ["group"]},
    "join_group": {
        "group_id": NOBODY,
        "session_timeout": 10_000,
        "rebalance_timeout": 10_000,
        "member_id": "nobody",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"x"}],
    },
    "sync_group": {
        "group_id": NOBODY,
        "generation_id": 1,
        "member_id": "nobody",
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignments": [{"member_id": "nobody", "assignment": b"x"}],
    },
    "heartbeat": {"group_id": NOBODY, "generation_id": 1, "member_id": "nobody"},
    "leave_group": {
        "group_id": NOBODY,
        "member_id": "nobody",
        "members": [{"member_id": "nobody"}],
    },
    "offset_commit": offset_commit(NOBODY, (NOWHERE, {0: 1}), member_id="nobody")(_SIDE),
    "offset_fetch": offset_fetch((NOBODY, {NOWHERE: [0]}))(_SIDE),
    "offset_delete": {
        "group_id": NOBODY,
        "topics": [{"name": NOWHERE, "partitions": [{"partition_index": 0}]}],
    },
    "describe_groups": {"groups": [NOBODY]},
    "list_groups": {"states_filter": ["Dead"], "types_filter": ["classic"]},
    "delete_groups": {"groups_names": [NOBODY]},
    "consumer_group_heartbeat": {
        "group_id": NOBODY,
        "member_id": "nobody",
        "member_epoch": 5,
        "subscribed_topic_names": [NOWHERE],
        "topic_partitions": [{"topic_id": ZERO_UUID, "partitions": [0]}],
    },
    "consumer_group_describe": {"group_ids": [NOBODY]},
    "add_partitions_to_txn": {
        "transactions": [
            {
                "transactional_id": NO_ID,
                "producer_id": NO_PRODUCER,
                "producer_epoch": 0,
                "verify_only": True,
                "topics": [{"name": NOWHERE, "partitions": [0]}],
            }
        ],
        "v3_and_below_transactional_id": NO_ID,
        "v3_and_below_producer_id": NO_PRODUCER,
        "v3_and_below_topics": [{"name": NOWHERE, "partitions": [0]}],
    },
    "add_offsets_to_txn": {
        "transactional_id": NO_ID,
        "producer_id": NO_PRODUCER,
        "group_id": NOBODY,
    },
    "end_txn": {"transactional_id": NO_ID, "producer_id": NO_PRODUCER, "committed": True},
    "write_txn_markers": {
        "markers": [
            {
                "producer_id": NO_PRODUCER,
                "producer_epoch": 0,
                "transaction_result": True,
                "topics": [{"name": NOWHERE, "partition_indexes": [0]}],
            }
        ]
    },
    "txn_offset_commit": {
        "transactional_id": NO_ID,
        "group_id": NOBODY,
        "producer_id": NO_PRODUCER,
        "generation_id": -1,
        "topics": [
            {
                "name": NOWHERE,
                "partitions": [
                    {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
                ],
            }
        ],
    },
    "describe_transactions": {"transactional_ids": [NO_ID]},
    "list_transactions": {"state_filters": ["Dead"], "producer_id_filters": [NO_PRODUCER]},
}

# (api, version) of everything that both brokers serve.
EVERY_REQUEST = [(api, version) for api in SAMPLES for version in versions(api)]
NEWEST_REQUESTS = [(api, versions(api)[-1]) for api in SAMPLES]


def sample_frame(api: str, version: int, correlation_id: int = 1) -> bytes:
    """The request of that version, header and body, without the length of the frame."""
    return encode_request(api, version, SAMPLES[api], correlation_id=correlation_id)


def body_start(api: str, version: int) -> int:
    """Where the body of a sample's frame begins: behind the header, whose size is known."""
    tags = 1 if is_flexible(api, version) else 0
    return 8 + 2 + len("twin") + tags


_FLEXIBLE_SINCE = {
    "produce": 9,
    "fetch": 12,
    "list_offsets": 6,
    "metadata": 9,
    "api_versions": 3,
    "create_topics": 5,
    "delete_topics": 4,
    "init_producer_id": 2,
    "describe_configs": 4,
    "alter_configs": 2,
    "incremental_alter_configs": 1,
    "describe_log_dirs": 2,
    "offset_for_leader_epoch": 4,
    "describe_producers": 0,
    "alter_partition_reassignments": 0,
    "list_partition_reassignments": 0,
    "elect_leaders": 2,
    "describe_quorum": 0,
    "list_config_resources": 0,
    "update_features": 0,
    "alter_replica_log_dirs": 2,
    "create_partitions": 2,
    "describe_cluster": 0,
    "describe_topic_partitions": 0,
    "find_coordinator": 3,
    "join_group": 6,
    "sync_group": 4,
    "heartbeat": 4,
    "leave_group": 4,
    "offset_commit": 8,
    "offset_fetch": 6,
    "offset_delete": 99,
    "describe_groups": 5,
    "list_groups": 3,
    "delete_groups": 2,
    "consumer_group_heartbeat": 0,
    "consumer_group_describe": 0,
    "add_partitions_to_txn": 3,
    "add_offsets_to_txn": 3,
    "end_txn": 3,
    "write_txn_markers": 1,
    "txn_offset_commit": 3,
    "describe_transactions": 0,
    "list_transactions": 0,
}


def is_flexible(api: str, version: int) -> bool:
    """Whether the version has compact lengths and tagged fields (KIP-482)."""
    return version >= _FLEXIBLE_SINCE[api]


class SampleArray(NamedTuple):
    """A list in a request: the request with that list empty, and where its length ends."""

    name: str
    frame: bytes
    position: int


def arrays_of(api: str, version: int) -> list[SampleArray]:
    """The lists of a sample that its version has, at its top and one level down.

    A list without items and one with an item differ first in their length, at its last byte.
    """
    found = []
    full = sample_frame(api, version)
    for name, emptied in _with_one_list_empty(SAMPLES[api]):
        frame = encode_request(api, version, emptied)
        if frame != full:
            pairs = enumerate(zip(frame, full, strict=False))
            position = next(at for at, (empty, held) in pairs if empty != held)
            found.append(SampleArray(name, frame, position))
    return found


def _with_one_list_empty(sample: Plain) -> Iterator[tuple[str, Plain]]:
    for field, value in sample.items():
        if not isinstance(value, list):
            continue
        yield field, {**sample, field: []}
        inner = value[0] if value and isinstance(value[0], dict) else {}
        for inner_field, inner_value in inner.items():
            if isinstance(inner_value, list):
                changed = {**inner, inner_field: []}
                yield f"{field}[].{inner_field}", {**sample, field: [changed]}


def with_length(array: SampleArray, length: int, *, flexible: bool) -> bytes:
    """The request whose empty list says that it has another length: -1 is null."""
    frame, position = array.frame, array.position
    if flexible:
        return frame[:position] + _unsigned_varint(length + 1) + frame[position + 1 :]
    return frame[: position - 3] + length.to_bytes(4, "big", signed=True) + frame[position + 1 :]


def _unsigned_varint(number: int) -> bytes:
    rest = number & 0xFFFFFFFF
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)
