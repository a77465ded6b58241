"""The probe sees a step that computes for long, and only that."""

from __future__ import annotations

import time

import pytest
import trio

from klamm.broker import loop_probe
from klamm.broker.loop_probe import TICKED, LoopProbe


class Clocks:
    """Those that the probe looks at; they go on when a test says so."""

    def __init__(self) -> None:
        self.computed_s = 0.0
        self.ticked_s = 0.0

    def compute(self, seconds: float) -> None:
        self.computed_s += seconds
        self.ticked_s += seconds

    def stand_still(self, seconds: float) -> None:
        """As a virtual machine does whose host has something else to do."""
        self.computed_s += seconds

    def thread_time(self) -> float:
        return self.computed_s

    def clock_gettime(self, clock: int) -> float:
        assert clock == TICKED
        return self.ticked_s


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    clocks = Clocks()
    monkeypatch.setattr(loop_probe, "time", clocks)
    return clocks


def test_it_names_the_longest_step(clocks: Clocks) -> None:
    probe = LoopProbe()

    async def long_one() -> None:
        clocks.compute(0.03)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(long_one)

    trio.run(main, instruments=[probe])
    assert probe.longest_step_s == pytest.approx(0.03)
    assert probe.longest_task.endswith("long_one")


def test_two_steps_are_not_one(clocks: Clocks) -> None:
    probe = LoopProbe()

    async def main() -> None:
        clocks.compute(0.02)
        await trio.lowlevel.checkpoint()
        clocks.compute(0.02)

    trio.run(main, instruments=[probe])
    assert probe.longest_step_s == pytest.approx(0.02)


def test_a_reset_forgets_the_step_under_way_too(clocks: Clocks) -> None:
    probe = LoopProbe()

    async def main() -> None:
        clocks.compute(0.03)
        probe.reset()

    trio.run(main, instruments=[probe])
    assert probe.longest_step_s == 0


def test_a_machine_that_stood_still_has_not_computed(clocks: Clocks) -> None:
    probe = LoopProbe()

    async def main() -> None:
        clocks.compute(0.004)
        clocks.stand_still(0.1)

    trio.run(main, instruments=[probe])
    assert probe.longest_step_s == pytest.approx(0.004)


def test_waiting_is_not_computing() -> None:
    probe = LoopProbe()
    trio.run(trio.sleep, 0.05, instruments=[probe])
    assert probe.longest_step_s < 0.05


def test_the_clock_of_the_ticks_goes_with_the_one_of_the_thread() -> None:
    """With the real ones, over so long that the size of a tick does not matter."""
    began_s = time.clock_gettime(TICKED)
    ends_at = time.thread_time() + 0.2
    while time.thread_time() < ends_at or time.clock_gettime(TICKED) == began_s:
        pass
    slept_s = time.clock_gettime(TICKED)
    time.sleep(0.05)
    assert time.clock_gettime(TICKED) - slept_s < 0.05
