"""A member of a consumer group: a value, replaced as a whole by the records about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import UUID

from klamm.coordinator.classic.member import SupportedProtocol
from klamm.coordinator.consumer.state import MemberState
from klamm.wire.messages.stored.consumer_group import (
    ClassicMemberMetadata,
    ClassicProtocol,
    TopicPartitions,
)

# The epochs of a heartbeat that is more than one.
JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2

# Partitions that belong to a member: topic, partition, and the epoch at which it got it.
Partitions: TypeAlias = Mapping[UUID, Mapping[int, int]]


@dataclass(frozen=True, slots=True)
class ClassicDetails:
    """What a member that speaks the classic protocol said in JoinGroup.

    Args:
        protocols: in the order of its preference; never empty.
    """

    session_timeout_ms: int
    protocols: tuple[SupportedProtocol, ...]

    @classmethod
    def from_stored(cls, stored: ClassicMemberMetadata) -> ClassicDetails:
        return cls(
            stored.session_timeout_ms,
            tuple(
                SupportedProtocol(each.name, each.metadata) for each in stored.supported_protocols
            ),
        )

    def stored(self) -> ClassicMemberMetadata:
        return ClassicMemberMetadata(
            session_timeout_ms=self.session_timeout_ms,
            supported_protocols=[
                ClassicProtocol(name=each.name, metadata=each.metadata) for each in self.protocols
            ],
        )


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """The first half is what the member said, the second what the coordinator made of it.

    Args:
        instance_id: set for a static member, which keeps its place while it is away.
        subscribed_topic_regex: empty for none.
        classic: set for a member that speaks the classic protocol.
        member_epoch: the epoch of the target that the member has arrived at, or comes from while it
            has partitions to give up; LEAVE_STATIC_EPOCH while a static member is away.
        assigned: partitions that the member may use.
        pending_revocation: partitions that it must give up, and that nobody else gets until then.
    """

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str = ""
    server_assignor: str | None = None
    classic: ClassicDetails | None = None

    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Partitions = field(default_factory=dict)
    pending_revocation: Partitions = field(default_factory=dict)

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == epoch

    def owned_epoch(self, topic_id: UUID, partition: int) -> int | None:
        """The epoch at which the member got a partition that it still has."""
        for partitions in (self.assigned, self.pending_revocation):
            epoch = partitions.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None

    def owned(self) -> Iterable[tuple[UUID, int]]:
        """What nobody else may get."""
        for partitions in (self.assigned, self.pending_revocation):
            for topic_id, epochs in partitions.items():
                for partition in epochs:
                    yield topic_id, partition


def stored_partitions(partitions: Partitions) -> list[TopicPartitions]:
    return [
        TopicPartitions(
            topic_id=topic_id,
            partitions=sorted(epochs),
            assignment_epochs=[epochs[partition] for partition in sorted(epochs)],
        )
        for topic_id, epochs in sorted(partitions.items())
    ]


def partitions_from_stored(
    stored: Iterable[TopicPartitions], member_epoch: int
) -> dict[UUID, dict[int, int]]:
    """Brokers before 4.3 did not store epochs; the one of the member is safe then."""
    partitions: dict[UUID, dict[int, int]] = {}
    for topic in stored:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [max(member_epoch, 0)] * len(topic.partitions)
        partitions[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return partitions
