"""Long work in steps, so that everybody gets a turn.

Whatever may take long (a request about thousands of partitions) is a generator that yields where
others may have their turn, and returns its result. What takes long by itself and touches
no state of the broker is yielded as a function (`Work`): it runs in a thread, and its result is
sent back. Steps are better than a thread for everything else: a thread that computes takes the
interpreter away from the event loop for five milliseconds after each system call of the loop.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator
from itertools import islice
from typing import Any, TypeAlias, TypeVar

import trio

from klamm.broker.reactor import TURN_SECONDS_MAX
from klamm.log.readiness import Load

T = TypeVar("T")
Key = TypeVar("Key", str, int)

Work: TypeAlias = Callable[[], Any]
Stepwise: TypeAlias = Generator[Work | None, Any, T]

# Items of a step that does next to nothing with each: some ten microseconds in all.
ITEMS_PER_STEP_MAX = 200
# Threads that read from the disk what somebody fetches.
LOADING_THREADS_MAX = 8


class StepRunner:
    """Takes the steps of long work, a turn at a time.

    Args:
        nursery: for what nobody awaits.
    """

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._loading = trio.CapacityLimiter(LOADING_THREADS_MAX)
        # One batch is opened at a time: it may need much memory, and threads that compute take
        # turns with the event loop.
        self._computing = trio.CapacityLimiter(1)

    def start(self, steps: Stepwise[None], failed: Callable[[Exception], None]) -> None:
        """Take all steps, the rest of them in a task if they are many."""
        try:
            rest = self.begin(steps)
        except Exception as error:
            failed(error)
        else:
            if rest is not None:
                self._nursery.start_soon(self._finish, rest, failed)

    async def _finish(self, rest: Awaitable[None], failed: Callable[[Exception], None]) -> None:
        try:
            await rest
        except Exception as error:
            failed(error)

    def begin(self, steps: Stepwise[T]) -> T | Awaitable[T]:
        """Take all steps now if one turn is enough; otherwise return what is left to await."""
        try:
            work = _take_one_turn(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        return self._run(steps, work)

    async def run(self, steps: Stepwise[T]) -> T:
        """Take all steps; others get their turn in between when it takes long."""
        return await self._run(steps, None)

    async def _run(self, steps: Stepwise[T], work: Work | None) -> T:
        try:
            while True:
                if work is None:
                    work = _take_one_turn(steps)
                    await trio.lowlevel.checkpoint()
                    continue
                limiter = self._loading if isinstance(work, Load) else self._computing
                try:
                    result = await trio.to_thread.run_sync(work, limiter=limiter)
                except Exception as error:
                    work = steps.throw(error)
                else:
                    work = steps.send(result)
        except StopIteration as end:
            value: T = end.value
            return value


def collect(items: Iterable[T]) -> Stepwise[list[T]]:
    """A list of what an iterator makes, one item at a step."""
    collected = []
    for item in items:
        collected.append(item)
        yield None
    return collected


def gather(items: Iterable[T]) -> Stepwise[set[T]]:
    """The set of what an iterator makes."""
    gathered: set[T] = set()
    for some in portions(items):
        gathered.update(some)
        yield None
    return gathered


def count(items: Iterable[T]) -> Stepwise[Counter[T]]:
    """How often each item comes, in the order in which they first came."""
    counts: Counter[T] = Counter()
    for some in portions(items):
        counts.update(some)
        yield None
    return counts


def sort(items: Iterable[Key]) -> Stepwise[Iterator[Key]]:
    """The items in their order, to be taken one by one: what is sorted are portions, and each item
    that is taken is the least of those that come next in them."""
    ordered = []
    for some in portions(items):
        some.sort()
        ordered.append(some)
        yield None
    return iter(ordered[0]) if len(ordered) == 1 else heapq.merge(*ordered)


def let_go(items: list[Any]) -> Stepwise[None]:
    """Empty a list, the first items first. To free what tens of thousands of items hold takes as
    long as it took to make it, so nobody else may hold them or the list is emptied in vain."""
    items.reverse()
    while items:
        del items[-ITEMS_PER_STEP_MAX:]
        yield None


def portions(items: Iterable[T], count: int = ITEMS_PER_STEP_MAX) -> Iterator[list[T]]:
    """As many items at a time as one step may have."""
    iterator = iter(items)
    while some := list(islice(iterator, count)):
        yield some


def _take_one_turn(steps: Stepwise[T]) -> Work | None:
    """Raises StopIteration at the end of the steps."""
    ends_at = time.perf_counter() + TURN_SECONDS_MAX
    work = next(steps)
    while work is None and time.perf_counter() < ends_at:
        work = next(steps)
    return work
