"""Deadlines of parked requests: one heap, one task, nothing per request but a heap entry."""

from __future__ import annotations

import heapq
import logging
import time
from collections.abc import Callable
from itertools import count

import trio

from klamm.broker.reactor import TURN_SECONDS_MAX

logger = logging.getLogger(__name__)

# Cancelled timers that may wait in the heap before it is rebuilt without them.
CANCELLED_MAX = 1_000


class Timer:
    """A deadline that can be cancelled."""

    __slots__ = ("_timers", "callback")

    def __init__(self, timers: Timers, callback: Callable[[], None]) -> None:
        self._timers = timers
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        if self.callback is not None:
            self.callback = None
            self._timers.note_cancelled()


class Timers:
    """Runs callbacks at their deadlines (trio's monotonic clock, seconds)."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._sequence = count()
        self._cancelled = 0
        self._earlier = trio.Event()

    def call_at(self, deadline: float, callback: Callable[[], None]) -> Timer:
        timer = Timer(self, callback)
        heap = self._heap
        if not heap or deadline < heap[0][0]:
            self._earlier.set()
        heapq.heappush(heap, (deadline, next(self._sequence), timer))
        return timer

    def call_after(self, seconds: float, callback: Callable[[], None]) -> Timer:
        return self.call_at(trio.current_time() + seconds, callback)

    def note_cancelled(self) -> None:
        """Long polls mostly end early: without this a client with a very long wait would leave a
        heap of dead timers behind."""
        self._cancelled += 1
        if self._cancelled > CANCELLED_MAX and self._cancelled > len(self._heap) // 2:
            self._heap[:] = [entry for entry in self._heap if entry[2].callback is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0

    async def run(self) -> None:
        heap = self._heap
        while True:
            self._earlier = trio.Event()
            with trio.move_on_at(heap[0][0] if heap else float("inf")):
                await self._earlier.wait()
            now = trio.current_time()
            turn_ends_at = time.perf_counter() + TURN_SECONDS_MAX
            while heap and heap[0][0] <= now:
                timer = heapq.heappop(heap)[2]
                # What has fired can't be cancelled any more.
                callback, timer.callback = timer.callback, None
                if callback is None:
                    self._cancelled -= 1
                    continue
                try:
                    callback()
                except Exception:
                    # One request's fault must not end the deadlines of all others.
                    logger.exception("a timer failed")
                if time.perf_counter() > turn_ends_at:
                    # Many deadlines at once: the next round does the rest.
                    await trio.lowlevel.checkpoint()
                    break
