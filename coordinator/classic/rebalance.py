"""Rebalances: how the join and the sync phase begin and end, and how members go.

Only one thing that happens here is written to the log: that nobody is left. The methods that may
find this out (`remove`, `complete_join`) append before they change anything, so that a refusal of
the log leaves the group as it was.
"""

from __future__ import annotations

from collections.abc import Collection

from klamm.coordinator.classic.group import ClassicGroup
from klamm.coordinator.classic.replies import join_refused, joined, sync_refused, synced
from klamm.coordinator.classic.state import ClassicState
from klamm.coordinator.classic.timers import GroupTimers
from klamm.coordinator.group import Shard
from klamm.coordinator.ports import Reply
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.sync_group import SyncGroupResponse

# A member that has never had an answer cannot send heartbeats; if it is still there after this
# time, it joins again.
NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
# Clients may ask for a rebalance timeout of nothing; looking again and again takes no less.
JOIN_RETRY_MS = 500


class Rebalances:
    """Every change of phase of the classic groups of a shard."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._timers = GroupTimers(shard.timers)

    def find(self, group_id: str) -> ClassicGroup | None:
        group = self._shard.groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    # The join phase.

    def prepare_or_complete(self, group: ClassicGroup) -> None:
        """A member has joined: begin a rebalance, or end it if this was the last one missing."""
        if group.state is not ClassicState.PREPARING_REBALANCE:
            self.prepare(group)
        elif group.has_all_joined and not group.is_initial_rebalance:
            self.complete_join(group)

    def prepare(self, group: ClassicGroup) -> None:
        """Begin a rebalance of a group that has members, or expects some."""
        if group.state is ClassicState.COMPLETING_REBALANCE:
            self.reject_sync(group, ErrorCode.REBALANCE_IN_PROGRESS)
        self._timers.stop_sync(group)
        group.pending_sync_members.clear()
        group.is_initial_rebalance = group.is_empty
        group.transition_to(ClassicState.PREPARING_REBALANCE, self._shard.now_ms())
        if group.is_initial_rebalance:
            group.new_member_added = False
            delay_ms = self._shard.settings.group_initial_rebalance_delay_ms
            self._delay_initial(group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        elif group.has_all_joined:
            self.complete_join(group)
        else:
            self._await_join(group)

    def complete_join(self, group: ClassicGroup) -> None:
        """End the join phase: who has not joined is out, the others get a new generation.

        Raises:
            CoordinatorError: nobody is left, and the log refuses to store that.
        """
        late = [
            member_id
            for member_id, member in group.members.items()
            if member_id not in group.join_replies and not member.is_static
        ]
        if len(late) == len(group.members):
            self._store_empty(group)
        for member_id in late:
            self.drop(group, member_id)
        self._timers.stop_join(group)
        if group.is_empty:
            return
        if not self._elect_leader(group):
            # Only static members are left, and none has come back. Their sessions will end this.
            self._await_join(group, least_ms=JOIN_RETRY_MS)
            return
        group.begin_generation(self._shard.now_ms())
        group.new_members.clear()
        for member_id in group.members:
            self.restart_session(group, member_id)
        group_id, generation = group.group_id, group.generation
        self._timers.start_sync(
            group,
            group.rebalance_timeout_ms,
            lambda: self._expire_pending_sync(group_id, generation),
        )
        replies, group.join_replies = group.join_replies, {}
        for member_id, reply in replies.items():
            reply(joined(group, member_id, with_members=member_id == group.leader))

    @staticmethod
    def _elect_leader(group: ClassicGroup) -> bool:
        """Keep the leader if it joined; if not, the eldest member that did leads from now on."""
        if group.leader not in group.join_replies:
            candidates = (one for one in group.members if one in group.join_replies)
            group.leader = next(candidates, group.leader)
        return group.leader in group.join_replies

    def _await_join(self, group: ClassicGroup, least_ms: int = 0) -> None:
        group_id, timeout_ms = group.group_id, max(group.rebalance_timeout_ms, least_ms)
        self._timers.start_join(group, timeout_ms, lambda: self._expire_join(group_id))

    def _expire_join(self, group_id: str) -> None:
        group = self.find(group_id)
        if group is not None and group.state is ClassicState.PREPARING_REBALANCE:
            self.complete_join(group)

    def _delay_initial(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        group_id = group.group_id
        self._timers.start_join(
            group,
            delay_ms,
            lambda: self._expire_initial_delay(group_id, delay_ms, remaining_ms),
        )

    def _expire_initial_delay(self, group_id: str, delay_ms: int, remaining_ms: int) -> None:
        """If somebody came meanwhile, others may follow: wait on, but not for ever."""
        group = self.find(group_id)
        if group is None or group.state is not ClassicState.PREPARING_REBALANCE:
            return
        if group.new_member_added and remaining_ms:
            group.new_member_added = False
            next_ms = min(self._shard.settings.group_initial_rebalance_delay_ms, remaining_ms)
            self._delay_initial(group, next_ms, max(remaining_ms - delay_ms, 0))
        else:
            self.complete_join(group)

    # The sync phase.

    def accept_sync(self, group: ClassicGroup) -> None:
        """Give everybody who waits the assignment that the leader has made."""
        for member_id, reply in self._end_sync(group).items():
            reply(synced(group, member_id))

    def reject_sync(self, group: ClassicGroup, code: ErrorCode) -> None:
        """Tell everybody who waits for an assignment that there will be none."""
        group.clear_assignments()
        for reply in self._end_sync(group).values():
            reply(sync_refused(code))

    def _end_sync(self, group: ClassicGroup) -> dict[str, Reply[SyncGroupResponse]]:
        # While they waited, members did not have to send heartbeats.
        for member_id in group.sync_replies:
            self.restart_session(group, member_id)
        replies, group.sync_replies = group.sync_replies, {}
        return replies

    def received_sync(self, group: ClassicGroup, member_id: str) -> None:
        group.pending_sync_members.discard(member_id)
        if not group.pending_sync_members:
            self._timers.stop_sync(group)

    def _expire_pending_sync(self, group_id: str, generation: int) -> None:
        group = self.find(group_id)
        if group is None or group.generation != generation or not group.pending_sync_members:
            return
        if group.state in (ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE):
            self.remove(group, set(group.pending_sync_members))

    # Members that go.

    def remove(
        self,
        group: ClassicGroup,
        members: Collection[str],
        pending: Collection[str] = (),
        *,
        has_expired: bool = False,
    ) -> None:
        """Remove members and ids that are pending, and rebalance what is left.

        Args:
            has_expired: they did not go by themselves. If the others have all joined, this ends
                even the initial rebalance, as in Kafka.

        Raises:
            CoordinatorError: nobody is left, and the log refuses to store that.
        """
        is_last = len(members) == len(group.members) and group.pending_members.issubset(pending)
        waits_for_timer = group.is_initial_rebalance and not has_expired
        if is_last and not group.is_empty and not waits_for_timer:
            self._store_empty(group)
        for member_id in (*members, *pending):
            self.drop(group, member_id)
        if group.is_empty:
            self._timers.stop_join(group)
            self._timers.stop_sync(group)
        elif group.state is not ClassicState.PREPARING_REBALANCE:
            self.prepare(group)
        elif group.has_all_joined and not waits_for_timer:
            self.complete_join(group)

    def drop(self, group: ClassicGroup, member_id: str) -> None:
        """Forget a member or a pending id, and answer what it waits for."""
        self._timers.stop_session(group, member_id)
        group.pending_members.discard(member_id)
        group.new_members.discard(member_id)
        group.pending_sync_members.discard(member_id)
        if member_id in group.members:
            group.drop_member(member_id)
        join_reply = group.join_replies.pop(member_id, None)
        if join_reply is not None:
            join_reply(join_refused(ErrorCode.UNKNOWN_MEMBER_ID))
        sync_reply = group.sync_replies.pop(member_id, None)
        if sync_reply is not None:
            sync_reply(sync_refused(ErrorCode.UNKNOWN_MEMBER_ID))

    def _store_empty(self, group: ClassicGroup) -> None:
        record = group.record(
            (),
            generation=group.generation + 1,
            protocol=None,
            leader=None,
            timestamp=self._shard.now_ms(),
        )
        self._shard.journal.append([record])

    def dissolve(self, group: ClassicGroup, code: ErrorCode) -> None:
        """The group is no classic group any more, or not here: answer all who wait with this."""
        self.stop_timers(group)
        group.transition_to(ClassicState.DEAD, self._shard.now_ms())
        join_replies, group.join_replies = group.join_replies, {}
        sync_replies, group.sync_replies = group.sync_replies, {}
        for member_id, join_reply in join_replies.items():
            join_reply(join_refused(code, member_id))
        for sync_reply in sync_replies.values():
            sync_reply(sync_refused(code))

    def stop_timers(self, group: ClassicGroup) -> None:
        self._timers.stop_all(group)

    # Sessions.

    def restart_session(
        self, group: ClassicGroup, member_id: str, timeout_ms: int | None = None
    ) -> None:
        """The member is alive; its own session timeout holds unless another one is given."""
        if timeout_ms is None:
            timeout_ms = group.members[member_id].session_timeout_ms
        group_id = group.group_id
        self._timers.start_session(
            group, member_id, timeout_ms, lambda: self._expire_session(group_id, member_id)
        )

    def await_pending(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """Keep an id for the client that is told to join with it."""
        group.pending_members.add(member_id)
        self.restart_session(group, member_id, timeout_ms)

    def _expire_session(self, group_id: str, member_id: str) -> None:
        group = self.find(group_id)
        if group is None:
            return
        if member_id in group.pending_members:
            if group.state is ClassicState.PREPARING_REBALANCE:
                self.remove(group, (), [member_id], has_expired=True)
            else:
                self.drop(group, member_id)
        elif member_id in group.members and not group.is_parked(member_id):
            self.remove(group, [member_id], has_expired=True)
