"""How members go: by themselves, because they are silent, or because they do not move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from klamm.coordinator import migration
from klamm.coordinator.classic.protocol import ClassicProtocol
from klamm.coordinator.consumer import records
from klamm.coordinator.consumer.group import ConsumerGroup
from klamm.coordinator.consumer.member import ConsumerMember
from klamm.coordinator.consumer.sessions import Sessions
from klamm.coordinator.consumer.topics import SubscribedTopics
from klamm.coordinator.group import Shard
from klamm.coordinator.ports import CoordinatorRecord


class Removals:
    """
    Attributes:
        sessions: the deadlines, after which members are removed.
    """

    def __init__(self, shard: Shard, topics: SubscribedTopics, classic: ClassicProtocol) -> None:
        self._shard = shard
        self._topics = topics
        self._classic = classic
        self.sessions = Sessions(shard, lambda group, member: self.remove(group, [member]))

    def remove(self, group: ConsumerGroup, leaving: Collection[ConsumerMember]) -> None:
        """Remove members. If only members of the classic protocol stay, the group becomes a
        classic one.

        Raises:
            CoordinatorError: the log refuses, and they stay.
        """
        if migration.can_downgrade(group, leaving, self._shard.settings):
            gone = {member.member_id for member in leaving}
            staying = [each for each in group.members.values() if each.member_id not in gone]
            self.downgrade(group, staying, rebalance=True)
            return
        self._shard.journal.append(self._removal_records(group, leaving))
        for member in leaving:
            self.forget(group, member.member_id)

    def _removal_records(
        self, group: ConsumerGroup, leaving: Collection[ConsumerMember]
    ) -> list[CoordinatorRecord]:
        group_id = group.group_id
        written: list[CoordinatorRecord] = []
        staying = dict(group.members)
        for member in leaving:
            written += records.member_tombstones(group_id, member.member_id)
            del staying[member.member_id]
        expressions = Counter(member.subscribed_topic_regex for member in leaving)
        written += [
            records.expression_tombstone(group_id, expression)
            for expression, count in expressions.items()
            if expression and count == group.expression_members[expression]
        ]
        metadata_hash = self._topics.hash_of(group.subscribed_topics(staying.values()))
        written.append(records.epoch_record(group_id, group.group_epoch + 1, metadata_hash))
        return written

    def forget(self, group: ConsumerGroup, member_id: str) -> None:
        """The member is gone from the log, and nothing is expected of it any more."""
        group.awaited_joins.discard(member_id)
        self.sessions.end(group.group_id, member_id)

    def downgrade(
        self,
        group: ConsumerGroup,
        staying: Collection[ConsumerMember],
        *,
        rebalance: bool,
        written: Collection[CoordinatorRecord] = (),
    ) -> None:
        """Make a classic group of the group.

        Args:
            staying: the members of the classic group.
            rebalance: whether they have to join again.
            written: records that come before those of the conversion.

        Raises:
            CoordinatorError: the log refuses, and the group stays what it is.
        """
        former_ids = tuple(group.members)
        members = migration.downgraded_members(group, staying, self._shard.topics)
        self._shard.journal.append(
            [
                *written,
                *migration.downgrade_records(
                    group,
                    members,
                    self._shard.now_ms(),
                    member_ids=group.members_with(*staying).keys(),
                ),
            ]
        )
        for member_id in former_ids:
            self.forget(group, member_id)
        self._classic.take_over(group.group_id, members, rebalance=rebalance)
