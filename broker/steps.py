"""Long work in steps, so that everybody gets a turn.

Whatever may take long (a request about thousands of partitions) is a generator that yields where
others may have their turn, and returns its result. What takes long by itself and touches
no state of the broker is yielded as a function (`Work`): it runs in a thread, and its result is
sent back. Steps are better than a thread for everything else: a thread that computes takes the
interpreter away from the event loop for five milliseconds after each system call of the loop.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Generator, Iterable
from typing import Any, TypeAlias, TypeVar

import trio

from klamm.broker.reactor import TURN_SECONDS_MAX
from klamm.log.readiness import Load

T = TypeVar("T")

Work: TypeAlias = Callable[[], Any]
Stepwise: TypeAlias = Generator[Work | None, Any, T]

# Steps (partitions, mostly) that are taken without looking at the clock.
STEPS_AT_ONCE_MAX = 200
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
        """Take all steps now if they are few; otherwise return what is left to await."""
        work: Work | None = None
        try:
            for _ in range(STEPS_AT_ONCE_MAX):
                work = next(steps)
                if work is not None:
                    break
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


def run_inline(steps: Stepwise[T]) -> T:
    """Take all steps here and now, and do their work."""
    try:
        work = next(steps)
        while True:
            work = steps.send(None if work is None else work())
    except StopIteration as end:
        result: T = end.value
        return result


def collect(items: Iterable[T]) -> Stepwise[list[T]]:
    """A list of what an iterator makes, one item at a step."""
    collected = []
    for item in items:
        collected.append(item)
        yield None
    return collected


def _take_one_turn(steps: Stepwise[T]) -> Work | None:
    """Raises StopIteration at the end of the steps."""
    ends_at = time.perf_counter() + TURN_SECONDS_MAX
    work = next(steps)
    while work is None and time.perf_counter() < ends_at:
        work = next(steps)
    return work
