"""Timers: at their time, in their order, and nothing is left of those that were cancelled."""

from __future__ import annotations

import logging
from functools import partial

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from klamm.broker import timers as timers_module
from klamm.broker.tests.in_trio import in_virtual_time
from klamm.broker.timers import CANCELLED_MAX, Timers


@in_virtual_time
async def test_they_fire_at_their_time_whatever_the_order_they_were_set_in() -> None:
    timers = Timers()
    fired: list[tuple[str, float]] = []
    start = trio.current_time()

    def note(name: str) -> None:
        fired.append((name, trio.current_time() - start))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(timers.run)
        timers.call_after(3, lambda: note("third"))
        timers.call_after(1, lambda: note("first"))
        await trio.sleep(1.5)
        # Earlier than what the task is waiting for.
        timers.call_after(0.5, lambda: note("second"))
        await trio.sleep(10)
        nursery.cancel_scope.cancel()
    assert fired == [("first", 1.0), ("second", 2.0), ("third", 3.0)]


@in_virtual_time
async def test_those_of_one_moment_fire_in_the_order_they_were_set_in() -> None:
    timers = Timers()
    fired: list[int] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(timers.run)
        for number in range(100):
            timers.call_at(trio.current_time() + 1, partial(fired.append, number))
        await trio.sleep(2)
        nursery.cancel_scope.cancel()
    assert fired == list(range(100))


@in_virtual_time
async def test_a_cancelled_one_does_not_fire() -> None:
    timers = Timers()
    fired: list[str] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(timers.run)
        timer = timers.call_after(1, lambda: fired.append("cancelled"))
        timers.call_after(1, lambda: fired.append("kept"))
        timer.cancel()
        timer.cancel()
        await trio.sleep(2)
        nursery.cancel_scope.cancel()
    assert fired == ["kept"]


@in_virtual_time
async def test_one_that_fails_does_not_end_the_others(caplog: pytest.LogCaptureFixture) -> None:
    timers = Timers()
    fired: list[str] = []

    def fail() -> None:
        raise ValueError("on purpose")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(timers.run)
        timers.call_after(1, fail)
        timers.call_after(2, lambda: fired.append("after it"))
        await trio.sleep(3)
        nursery.cancel_scope.cancel()
    assert fired == ["after it"]
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


@in_virtual_time
async def test_cancelled_ones_do_not_pile_up() -> None:
    timers = Timers()
    kept = timers.call_after(1_000_000, lambda: None)
    for _ in range(20 * CANCELLED_MAX):
        timers.call_after(1_000_000, lambda: None).cancel()
    assert len(timers._heap) <= CANCELLED_MAX + 2
    assert kept in [entry[2] for entry in timers._heap]


@in_virtual_time
async def test_cancelling_one_that_has_fired_is_not_counted() -> None:
    timers = Timers()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(timers.run)
        fired = [timers.call_after(1, lambda: None) for _ in range(10)]
        await trio.sleep(2)
        for timer in fired:
            timer.cancel()
        nursery.cancel_scope.cancel()
    assert timers._cancelled == 0


@in_virtual_time
async def test_many_at_once_let_others_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timers_module, "TURN_SECONDS_MAX", 0.0)
    timers = Timers()
    fired: list[int] = []
    seen: list[int] = []

    async def watch() -> None:
        while len(fired) < 20:
            seen.append(len(fired))
            await trio.lowlevel.checkpoint()

    for number in range(20):
        timers.call_at(trio.current_time(), partial(fired.append, number))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(timers.run)
        await watch()
        nursery.cancel_scope.cancel()
    assert fired == list(range(20))
    assert len(set(seen)) > 10


@given(st.lists(st.tuples(st.floats(0, 100), st.booleans()), max_size=30))
def test_exactly_those_that_are_due_and_not_cancelled_fire(
    plan: list[tuple[float, bool]],
) -> None:
    fired: list[int] = []

    @in_virtual_time
    async def run() -> None:
        timers = Timers()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(timers.run)
            for number, (seconds, is_cancelled) in enumerate(plan):
                timer = timers.call_after(seconds, partial(fired.append, number))
                if is_cancelled:
                    timer.cancel()
            await trio.sleep(101)
            nursery.cancel_scope.cancel()

    run()
    kept = [number for number, (_, is_cancelled) in enumerate(plan) if not is_cancelled]
    assert fired == sorted(kept, key=lambda number: (plan[number][0], number))
