"""Long work in steps: few are taken at once, many in turns, and threads do what they are given."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TypeVar

import pytest
import trio

from klamm.broker import steps as steps_module
from klamm.broker.reactor import TURN_SECONDS_MAX
from klamm.broker.steps import (
    ITEMS_PER_STEP_MAX,
    LOADING_THREADS_MAX,
    StepRunner,
    Stepwise,
    collect,
    count,
    gather,
    let_go,
    sort,
)
from klamm.broker.tests.in_trio import in_trio
from klamm.log.readiness import Load
from klamm.log.work import run_inline

T = TypeVar("T")
STEPS_PER_TURN = 10


@pytest.fixture
def _slow_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the clock finds that a tenth of a turn has gone."""
    looks = itertools.count(step=TURN_SECONDS_MAX / STEPS_PER_TURN)
    monkeypatch.setattr(steps_module, "time", SimpleNamespace(perf_counter=looks.__next__))


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


@pytest.mark.usefixtures("_slow_steps")
@in_trio
async def test_short_steps_are_taken_at_once() -> None:
    async with runner() as steps:
        assert steps.begin(counting(STEPS_PER_TURN - 1)) == STEPS_PER_TURN - 1


@pytest.mark.interpreted
@pytest.mark.usefixtures("_slow_steps")
@in_trio
async def test_long_steps_are_taken_in_turns() -> None:
    async with runner() as steps:
        rest = steps.begin(counting(STEPS_PER_TURN + 1))
        assert not isinstance(rest, int)
        assert await rest == STEPS_PER_TURN + 1
        assert await steps.run(counting(1000)) == 1000


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


@pytest.mark.interpreted
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


@pytest.mark.interpreted
@pytest.mark.usefixtures("_slow_steps")
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
        steps.start(failing(STEPS_PER_TURN + 1), failed.append)
        assert len(failed) == 1
    assert [str(error) for error in failed] == ["1", str(STEPS_PER_TURN + 1)]


@pytest.mark.parametrize("count", [0, 1, 7])
def test_a_list_is_made_one_item_at_a_step(count: int) -> None:
    steps = collect(iter(range(count)))
    assert sum(1 for _ in steps) == count
    assert run_inline(collect(iter(range(count)))) == list(range(count))


# As many as a request may have, each twice and none in its place.
MANY = 49_000
NAMES = [f"topic-{number * 7919 % MANY // 2}" for number in range(MANY)]


def taken_alone(steps: Stepwise[T]) -> tuple[int, T]:
    """How many steps there are, and what they come to."""
    taken = 0
    try:
        while True:
            next(steps)
            taken += 1
    except StopIteration as end:
        return taken, end.value


def test_a_set_and_a_count_are_made_some_items_at_a_step() -> None:
    portions = MANY // ITEMS_PER_STEP_MAX
    assert taken_alone(gather(iter(NAMES))) == (portions, set(NAMES))
    taken, counts = taken_alone(count(iter(NAMES)))
    assert (taken, counts) == (portions, Counter(NAMES))
    assert list(counts) == list(dict.fromkeys(NAMES))


def test_a_sort_never_sorts_much_at_once() -> None:
    taken, in_order = taken_alone(sort(iter(NAMES)))
    assert taken == MANY // ITEMS_PER_STEP_MAX
    assert not isinstance(in_order, list), "the rest of the work is done as they are taken"
    assert list(in_order) == sorted(NAMES)


@pytest.mark.parametrize("items", [[], [1], [2, 1], [3, 1, 2] * ITEMS_PER_STEP_MAX])
def test_a_sort_of_few(items: list[int]) -> None:
    assert list(run_inline(sort(items))) == sorted(items)


def test_what_is_let_go_of_goes_some_items_at_a_step_and_the_first_first() -> None:
    items = list(range(3 * ITEMS_PER_STEP_MAX))
    steps = let_go(items)
    for left in (2, 1, 0):
        next(steps)
        assert len(items) == left * ITEMS_PER_STEP_MAX
        assert 0 not in items
    assert taken_alone(steps) == (0, None)
