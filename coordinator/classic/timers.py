"""The deadlines of classic groups: one for each member, one for each of the two phases."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from klamm.coordinator.classic.group import ClassicGroup
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.ports import Timers

RETRY_BACKOFF_MS = 500


class GroupTimers:
    """If the log refuses what a timer wants to store, nothing has changed, and the timer tries
    again a little later."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers

    def start_session(
        self, group: ClassicGroup, member_id: str, delay_ms: int, expire: Callable[[], None]
    ) -> None:
        self._schedule(_session_key(group, member_id), delay_ms, expire)

    def stop_session(self, group: ClassicGroup, member_id: str) -> None:
        self._timers.cancel(_session_key(group, member_id))

    def start_join(self, group: ClassicGroup, delay_ms: int, expire: Callable[[], None]) -> None:
        self._schedule(_join_key(group), delay_ms, expire)

    def stop_join(self, group: ClassicGroup) -> None:
        self._timers.cancel(_join_key(group))

    def start_sync(self, group: ClassicGroup, delay_ms: int, expire: Callable[[], None]) -> None:
        self._schedule(_sync_key(group), delay_ms, expire)

    def stop_sync(self, group: ClassicGroup) -> None:
        self._timers.cancel(_sync_key(group))

    def stop_all(self, group: ClassicGroup) -> None:
        for member_id in (*group.members, *group.pending_members):
            self.stop_session(group, member_id)
        self.stop_join(group)
        self.stop_sync(group)

    def _schedule(self, key: Hashable, delay_ms: int, expire: Callable[[], None]) -> None:
        def expire_or_retry() -> None:
            try:
                expire()
            except CoordinatorError:
                self._timers.schedule(key, RETRY_BACKOFF_MS, expire_or_retry)

        self._timers.schedule(key, delay_ms, expire_or_retry)


def _session_key(group: ClassicGroup, member_id: str) -> Hashable:
    return "classic-session", group.group_id, member_id


def _join_key(group: ClassicGroup) -> Hashable:
    return "classic-join", group.group_id


def _sync_key(group: ClassicGroup) -> Hashable:
    return "classic-sync", group.group_id
