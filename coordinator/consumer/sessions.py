"""The deadlines of members. Whoever misses one is removed from its group.

A member has to send a heartbeat within the session timeout, and to give up partitions that it must
give up within its rebalance timeout. A member of the classic protocol also has to join within that
time when it was told to, and then to sync.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from klamm.coordinator.consumer.config import session_timeout_ms
from klamm.coordinator.consumer.group import ConsumerGroup
from klamm.coordinator.consumer.member import ConsumerMember
from klamm.coordinator.consumer.state import MemberState
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.group import Shard

# After this time a removal is tried again that the log has refused.
RETRY_BACKOFF_MS = 500

SESSION = "consumer-session"
REBALANCE = "consumer-rebalance"
JOIN = "consumer-join"
SYNC = "consumer-sync"


class Sessions:
    """
    Args:
        remove: takes a member out of its group.
    """

    def __init__(
        self, shard: Shard, remove: Callable[[ConsumerGroup, ConsumerMember], None]
    ) -> None:
        self._shard = shard
        self._remove = remove

    def restart(self, group_id: str, member: ConsumerMember, timeout_ms: int | None = None) -> None:
        """The member is alive.

        Args:
            timeout_ms: by default that of the group or, for the classic protocol, the member's own.
        """
        if timeout_ms is None and member.classic is not None:
            timeout_ms = member.classic.session_timeout_ms
        if timeout_ms is None:
            timeout_ms = session_timeout_ms(self._shard, group_id)
        self._schedule(SESSION, group_id, member.member_id, timeout_ms)

    def await_revocation(self, group_id: str, member: ConsumerMember) -> None:
        """Let a member that has to give up partitions do so in time, and no other. One that speaks
        the classic protocol is told to join again, and has as much time for that."""
        if member.classic is None and member.state is MemberState.UNREVOKED_PARTITIONS:
            self._schedule(
                REBALANCE,
                group_id,
                member.member_id,
                member.rebalance_timeout_ms,
                member.member_epoch,
            )
        else:
            self._shard.timers.cancel((REBALANCE, group_id, member.member_id))

    def await_join(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        """The member was told to join again; the first time counts."""
        if member.member_id not in group.awaited_joins:
            group.awaited_joins.add(member.member_id)
            self._schedule(JOIN, group.group_id, member.member_id, member.rebalance_timeout_ms)

    def end_join(self, group: ConsumerGroup, member_id: str) -> None:
        group.awaited_joins.discard(member_id)
        self._shard.timers.cancel((JOIN, group.group_id, member_id))

    def await_sync(self, group_id: str, member: ConsumerMember) -> None:
        """The member has joined, and has to fetch its assignment."""
        self._schedule(SYNC, group_id, member.member_id, member.rebalance_timeout_ms)

    def end_sync(self, group_id: str, member_id: str) -> None:
        self._shard.timers.cancel((SYNC, group_id, member_id))

    def end(self, group_id: str, member_id: str) -> None:
        """The member is gone."""
        for kind in (SESSION, REBALANCE, JOIN, SYNC):
            self._shard.timers.cancel((kind, group_id, member_id))

    def _schedule(
        self, kind: str, group_id: str, member_id: str, delay_ms: int, epoch: int | None = None
    ) -> None:
        key: Hashable = kind, group_id, member_id

        def expire() -> None:
            try:
                self._expire(group_id, member_id, epoch)
            except CoordinatorError:
                self._shard.timers.schedule(key, RETRY_BACKOFF_MS, expire)

        self._shard.timers.schedule(key, max(delay_ms, 0), expire)

    def _expire(self, group_id: str, member_id: str, epoch: int | None) -> None:
        """Remove the member, if it is still there and, where that matters, at this epoch."""
        group = self._shard.groups.get(group_id)
        if not isinstance(group, ConsumerGroup) or member_id not in group.members:
            return
        member = group.members[member_id]
        if epoch in (None, member.member_epoch):
            self._remove(group, member)
