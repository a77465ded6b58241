"""One trio task that serves every socket.

A task for each connection costs a scheduler round trip for each request. Here one task awaits the
descriptor of a nested epoll, then serves all sockets that are ready in one sweep, so that the cost
of a wake-up is shared by everything that arrived meanwhile. What must wait (a sync, a long poll, a
topic being made) is parked by its handler and comes back through a callback.

Replies leave at the end of a sweep. A peer that is woken by the first of them then finds the others
as well, and a wake-up costs more than the reply itself.

The interface is small on purpose: whoever is registered has `on_events(mask)`, and never blocks.
"""

from __future__ import annotations

import logging
import os
import select
import threading
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Protocol

import trio

logger = logging.getLogger(__name__)

READABLE = select.EPOLLIN
WRITABLE = select.EPOLLOUT
HANG_UP = select.EPOLLHUP | select.EPOLLERR | select.EPOLLRDHUP

# What one call receives at most: two or three requests of a busy producer.
RECEIVE_BYTES = 262_144
# Sockets asked for at a time.
EVENTS_PER_SWEEP_MAX = 32
# A client that sends its next request as soon as it has its reply is back sooner than a sleeping
# thread is woken. After so many waits in a row that were so short (each with the time that waking
# up takes), the reactor asks again and again for a moment before it sleeps. One moment in which
# nothing comes, and it sleeps again: no processor is kept busy for clients that take their time.
SHORT_WAIT_S = 0.0001
SHORT_WAITS_MIN = 8
ASK_AGAIN_S = 0.00004
# A turn ends after this time, so that other tasks (syncs that ended, timers) get theirs: far below
# the 50 ms that nobody may have to wait. What is left is served in the next turn, in its order.
TURN_SECONDS_MAX = 0.005


class Pollable(Protocol):
    """Something with a socket, registered with the reactor."""

    def on_events(self, mask: int) -> None: ...
    def close(self) -> None: ...


class Flushable(Protocol):
    """Something that has replies to send, or requests of this sweep to end."""

    def flush(self) -> None: ...
    def close(self) -> None: ...


class Reactor:
    """Sweeps the sockets that are ready, and then calls whoever asked to run after the sweep."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._pollables: dict[int, Pollable] = {}
        # Reported by the kernel and not served yet.
        self._events: deque[tuple[int, Pollable, int]] = deque()
        self._after_sweep: deque[Callable[[], None]] = deque()
        self._to_end: list[Flushable] = []
        self._to_flush: list[Flushable] = []
        # Whoever is served receives here, and keeps nothing of it but copies.
        self.receive_buffer = memoryview(bytearray(RECEIVE_BYTES))
        # Whether sockets or callbacks are being served right now.
        self.in_turn = False
        # When the turn under way began, on trio's clock.
        self.now = 0.0
        self._turn_ends_at = 0.0
        self._short_waits = 0
        self._wake_up = WakeUp(_nothing)
        self.register(self._wake_up.fd, self._wake_up, READABLE)

    def register(self, fd: int, pollable: Pollable, mask: int) -> None:
        self._pollables[fd] = pollable
        self._epoll.register(fd, mask)

    def modify(self, fd: int, mask: int) -> None:
        self._epoll.modify(fd, mask)

    def unregister(self, fd: int) -> None:
        if self._pollables.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def call_after_sweep(self, callback: Callable[[], None]) -> None:
        """Run `callback` once after the sweep under way, or soon where there is none: the place for
        work that is better done once for many requests than once for each, and for work that
        others must not have to wait for."""
        if not self.in_turn and not self._after_sweep:
            self._wake_up.set()
        self._after_sweep.append(callback)

    def end_after_sweep(self, flushable: Flushable) -> None:
        """End, in this turn and before anybody is called back, what was put off for the other
        requests of this sweep."""
        assert self.in_turn
        self._to_end.append(flushable)

    def flush_after_sweep(self, flushable: Flushable) -> None:
        """Send the replies of a connection together with those of the others, in this turn."""
        assert self.in_turn
        self._to_flush.append(flushable)

    def let_it_come(self) -> None:
        """Something large is on its way, so wait for it asleep: whoever asks too early gets it in
        small pieces, each of which costs as much as the whole."""
        self._short_waits = 0

    def turn_is_over(self) -> bool:
        """Whether whoever is being served should leave the rest of its work for the next turn."""
        return perf_counter() > self._turn_ends_at

    async def run(self) -> None:
        while True:
            if self._events or self._after_sweep:
                await trio.lowlevel.checkpoint()
            else:
                await self._wait()
            self._take_turn()

    async def _wait(self) -> None:
        began_at = perf_counter()
        await trio.lowlevel.wait_readable(self._epoll.fileno())
        is_short = perf_counter() - began_at < SHORT_WAIT_S
        self._short_waits = self._short_waits + 1 if is_short else 0

    def _take_turn(self) -> None:
        self.in_turn = True
        self.now = trio.current_time()
        ends_at = self._turn_ends_at = perf_counter() + TURN_SECONDS_MAX
        while True:
            if not self._events:
                self._poll()
            if not self._events and not self._after_sweep and not self._ask_again():
                break
            self._serve_events()
            if self._to_end:
                self._end_requests()
            if self._after_sweep:
                self._call_waiting()
                if self._to_end:
                    self._end_requests()
            if self._to_flush:
                to_flush, self._to_flush = self._to_flush, []
                self._flush(to_flush)
            if perf_counter() > ends_at:
                break
        self.in_turn = False

    def _end_requests(self) -> None:
        to_end, self._to_end = self._to_end, []
        self._flush(to_end)

    def _flush(self, flushables: list[Flushable]) -> None:
        for flushable in flushables:
            try:
                flushable.flush()
            except Exception:
                logger.exception("closing %r after a fault in the broker", flushable)
                flushable.close()

    def _poll(self) -> None:
        pollables = self._pollables
        for fd, mask in self._epoll.poll(0, EVENTS_PER_SWEEP_MAX):
            self._events.append((fd, pollables[fd], mask))

    def _ask_again(self) -> bool:
        """Poll for a moment, if lately something came at once; say whether something did."""
        if self._short_waits < SHORT_WAITS_MIN:
            return False
        gives_up_at = perf_counter() + ASK_AGAIN_S
        while perf_counter() < gives_up_at:
            self._poll()
            if self._events:
                return True
        self._short_waits = 0
        return False

    def _serve_events(self) -> None:
        events = self._events
        pollables = self._pollables
        while events:
            fd, pollable, mask = events.popleft()
            # It may have been closed meanwhile, and its descriptor may be another's by now.
            if pollables.get(fd) is pollable:
                try:
                    pollable.on_events(mask)
                except Exception:
                    logger.exception("closing %r after a fault in the broker", pollable)
                    pollable.close()
                if perf_counter() > self._turn_ends_at:
                    return

    def _call_waiting(self) -> None:
        """Those that come while others are called wait for the next sweep."""
        waiting = self._after_sweep
        # They have a time of their own, so that busy sockets can't keep them from their turn.
        self._turn_ends_at = perf_counter() + TURN_SECONDS_MAX
        for _ in range(len(waiting)):
            try:
                waiting.popleft()()
            except Exception:
                logger.exception("a fault in the broker after a sweep")
            if self.turn_is_over():
                return

    def close(self) -> None:
        self._wake_up.close()
        self._epoll.close()


class WakeUp:
    """Wakes the reactor from another task or thread, to call back there."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._callback = callback
        self._lock = threading.Lock()
        self._closed = False

    def set(self) -> None:
        # A thread that comes late must not write to a descriptor that is another's by now.
        with self._lock:
            if not self._closed:
                os.eventfd_write(self.fd, 1)

    def on_events(self, mask: int) -> None:
        os.eventfd_read(self.fd)
        self._callback()

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self.fd)


def _nothing() -> None:
    pass
