"""Opening partitions as the metadata log says they exist: at start-up, and when they are made."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING
from uuid import UUID

from klamm.broker.config import ServerConfig, topic_log_config
from klamm.broker.groups.offsets_topic import OFFSETS_TOPIC, with_room_for_groups
from klamm.broker.leadership import resignation, succession
from klamm.broker.metadata.topics import METADATA_TOPIC
from klamm.broker.partition import Partition
from klamm.broker.steps import Stepwise
from klamm.log.config import LogConfig
from klamm.log.directories import UNASSIGNED
from klamm.log.errors import DuplicatePartitionError, StorageError
from klamm.log.work import run_inline

if TYPE_CHECKING:
    from klamm.broker.broker import Broker
    from klamm.broker.metadata.image import PartitionState, TopicState
    from klamm.log.partition_log import PartitionLog
    from klamm.wire.schema import Message

logger = logging.getLogger(__name__)

# Kafka's own id of the metadata topic.
METADATA_TOPIC_ID = UUID(int=1)
# The metadata of a cluster is never dropped, and a batch of it is a whole change.
METADATA_LOG_CONFIG = LogConfig(max_message_bytes=64 * 1024 * 1024, retention_ms=-1)

PROGRESS_S = 5.0


def open_partitions(broker: Broker) -> None:
    """Open every partition; one that is damaged or whose directory is offline stays offline, and
    the others are served.

    Raises:
        DuplicatePartitionError: nobody knows which of two copies is the right one.
    """
    image = broker.metadata.image
    shown_at = time.monotonic()
    opened: list[tuple[TopicState, PartitionState, PartitionLog | None]] = []
    for topic in image.topics.values():
        for state in topic.partitions:
            opened.append((topic, state, run_inline(open_log(broker, topic, state))))
            if time.monotonic() > shown_at + PROGRESS_S:
                shown_at = time.monotonic()
                logger.info("opened %d of %d partitions", len(opened), image.partition_count)
    changes: list[Message] = []
    for topic, state, log in opened:
        if log is None or log.is_offline:
            changes += resignation(topic, state)
        else:
            home = broker.logs.holder_of(log)
            changes += succession(
                *(topic, state, broker.node_id, home.directory_id), was_clean=home.was_clean
            )
    if changes:
        broker.metadata.append_and_replay(changes, broker.clock.now_ms())
    for topic, state, log in opened:
        lead_partition(broker, topic, state, log)
    known = {(topic.name, state.index) for topic, state, _ in opened}
    broker.logs.set_aside_strays(known | {(METADATA_TOPIC, 0)})
    broker.logs.note_boot()


def open_log(
    broker: Broker, topic: TopicState, state: PartitionState
) -> Stepwise[PartitionLog | None]:
    """Open or make the log of a partition; None where the disk refuses."""
    config = log_config(broker, topic.name)
    assigned = state.directories[0] if state.directories else UNASSIGNED
    try:
        log = yield from broker.logs.opening(
            topic.name, state.index, topic.topic_id, config, broker.clock.now_ms(), assigned
        )
    except DuplicatePartitionError:
        raise
    except (StorageError, OSError) as error:
        logger.error("partition %s-%d stays offline: %s", topic.name, state.index, error)
        return None
    configure_producers(log, broker.config)
    # This is the only replica: all that it has is committed.
    log.advance_high_watermark(log.log_end_offset)
    return log


def configure_producers(log: PartitionLog, server: ServerConfig) -> None:
    """What the broker, and not the topic, says of the producers of a log."""
    log.producers.producer_id_expiration_ms = server.producer_id_expiration_ms
    log.producers.verification_required = server.transaction_partition_verification_enable


def log_config(broker: Broker, topic: str) -> LogConfig:
    """What the logs of a topic have to obey."""
    config = topic_log_config(broker.config, broker.metadata.image.topic_configs(topic))
    return with_room_for_groups(config) if topic == OFFSETS_TOPIC else config


def lead_partition(
    broker: Broker, topic: TopicState, state: PartitionState, log: PartitionLog | None
) -> None:
    """Serve a partition, or say from now on that it is offline."""
    if log is None or log.is_offline:
        broker.partitions.add_offline(topic.name, topic.topic_id, state.index)
    else:
        broker.partitions.add(Partition(log, topic.topic_id, state.leader_epoch))
