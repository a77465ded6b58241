"""The topic `__transaction_state`: how it is made when the first transaction needs it."""

from __future__ import annotations

from klamm.broker.config import ServerConfig
from klamm.broker.groups.offsets_topic import InternalTopic

TRANSACTION_STATE_TOPIC = "__transaction_state"


def transaction_state_topic(config: ServerConfig, brokers: int) -> InternalTopic:
    """The topic as Kafka makes it, but on as many brokers as there are: transactions just work."""
    return InternalTopic(
        config.transaction_state_log_num_partitions,
        min(config.transaction_state_log_replication_factor, brokers),
        {
            "unclean.leader.election.enable": "false",
            "compression.type": "uncompressed",
            "cleanup.policy": "compact",
            "min.insync.replicas": str(config.transaction_state_log_min_isr),
            "segment.bytes": str(config.transaction_state_log_segment_bytes),
        },
    )
