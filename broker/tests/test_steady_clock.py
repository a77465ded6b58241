"""The clock by which offsets expire, under clocks that jump."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from klamm.broker.clock import Clock
from klamm.broker.steady_clock import SteadyClock

START_MS = 1_700_000_000_000
DAY_MS = 24 * 3_600_000


class WallClock(Clock):
    """Wall time that passes with the monotonic clock, and jumps when it is told to."""

    def __init__(self) -> None:
        self.jumped_ms = 0

    def now_ms(self) -> int:
        return START_MS + self.jumped_ms + int(trio.current_time() * 1000)


def test_it_passes_with_the_wall_clock_and_does_not_jump_ahead() -> None:
    async def main() -> None:
        wall = WallClock()
        steady = SteadyClock(wall)
        start_ms = steady.now_ms()
        assert start_ms == wall.now_ms()
        await trio.sleep(100)
        assert steady.now_ms() - start_ms == 100_000
        wall.jumped_ms += 30 * DAY_MS
        assert steady.now_ms() - start_ms == 100_000
        await trio.sleep(100)
        assert steady.now_ms() - start_ms == 200_000

    trio.run(main, clock=MockClock(autojump_threshold=0))


def test_it_follows_the_wall_clock_back() -> None:
    async def main() -> None:
        wall = WallClock()
        steady = SteadyClock(wall)
        start_ms = steady.now_ms()
        wall.jumped_ms -= 30 * DAY_MS
        await trio.sleep(100)
        # Otherwise what is committed now would look thirty days old.
        assert steady.now_ms() == wall.now_ms() == start_ms + 100_000 - 30 * DAY_MS

    trio.run(main, clock=MockClock(autojump_threshold=0))
