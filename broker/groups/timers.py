"""Deadlines of groups by key, over the broker's timers.

Heartbeats push the deadline of a session ahead again and again. So a timer that comes to its end
looks whether the deadline has moved, instead of being replaced each time: a heartbeat costs no
more than a note of the new deadline.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import trio

from klamm.broker.timers import Timer, Timers


class Deadline:
    """One timer of a group: when, and what then."""

    __slots__ = ("at", "expire", "timer")

    def __init__(self, at: float, expire: Callable[[], None], timer: Timer) -> None:
        self.at = at
        self.expire = expire
        self.timer = timer


class GroupTimers:
    """The timers of one shard (`coordinator.ports.Timers`).

    Args:
        timers: the broker's.
        run: calls what has expired, as a step of the shard.
    """

    def __init__(self, timers: Timers, run: Callable[[Callable[[], None]], None]) -> None:
        self._timers = timers
        self._run = run
        self._deadlines: dict[Hashable, Deadline] = {}

    def schedule(self, key: Hashable, delay_ms: int, expire: Callable[[], None]) -> None:
        at = trio.current_time() + delay_ms / 1000
        deadline = self._deadlines.get(key)
        if deadline is not None and deadline.at <= at:
            deadline.at = at
            deadline.expire = expire
            return
        if deadline is not None:
            deadline.timer.cancel()
        self._deadlines[key] = Deadline(at, expire, self._timer(key, at))

    def _timer(self, key: Hashable, at: float) -> Timer:
        return self._timers.call_at(at, lambda: self._fire(key))

    def cancel(self, key: Hashable) -> None:
        deadline = self._deadlines.pop(key, None)
        if deadline is not None:
            deadline.timer.cancel()

    def cancel_all(self) -> None:
        for deadline in self._deadlines.values():
            deadline.timer.cancel()
        self._deadlines.clear()

    def _fire(self, key: Hashable) -> None:
        deadline = self._deadlines[key]
        if deadline.at > trio.current_time():
            deadline.timer = self._timer(key, deadline.at)
            return
        del self._deadlines[key]
        self._run(deadline.expire)
