"""Long work in steps: few are taken at once, many in turns, and threads do what they are given."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from klamm.broker.steps import (
    LOADING_THREADS_MAX,
    STEPS_AT_ONCE_MAX,
    StepRunner,
    Stepwise,
    collect,
    run_inline,
)
from klamm.broker.tests.in_trio import in_trio
from klamm.log.readiness import Load


@asynccontextmanager
async def runner() -> AsyncIterator[StepRunner]:
    async with trio.open_nursery() as nursery:
        yield StepRunner(nursery)


def counting(count: int) -> Stepwise[int]:
    for _ in range(count):
        yield None
    return count


def working() -> Stepwise[tuple[str, str]]:
    """Two pieces of work, the second of which fails."""
    first = yield lambda: threading.current_thread().name
    try:
        yield lambda: 1 // 0
    except ZeroDivisionError as error:
        return first, str(error)
    raise AssertionError("it did not fail")


@in_trio
async def test_few_steps_are_taken_at_once() -> None:
    async with runner() as steps:
        assert steps.begin(counting(STEPS_AT_ONCE_MAX - 1)) == STEPS_AT_ONCE_MAX - 1


@in_trio
async def test_many_steps_are_taken_in_turns() -> None:
    async with runner() as steps:
        rest = steps.begin(counting(STEPS_AT_ONCE_MAX))
        assert not isinstance(rest, int)
        assert await rest == STEPS_AT_ONCE_MAX
        assert await steps.run(counting(100_000)) == 100_000


@in_trio
async def test_others_have_their_turn_in_between() -> None:
    turns = 0

    def long() -> Stepwise[int]:
        """It goes on until somebody else had ten turns."""
        count = 0
        while turns < 10:
            count += 1
            yield None
        return count

    async def others() -> None:
        nonlocal turns
        while turns < 10:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(others)
        assert await StepRunner(nursery).run(long()) > 10


@in_trio
async def test_work_is_done_in_a_thread_and_its_outcome_comes_back() -> None:
    async with runner() as steps:
        thread, error = await steps.run(working())
        assert thread != threading.current_thread().name
        assert error == "integer division or modulo by zero"


def test_work_can_be_done_here_and_now() -> None:
    def steps() -> Stepwise[int]:
        yield None
        number: int = yield lambda: 41
        return number + 1

    assert run_inline(steps()) == 42


@in_trio
async def test_what_loads_does_not_wait_for_what_computes() -> None:
    """Only one piece of work computes at a time; that one waits here until all others load."""
    loading = threading.Barrier(LOADING_THREADS_MAX + 1)

    class SlowDisk(Load):
        def __init__(self) -> None:
            pass

        def __call__(self) -> None:
            loading.wait(10)

    def compute() -> Stepwise[None]:
        yield lambda: loading.wait(10)

    def load() -> Stepwise[None]:
        yield SlowDisk()

    async with trio.open_nursery() as nursery:
        steps = StepRunner(nursery)
        nursery.start_soon(steps.run, compute())
        for _ in range(LOADING_THREADS_MAX):
            nursery.start_soon(steps.run, load())
    assert not loading.broken


@in_trio
async def test_what_nobody_awaits_says_when_it_fails() -> None:
    failed: list[Exception] = []

    def failing(after: int) -> Stepwise[None]:
        yield from counting(after)
        raise ValueError(str(after))

    def fine() -> Stepwise[None]:
        yield None

    async with runner() as steps:
        steps.start(fine(), failed.append)
        steps.start(failing(1), failed.append)
        assert [str(error) for error in failed] == ["1"]
        steps.start(failing(STEPS_AT_ONCE_MAX + 1), failed.append)
        assert len(failed) == 1
    assert [str(error) for error in failed] == ["1", str(STEPS_AT_ONCE_MAX + 1)]


@pytest.mark.parametrize("count", [0, 1, 7])
def test_a_list_is_made_one_item_at_a_step(count: int) -> None:
    steps = collect(iter(range(count)))
    assert sum(1 for _ in steps) == count
    assert run_inline(collect(iter(range(count)))) == list(range(count))
