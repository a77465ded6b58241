"""The topic `__consumer_offsets`: how it is made when the first group needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from klamm.broker.config import ServerConfig
from klamm.log.config import LogConfig

OFFSETS_TOPIC = "__consumer_offsets"
# The state of a group is one record, and what one request changes is one batch. The largest ones
# come from a request that fills `socket.request.max.bytes`. Kafka holds them to the 1 MiB of
# `max.message.bytes`, and so ends a classic group at some thousand members; that limit is for what
# clients write, and to this topic they write nothing.
BATCH_BYTES_MAX = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """What a topic of the broker's own is made with."""

    num_partitions: int
    replication_factor: int
    configs: Mapping[str, str]


def with_room_for_groups(config: LogConfig) -> LogConfig:
    """The settings of the topic's logs, which take larger batches than those of clients."""
    return replace(config, max_message_bytes=max(config.max_message_bytes, BATCH_BYTES_MAX))


def offsets_topic(config: ServerConfig, brokers: int) -> InternalTopic:
    """The topic as Kafka makes it, but on as many brokers as there are: groups just work."""
    return InternalTopic(
        config.offsets_topic_num_partitions,
        min(config.offsets_topic_replication_factor, brokers),
        {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.offsets_topic_segment_bytes),
        },
    )
