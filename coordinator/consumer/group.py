"""A consumer group: what the log holds of it, and what follows from that.

The stored half is changed by `replay` alone, record by record. Everything else follows from it, but
for a few notes that a restart forgets without harm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar
from uuid import UUID

from klamm.coordinator.assignor import Assignment
from klamm.coordinator.consumer import records
from klamm.coordinator.consumer.expressions import ResolvedExpression
from klamm.coordinator.consumer.member import ConsumerMember
from klamm.coordinator.consumer.state import ConsumerGroupState
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.group import PartitionCheck
from klamm.coordinator.ports import CoordinatorRecord
from klamm.wire.errors import ErrorCode

# Nobody stays at epoch 0, which means joining: a group begins with an empty target at epoch 1.
INITIAL_EPOCH = 1
NO_EPOCH = -1
# The first version of OffsetCommit that carries a member epoch.
MEMBER_EPOCH_VERSION = 9


@dataclass(slots=True)
class ConsumerGroup:
    """
    Args:
        group_epoch: grows whenever the target may have to change.
        metadata_hash: of the topics that are subscribed to, at the group epoch.
        assignment_epoch: the group epoch for which the target was computed.
        assignment_timestamp: wall time of that; 0 if it is not known.
        members: by member id, in the order in which they came.
        target: what each member shall have.
        expressions: what the subscribed expressions mean, as far as that is known.
        has_partition_metadata: a broker before 4.1 left a record that has to go.
        static_members: the member id that owns each instance id.
        owners: the member that has a partition, or has not given it up yet.
        expression_members: how many members subscribe to each expression.
        is_metadata_current: no topic has changed since the metadata hash was compared.
        awaited_joins: members of the classic protocol that were told to join again.
    """

    TYPE: ClassVar[str] = "consumer"

    group_id: str
    group_epoch: int = INITIAL_EPOCH
    metadata_hash: int = 0
    assignment_epoch: int = INITIAL_EPOCH
    assignment_timestamp: int = 0
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    target: dict[str, Assignment] = field(default_factory=dict)
    expressions: dict[str, ResolvedExpression] = field(default_factory=dict)
    has_partition_metadata: bool = False

    static_members: dict[str, str] = field(default_factory=dict)
    owners: dict[UUID, dict[int, str]] = field(default_factory=dict)
    expression_members: Counter[str] = field(default_factory=Counter)
    _subscribed_topics: frozenset[str] | None = field(default=None, compare=False)

    is_metadata_current: bool = field(default=False, compare=False)
    awaited_joins: set[str] = field(default_factory=set, compare=False)

    # What the parts that serve all kinds of groups ask: see coordinator/group.py.

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.group_epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(one.is_reconciled_to(self.assignment_epoch) for one in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def protocol_type(self) -> str:
        return "consumer"

    @property
    def is_empty(self) -> bool:
        return not self.members

    def is_subscribed_to(self, topic: str) -> bool:
        if self._subscribed_topics is None:
            self._subscribed_topics = self.subscribed_topics(self.members.values())
        return topic in self._subscribed_topics

    def check_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_or_epoch: int,
        *,
        is_transactional: bool,
        api_version: int,
    ) -> PartitionCheck | None:
        epoch = generation_or_epoch
        if epoch < 0 and not self.members:
            # An admin client, or a consumer that chooses its partitions itself.
            return None
        if is_transactional and epoch == -1 and not member_id and group_instance_id is None:
            # TxnOffsetCommit had neither member id nor epoch before version 3.
            return None
        member = self.member(member_id)
        if not is_transactional and not member.classic and api_version < MEMBER_EPOCH_VERSION:
            raise CoordinatorError(
                ErrorCode.UNSUPPORTED_VERSION,
                "OffsetCommit version 9 or above must be used by members using the consumer "
                "group protocol",
            )
        if epoch == member.member_epoch:
            return None
        if epoch > member.member_epoch:
            raise _wrong_epoch(
                member,
                f"Received {_epoch_word(member)} {epoch} is newer than current member epoch "
                f"{member.member_epoch}.",
            )
        return partial(_check_partition_commit, member, epoch)

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.member_epoch:
            raise _wrong_epoch(
                member,
                f"The received {_epoch_word(member)} {member_epoch} does not match the expected "
                f"member epoch {member.member_epoch}.",
            )

    def check_offset_delete(self) -> None:
        """Offsets of topics that nobody subscribes to may go at any time."""

    def check_deletion(self) -> None:
        if self.members:
            raise CoordinatorError(ErrorCode.NON_EMPTY_GROUP)

    def offsets_expire_after_ms(self, retention_ms: int) -> Callable[[int], int] | None:
        return lambda commit_timestamp: commit_timestamp + retention_ms

    def tombstones(self) -> Sequence[CoordinatorRecord]:
        return self.tombstones_of(self.members)

    def tombstones_of(self, member_ids: Collection[str]) -> list[CoordinatorRecord]:
        """The records that remove the group, given the ids that its members have had."""
        group_id = self.group_id
        return [
            *(records.current_assignment_tombstone(group_id, each) for each in member_ids),
            *(records.target_tombstone(group_id, each) for each in member_ids),
            records.target_epoch_tombstone(group_id),
            *(records.subscription_tombstone(group_id, each) for each in member_ids),
            *(records.expression_tombstone(group_id, each) for each in self.expressions),
            records.partition_metadata_tombstone(group_id),
            records.epoch_tombstone(group_id),
        ]

    # What the protocol asks.

    def member(self, member_id: str) -> ConsumerMember:
        """
        Raises:
            CoordinatorError: UNKNOWN_MEMBER_ID.
        """
        member = self.members.get(member_id)
        if member is None:
            raise CoordinatorError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member {member_id} is not a member of group {self.group_id}.",
            )
        return member

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        """The member that has this instance id now."""
        if instance_id is None:
            return None
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """The names that a member subscribes to; what its expression means may not be known."""
        resolved = self.expressions.get(member.subscribed_topic_regex)
        if resolved is None:
            return member.subscribed_topic_names
        return member.subscribed_topic_names | resolved.topics

    def subscribed_topics(
        self,
        members: Iterable[ConsumerMember],
        expressions: Mapping[str, ResolvedExpression] | None = None,
    ) -> frozenset[str]:
        """The names that these members subscribe to.

        Args:
            expressions: what expressions mean, if not what they have meant so far.
        """
        known = self.expressions if expressions is None else expressions
        # Most members subscribe to the same topics: each subscription counts once.
        subscriptions: set[frozenset[str]] = set()
        for member in members:
            subscriptions.add(member.subscribed_topic_names)
            if member.subscribed_topic_regex in known:
                subscriptions.add(known[member.subscribed_topic_regex].topics)
        return frozenset[str]().union(*subscriptions)

    def members_with(self, *updated: ConsumerMember) -> dict[str, ConsumerMember]:
        """The members as they will be; an instance id has one owner, so the one before goes."""
        members = dict(self.members)
        for member in updated:
            if member.instance_id is not None:
                members.pop(self.static_members.get(member.instance_id, ""), None)
            members[member.member_id] = member
        return members

    def target_of(self, member: ConsumerMember) -> Assignment:
        """The target of a member; a static member that comes back has the one from before."""
        member_id = member.member_id
        if member.instance_id is not None:
            member_id = self.static_members.get(member.instance_id, member_id)
        return self.target.get(member_id, {})

    def has_owner(self, topic_id: UUID, partition: int) -> bool:
        return partition in self.owners.get(topic_id, ())

    # The log: see replay.py.

    def put_member(self, member: ConsumerMember) -> None:
        before = self.members.get(member.member_id)
        self._subscribed_topics = None
        self._count_expression(before, -1)
        self._count_expression(member, +1)
        if before is None or (
            before.assigned != member.assigned
            or before.pending_revocation != member.pending_revocation
        ):
            self._release(before)
            for topic_id, partition in member.owned():
                self.owners.setdefault(topic_id, {})[partition] = member.member_id
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def drop_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._subscribed_topics = None
        self._count_expression(member, -1)
        self._release(member)
        if self.static_members.get(member.instance_id or "") == member_id:
            del self.static_members[member.instance_id or ""]

    def put_expression(self, expression: str, resolved: ResolvedExpression) -> None:
        self.expressions[expression] = resolved
        self._subscribed_topics = None

    def drop_expression(self, expression: str) -> None:
        self.expressions.pop(expression, None)
        self._subscribed_topics = None

    def _count_expression(self, member: ConsumerMember | None, step: int) -> None:
        if member is not None and member.subscribed_topic_regex:
            self.expression_members[member.subscribed_topic_regex] += step
            if not self.expression_members[member.subscribed_topic_regex]:
                del self.expression_members[member.subscribed_topic_regex]

    def _release(self, member: ConsumerMember | None) -> None:
        """Give up what the member has; what another one has got meanwhile stays there."""
        if member is None:
            return
        for topic_id, partition in member.owned():
            owners = self.owners.get(topic_id, {})
            if owners.get(partition) == member.member_id:
                del owners[partition]
                if not owners:
                    del self.owners[topic_id]


def _check_partition_commit(
    member: ConsumerMember, epoch: int, topic: str, topic_id: UUID, partition: int
) -> None:
    """A member that is behind may commit what it has had since that epoch: nobody else can have
    had it meanwhile."""
    owned_epoch = member.owned_epoch(topic_id, partition)
    if owned_epoch is None:
        raise _wrong_epoch(
            member,
            f"Partition {topic}-{partition} is not assigned or pending revocation for member.",
        )
    if epoch < owned_epoch:
        raise _wrong_epoch(
            member,
            f"Received {_epoch_word(member)} {epoch} is older than assignment epoch {owned_epoch} "
            f"for partition {topic}-{partition}.",
        )


def _epoch_word(member: ConsumerMember) -> str:
    return "generation id" if member.classic else "member epoch"


def _wrong_epoch(member: ConsumerMember, message: str) -> CoordinatorError:
    """Each client hears it in the words of its own protocol."""
    code = ErrorCode.ILLEGAL_GENERATION if member.classic else ErrorCode.STALE_MEMBER_EPOCH
    return CoordinatorError(code, message)
