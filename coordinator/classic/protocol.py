"""The classic group protocol of one shard: what the broker and the other protocols call.

A command decides, appends what has to be stored, and only then changes who waits and which timers
run, and answers. If the log refuses, the group is as it was before, and the requester is told; the
one exception is the leader's SyncGroup, where Kafka has everybody join again.

A reply must not call back into the protocol: it is given in the middle of a step.
"""

from __future__ import annotations

from collections.abc import Iterable

from klamm.coordinator.classic.group import ClassicGroup
from klamm.coordinator.classic.heartbeat import heartbeat
from klamm.coordinator.classic.join import Joins
from klamm.coordinator.classic.leave import Leaves
from klamm.coordinator.classic.member import ClassicMember
from klamm.coordinator.classic.rebalance import Rebalances
from klamm.coordinator.classic.state import ClassicState
from klamm.coordinator.classic.sync import Syncs
from klamm.coordinator.group import Shard
from klamm.coordinator.ports import Client, Reply
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from klamm.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from klamm.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from klamm.wire.messages.stored.classic_group import GroupMetadataKey, GroupMetadataValue
from klamm.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class ClassicProtocol:
    """Requests about groups of another kind belong to that kind, with one exception: JoinGroup to
    an empty group of any kind makes it a classic group."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._rebalances = Rebalances(shard)
        self._joins = Joins(shard, self._rebalances)
        self._syncs = Syncs(shard, self._rebalances)
        self._leaves = Leaves(self._rebalances)

    # Requests.

    def join(
        self, request: JoinGroupRequest, client: Client, reply: Reply[JoinGroupResponse]
    ) -> None:
        """Answer at once, or when the join phase is over."""
        self._joins.join(request, client, reply)

    def sync(
        self, request: SyncGroupRequest, client: Client, reply: Reply[SyncGroupResponse]
    ) -> None:
        """Answer at once, or when the leader has assigned."""
        self._syncs.sync(request, client, reply)

    def heartbeat(self, request: HeartbeatRequest, client: Client) -> HeartbeatResponse:
        return heartbeat(self._rebalances, request)

    def leave(self, request: LeaveGroupRequest, client: Client) -> LeaveGroupResponse:
        return self._leaves.leave(request, client)

    def on_offset_commit(self, group_id: str, member_id: str) -> None:
        """A member's commit was accepted. It is a sign of life like a heartbeat, but, as in Kafka,
        not while the leader assigns."""
        group = self._rebalances.find(group_id)
        if (
            group is not None
            and member_id in group.members
            and group.state in (ClassicState.STABLE, ClassicState.PREPARING_REBALANCE)
        ):
            self._rebalances.restart_session(group, member_id)

    def abandon(
        self, group_id: str, reply: Reply[JoinGroupResponse] | Reply[SyncGroupResponse]
    ) -> None:
        """Nobody is there any more to hear this reply. The member counts as before: it may come
        back over another connection, and if not, its session ends."""
        group = self._rebalances.find(group_id)
        if group is None:
            return
        for member_id, join_reply in group.join_replies.items():
            if join_reply == reply:
                group.join_replies[member_id] = _unheard
        for member_id, sync_reply in group.sync_replies.items():
            if sync_reply == reply:
                group.sync_replies[member_id] = _unheard

    # The log.

    def replay_group_metadata(
        self, key: GroupMetadataKey, value: GroupMetadataValue | None
    ) -> None:
        """A record of the log: the group becomes what it says, whatever it was."""
        group = self._rebalances.find(key.group)
        if value is None:
            if group is not None:
                self._rebalances.stop_timers(group)
            self._shard.groups.pop(key.group, None)
            return
        if group is None:
            group = ClassicGroup(key.group)
        group.replay(value)
        self._shard.groups[key.group] = group

    def on_loaded(self) -> None:
        """The whole log was replayed: from now on, members have to send heartbeats."""
        for group in self._groups():
            self._start(group)
            if len(group.members) > self._shard.settings.group_max_size:
                # The limit is lower than it was. Members that join too late are turned away.
                self._rebalances.prepare(group)

    def on_unloaded(self) -> None:
        """This broker serves the shard no longer: whoever waits has to look for the next one."""
        for group in self._groups():
            self._rebalances.dissolve(group, ErrorCode.NOT_COORDINATOR)

    # Migration between the protocols. Both are called after the records of the migration are in
    # the log, and so replayed.

    def dissolve(self, group: ClassicGroup) -> None:
        """The group has become one of another kind; members that wait have to join again."""
        self._rebalances.dissolve(group, ErrorCode.REBALANCE_IN_PROGRESS)

    def take_over(
        self, group_id: str, members: Iterable[ClassicMember], *, rebalance: bool
    ) -> ClassicGroup:
        """A group of another kind has become a classic one.

        Args:
            members: the members that the record has, with all the protocols that they know.
            rebalance: whether they have to join again.
        """
        group = self._rebalances.find(group_id)
        assert group is not None, f"{group_id}: no record of a classic group was replayed"
        for member in members:
            assert member.member_id in group.members, f"{group_id}: {member.member_id} is new"
            group.put_member(member)
        self._start(group)
        if rebalance:
            self._rebalances.prepare(group)
        return group

    def _groups(self) -> list[ClassicGroup]:
        return [group for group in self._shard.groups.values() if isinstance(group, ClassicGroup)]

    def _start(self, group: ClassicGroup) -> None:
        for member_id in group.members:
            self._rebalances.restart_session(group, member_id)


def _unheard(response: object) -> None:
    """The place of a reply that nobody waits for."""
