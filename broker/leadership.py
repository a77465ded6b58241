"""The records by which the only replica of a partition begins or ceases to lead it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from klamm.broker.metadata.image import NO_LEADER, RECOVERED
from klamm.wire.messages.stored.metadata import PartitionChangeRecord

if TYPE_CHECKING:
    from klamm.broker.metadata.image import PartitionState, TopicState


def resignation(topic: TopicState, state: PartitionState) -> list[PartitionChangeRecord]:
    """Nobody leads a partition whose log is offline. As in Kafka the last leader is out of sync
    then, but eligible to lead again (KIP-966). Nothing where that is known already."""
    if state.leader == NO_LEADER:
        return []
    return [
        PartitionChangeRecord(
            partition_id=state.index,
            topic_id=topic.topic_id,
            leader=NO_LEADER,
            isr=[],
            eligible_leader_replicas=list(state.isr),
            last_known_elr=[state.leader],
        )
    ]


def succession(
    topic: TopicState, state: PartitionState, node_id: int, directory_id: UUID, *, was_clean: bool
) -> list[PartitionChangeRecord]:
    """What changes when a partition is led after a start: its leader, its epoch, its directory.

    After an unclean stop it gets a new epoch: what was acknowledged without a sync may be gone, and
    consumers that have read further find that out by the epoch (KIP-320). So does what was left
    without a leader: because its directory was offline, or by Apache Kafka, as it does when it
    stops.
    """
    record = PartitionChangeRecord(partition_id=state.index, topic_id=topic.topic_id)
    unchanged = PartitionChangeRecord(partition_id=state.index, topic_id=topic.topic_id)
    if not was_clean or not _is_led(state, node_id):
        record.leader = node_id
        record.isr = None if state.isr == [node_id] else [node_id]
        record.eligible_leader_replicas = [] if state.eligible_leader_replicas else None
        record.last_known_elr = [] if state.last_known_elr else None
        if state.leader_recovery_state:
            record.leader_recovery_state = RECOVERED
    if state.directories != [directory_id]:
        record.directories = [directory_id]
    return [] if record == unchanged else [record]


def _is_led(state: PartitionState, node_id: int) -> bool:
    return state.leader == node_id and state.isr == [node_id] and not state.leader_recovery_state
