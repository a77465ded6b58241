"""The probe sees a step that computes for long, and only that."""

from __future__ import annotations

import time

import trio

from klamm.broker.loop_probe import LoopProbe


def compute(seconds: float) -> None:
    ends_at = time.thread_time() + seconds
    while time.thread_time() < ends_at:
        pass


def test_it_names_the_longest_step() -> None:
    probe = LoopProbe()

    async def long_one() -> None:
        compute(0.03)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(long_one)

    trio.run(main, instruments=[probe])
    assert probe.longest_step_s >= 0.03
    assert probe.longest_task.endswith("long_one")


def test_waiting_is_not_computing() -> None:
    probe = LoopProbe()
    trio.run(trio.sleep, 0.05, instruments=[probe])
    assert probe.longest_step_s < 0.05


def test_two_steps_are_not_one() -> None:
    probe = LoopProbe()

    async def main() -> None:
        compute(0.02)
        await trio.lowlevel.checkpoint()
        compute(0.02)

    trio.run(main, instruments=[probe])
    assert 0.02 <= probe.longest_step_s < 0.04


def test_a_reset_forgets_the_step_under_way_too() -> None:
    probe = LoopProbe()

    async def main() -> None:
        compute(0.03)
        probe.reset()

    trio.run(main, instruments=[probe])
    assert probe.longest_step_s < 0.03
