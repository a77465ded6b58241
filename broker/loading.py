"""Opening partitions as the metadata log says they exist: at start-up, and when they are made."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING
from uuid import UUID

from klamm.broker.config import ServerConfig, topic_log_config
from klamm.broker.groups.offsets_topic import OFFSETS_TOPIC, with_room_for_groups
from klamm.broker.metadata.image import NO_RECOVERY_CHANGE, RECOVERED
from klamm.broker.metadata.topics import METADATA_TOPIC
from klamm.broker.partition import Partition
from klamm.log.config import LogConfig
from klamm.log.errors import StorageError
from klamm.wire.messages.stored.metadata import PartitionChangeRecord

if TYPE_CHECKING:
    from klamm.broker.broker import Broker
    from klamm.broker.metadata.image import PartitionState, TopicState
    from klamm.log.partition_log import PartitionLog

logger = logging.getLogger(__name__)

# Kafka's own id of the metadata topic.
METADATA_TOPIC_ID = UUID(int=1)
# The metadata of a cluster is never dropped, and a batch of it is a whole change.
METADATA_LOG_CONFIG = LogConfig(max_message_bytes=64 * 1024 * 1024, retention_ms=-1)

PROGRESS_S = 5.0


def open_partitions(broker: Broker) -> None:
    """Open every partition; one that is damaged stays offline, and the others are served.

    After an unclean stop each partition gets a new leader epoch: what was acknowledged without
    a sync may be gone, and consumers that have read further find that out by the epoch (KIP-320).
    So do those that Apache Kafka has left without a leader, as it does when it stops.
    """
    image = broker.metadata.image
    elections = [
        _election(topic, state, broker.node_id)
        for topic in image.topics.values()
        for state in topic.partitions
        if not broker.logs.was_clean or not _is_led(state, broker.node_id)
    ]
    if elections:
        broker.metadata.append_and_replay(elections, broker.clock.now_ms())
    shown_at = time.monotonic()
    count = 0
    for topic in image.topics.values():
        for state in topic.partitions:
            open_partition(broker, topic, state)
            count += 1
            if time.monotonic() > shown_at + PROGRESS_S:
                shown_at = time.monotonic()
                logger.info("opened %d of %d partitions", count, image.partition_count)
    known = {
        (topic.name, state.index) for topic in image.topics.values() for state in topic.partitions
    }
    broker.logs.set_aside_strays(known | {(METADATA_TOPIC, 0)})


def _is_led(state: PartitionState, node_id: int) -> bool:
    return state.leader == node_id and state.isr == [node_id] and not state.leader_recovery_state


def _election(topic: TopicState, state: PartitionState, node_id: int) -> PartitionChangeRecord:
    """What makes the only replica the leader, and in sync with itself."""
    return PartitionChangeRecord(
        partition_id=state.index,
        topic_id=topic.topic_id,
        leader=node_id,
        isr=None if state.isr == [node_id] else [node_id],
        leader_recovery_state=RECOVERED if state.leader_recovery_state else NO_RECOVERY_CHANGE,
        eligible_leader_replicas=[] if state.eligible_leader_replicas else None,
        last_known_elr=[] if state.last_known_elr else None,
    )


def open_partition(broker: Broker, topic: TopicState, state: PartitionState) -> None:
    """Open or make the log of a partition and lead it; where the disk refuses, it is offline."""
    config = log_config(broker, topic.name)
    try:
        log = broker.logs.open_partition(
            topic.name, state.index, topic.topic_id, config, broker.clock.now_ms()
        )
    except (StorageError, OSError) as error:
        logger.error("partition %s-%d stays offline: %s", topic.name, state.index, error)
        broker.partitions.add_offline(topic.name, topic.topic_id, state.index)
        return
    configure_producers(log, broker.config)
    # This is the only replica: all that it has is committed.
    log.advance_high_watermark(log.log_end_offset)
    broker.partitions.add(Partition(log, topic.topic_id, state.leader_epoch))


def configure_producers(log: PartitionLog, server: ServerConfig) -> None:
    """What the broker, and not the topic, says of the producers of a log."""
    log.producers.producer_id_expiration_ms = server.producer_id_expiration_ms
    log.producers.verification_required = server.transaction_partition_verification_enable


def log_config(broker: Broker, topic: str) -> LogConfig:
    """What the logs of a topic have to obey."""
    config = topic_log_config(broker.config, broker.metadata.image.topic_configs(topic))
    return with_room_for_groups(config) if topic == OFFSETS_TOPIC else config
