"""The time by which offsets, transactions and producers expire: wall time without jumps ahead."""

from __future__ import annotations

import trio

from klamm.broker.clock import Clock


class SteadyClock:
    """Wall time, but never more than has passed since the broker's start by the monotonic clock.

    When the wall clock is set ahead, all offsets look old at once. By this clock they do not. When
    it is set back, this clock follows: what is committed from then on has the new time. So a jump
    can only make offsets live longer.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._start_ms = clock.now_ms()
        self._started_at = trio.current_time()

    def now_ms(self) -> int:
        elapsed_ms = int((trio.current_time() - self._started_at) * 1000)
        return min(self._clock.now_ms(), self._start_ms + elapsed_ms)
