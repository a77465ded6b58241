"""What one request of a member changes in its group, decided step by step.

The steps add records, in the order of Kafka's, and change nothing. Heartbeats of the consumer
protocol and JoinGroup requests of members that speak the classic one take the same steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from enum import Enum
from uuid import UUID

from klamm.coordinator.assignor import ASSIGNORS, Assignment, MemberSpec
from klamm.coordinator.consumer import records
from klamm.coordinator.consumer.config import assignment_interval_ms
from klamm.coordinator.consumer.expressions import check_expression
from klamm.coordinator.consumer.group import ConsumerGroup
from klamm.coordinator.consumer.member import ConsumerMember
from klamm.coordinator.consumer.reconciliation import Goal, OwnedPartitions, reconcile
from klamm.coordinator.consumer.topics import SubscribedTopics
from klamm.coordinator.group import Shard
from klamm.coordinator.ports import CoordinatorRecord, TopicDescription

# A batch of expressions is not looked up again sooner than this, whatever happens.
EXPRESSION_REFRESH_MIN_INTERVAL_MS = 10_000


class ExpressionChange(Enum):
    """What happened to the regular expression of the member."""

    NONE = "none"
    # Its topics are not known yet, so the assignment cannot follow yet.
    UPDATED = "updated"
    UPDATED_AND_RESOLVED = "updated and resolved"


class MemberUpdate:
    """
    Args:
        group: as it is; it may be one that is only about to exist.
        before: the member as the group, or a record of this update, has it.
        member: the member with what it says now; later, with what it gets.
        written: where records go.
        is_resolving: expressions of this group are being looked up already.

    Attributes:
        group_epoch: the one that the group will have.
        has_compared_metadata: whether the metadata hash was compared with today's topics.
        expressions_to_resolve: what has to be looked up.
        has_moved: whether the member has come closer to its target.
    """

    def __init__(
        self,
        shard: Shard,
        topics: SubscribedTopics,
        group: ConsumerGroup,
        before: ConsumerMember,
        member: ConsumerMember,
        written: list[CoordinatorRecord],
        *,
        is_resolving: bool,
    ) -> None:
        self._shard = shard
        self._topics = topics
        self._is_resolving = is_resolving
        self.group = group
        self.before = before
        self.member = member
        self.records = written
        self.group_epoch = group.group_epoch
        self.has_compared_metadata = False
        self.expressions_to_resolve: frozenset[str] = frozenset()
        self.has_moved = False

    def store_subscription(self) -> bool:
        """Store what the member says of itself; tell whether it names other topics now."""
        if self.member == self.before:
            return False
        self.records.append(records.subscription_record(self.group.group_id, self.member))
        return self.member.subscribed_topic_names != self.before.subscribed_topic_names

    def update_expression(self) -> ExpressionChange:
        """Look at the regular expression of the member, and at the age of all of the group.

        Raises:
            CoordinatorError: INVALID_REGULAR_EXPRESSION.
        """
        subscribers = self.group.expression_members
        old, new = self.before.subscribed_topic_regex, self.member.subscribed_topic_regex
        change, is_new = ExpressionChange.NONE, False
        if old != new:
            change = ExpressionChange.UPDATED
            if old and subscribers[old] == 1:
                self.records.append(records.expression_tombstone(self.group.group_id, old))
            if new and not subscribers[new]:
                check_expression(new)
                is_new = True
            elif not new or new in self.group.expressions:
                change = ExpressionChange.UPDATED_AND_RESOLVED
        if (is_new or subscribers) and not self._is_resolving:
            subscribed = subscribers.copy()
            subscribed.subtract([old] if old else [])
            subscribed.update([new] if new else [])
            self._refresh_expressions(frozenset(+subscribed), is_new=is_new)
        return change

    def _refresh_expressions(self, subscribed: frozenset[str], *, is_new: bool) -> None:
        """All expressions of a group are looked up together, so that one tells the age of all."""
        known = next(iter(self.group.expressions.values()), None)
        age_ms = None if known is None else self._shard.now_ms() - known.timestamp
        if age_ms is not None and 0 <= age_ms <= EXPRESSION_REFRESH_MIN_INTERVAL_MS:
            return
        interval_ms = self._shard.settings.group_consumer_regex_refresh_interval_ms
        if (
            is_new
            or len(subscribed) != len(self.group.expressions)
            or known is None
            or self._topics.has_new_since(known.version)
            or (age_ms is not None and not 0 <= age_ms <= interval_ms)
        ):
            self.expressions_to_resolve = subscribed

    def update_metadata(self, *, has_subscription_changed: bool) -> None:
        """Give the group a new epoch if the subscriptions or the topics behind them are others."""
        if not has_subscription_changed and self.group.is_metadata_current:
            return
        members = self.group.members_with(self.member).values()
        metadata_hash = self._topics.hash_of(self.group.subscribed_topics(members))
        if has_subscription_changed or metadata_hash != self.group.metadata_hash:
            self.group_epoch += 1
            self.records.append(
                records.epoch_record(self.group.group_id, self.group_epoch, metadata_hash)
            )
        self.has_compared_metadata = True
        if self.group.has_partition_metadata:
            self.records.append(records.partition_metadata_tombstone(self.group.group_id))

    def update_target(self) -> tuple[int, Assignment]:
        """Compute a target for the group epoch if there is none, and give the member's own.

        Returns:
            The epoch of the target, which may be an older one, and the target.
        """
        group = self.group
        if group.assignment_epoch >= self.group_epoch or not self._may_assign():
            return group.assignment_epoch, group.target_of(self.member)
        members = group.members_with(self.member)
        specs, topics = self._assignor_input(members.values())
        supported = self._shard.settings.group_consumer_assignors
        assignor = ASSIGNORS[preferred_assignor(members.values(), supported)]
        assignments = assignor.assign(specs, topics)
        for member_id, target in assignments.items():
            if target != group.target.get(member_id):
                self.records.append(records.target_record(group.group_id, member_id, target))
        now_ms = self._shard.now_ms()
        self.records.append(records.target_epoch_record(group.group_id, self.group_epoch, now_ms))
        return self.group_epoch, assignments[self.member.member_id]

    def _may_assign(self) -> bool:
        """Not too soon after the last time, so that many changes at once cost one assignment. A
        time of the future is the mark of a clock that was set back, and counts for nothing."""
        if not self.group.assignment_timestamp:
            return True
        interval_ms = assignment_interval_ms(self._shard, self.group.group_id)
        return not 0 <= self._shard.now_ms() - self.group.assignment_timestamp < interval_ms

    def _assignor_input(
        self, members: Collection[ConsumerMember]
    ) -> tuple[dict[str, MemberSpec], dict[UUID, TopicDescription]]:
        # Most members subscribe to the same topics: each subscription is looked up once.
        found: dict[tuple[frozenset[str], str], dict[UUID, TopicDescription]] = {}
        specs = {}
        for member in members:
            subscription = member.subscribed_topic_names, member.subscribed_topic_regex
            if subscription not in found:
                found[subscription] = self._topics.find(self.group.topics_of(member))
            specs[member.member_id] = MemberSpec(
                topic_ids=frozenset(found[subscription]),
                rack_id=member.rack_id,
                instance_id=member.instance_id,
                assigned=self.group.target_of(member),
            )
        return specs, {id_: topic for topics in found.values() for id_, topic in topics.items()}

    def reconcile(
        self,
        epoch: int,
        target: Assignment,
        owned: OwnedPartitions,
        *,
        has_subscription_changed: bool,
    ) -> None:
        """Let the member take a step towards the target.

        Raises:
            CoordinatorError: FENCED_MEMBER_EPOCH.
        """
        if not has_subscription_changed and self.member.is_reconciled_to(epoch):
            return
        goal = Goal(
            epoch,
            target,
            self._topics.find(self.group.topics_of(self.member)).keys(),
            has_subscription_changed,
            self.group.has_owner,
        )
        moved = reconcile(self.member, goal, owned)
        if moved != self.member:
            group_id = self.group.group_id
            self.records.append(records.current_assignment_record(group_id, moved))
            self.has_moved = True
            self.member = moved


def preferred_assignor(members: Iterable[ConsumerMember], supported: Sequence[str]) -> str:
    """The one that most members want; of two that equally many want, the first as configured."""
    wanted = (member.server_assignor for member in members)
    votes = Counter(name for name in wanted if name is not None)
    # The first of those with the most votes, so that the order of the setting decides a tie.
    return max(supported, key=lambda name: votes[name])
