"""The consumer groups of a shard: finding them, and bringing an update of a member into effect."""

from __future__ import annotations

from klamm.coordinator import migration
from klamm.coordinator.classic.group import ClassicGroup
from klamm.coordinator.classic.protocol import ClassicProtocol
from klamm.coordinator.consumer.group import ConsumerGroup
from klamm.coordinator.consumer.member import ConsumerMember
from klamm.coordinator.consumer.removal import Removals
from klamm.coordinator.consumer.replay import folded
from klamm.coordinator.consumer.resolution import Resolutions
from klamm.coordinator.consumer.topics import SubscribedTopics
from klamm.coordinator.consumer.update import MemberUpdate
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.group import Shard
from klamm.coordinator.ports import CoordinatorRecord
from klamm.wire.errors import ErrorCode


class Groups:
    def __init__(self, shard: Shard, topics: SubscribedTopics, classic: ClassicProtocol) -> None:
        self._shard = shard
        self._topics = topics
        self._classic = classic
        self._resolutions = Resolutions(shard, topics)
        self.removals = Removals(shard, topics, classic)

    def find(self, group_id: str, not_found: str) -> ConsumerGroup:
        """
        Args:
            not_found: the begin of the message if there is no such group at all.

        Raises:
            CoordinatorError: GROUP_ID_NOT_FOUND.
        """
        group = self._shard.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        message = f"{not_found} found." if group is None else _wrong_kind(group_id)
        raise CoordinatorError(ErrorCode.GROUP_ID_NOT_FOUND, message)

    def find_or_make(self, group_id: str, written: list[CoordinatorRecord]) -> ConsumerGroup:
        """The group that somebody joins. One that is not there, or is a classic one, comes into
        being with the records of the join; until then it is not among the groups.

        Args:
            written: gets the records that turn a classic group into a consumer group.

        Raises:
            CoordinatorError: GROUP_ID_NOT_FOUND, because the classic group has to stay one.
        """
        group = self._shard.groups.get(group_id)
        if group is None:
            return ConsumerGroup(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if not isinstance(group, ClassicGroup):
            raise CoordinatorError(ErrorCode.GROUP_ID_NOT_FOUND, _wrong_kind(group_id))
        if not group.members:
            written += group.tombstones()
            return ConsumerGroup(group_id)
        written += migration.upgrade_records(group, self._topics, self._shard.settings)
        return folded(group_id, written)

    def update(
        self,
        group: ConsumerGroup,
        before: ConsumerMember,
        member: ConsumerMember,
        written: list[CoordinatorRecord],
    ) -> MemberUpdate:
        is_resolving = self._resolutions.is_under_way(group.group_id)
        return MemberUpdate(
            self._shard, self._topics, group, before, member, written, is_resolving=is_resolving
        )

    def commit(self, update: MemberUpdate) -> ConsumerGroup:
        """Append what the update has decided, and do what follows from it.

        Returns:
            The group, which may be younger than the one that was updated.

        Raises:
            CoordinatorError: the log refuses, and all is as it was.
        """
        group_id = update.group.group_id
        former = self._shard.groups.get(group_id)
        predecessor = update.group.static_member(update.member.instance_id)
        if update.records:
            self._shard.journal.append(update.records)
        group = self._shard.groups[group_id]
        assert isinstance(group, ConsumerGroup), f"{group_id}: the records made no consumer group"
        sessions = self.removals.sessions
        if isinstance(former, ClassicGroup):
            self._classic.dissolve(former)
            for member in group.members.values():
                sessions.restart(group_id, member)
        if predecessor is not None and predecessor.member_id not in group.members:
            self.removals.forget(group, predecessor.member_id)
        if update.has_compared_metadata:
            group.is_metadata_current = True
        if update.has_moved:
            sessions.await_revocation(group_id, update.member)
        sessions.restart(group_id, update.member)
        if update.expressions_to_resolve:
            self._resolutions.start(group_id, update.expressions_to_resolve)
        return group


def _wrong_kind(group_id: str) -> str:
    return f"Group {group_id} is not a consumer group."
