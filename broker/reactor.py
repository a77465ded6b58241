"""One trio task that serves every socket.

A task for each connection costs a scheduler round trip for each request. Here one task awaits the
descriptor of a nested epoll, then serves all sockets that are ready in one sweep, so that the cost
of a wake-up is shared by everything that arrived meanwhile. What must wait (a sync, a long poll, a
topic being made) is parked by its handler and comes back through a callback.

The interface is small on purpose: whoever is registered has `on_events(mask)`, and never blocks.
"""

from __future__ import annotations

import logging
import select
import time
from collections.abc import Callable
from typing import Protocol

import trio

logger = logging.getLogger(__name__)

READABLE = select.EPOLLIN
WRITABLE = select.EPOLLOUT
HANG_UP = select.EPOLLHUP | select.EPOLLERR | select.EPOLLRDHUP

# A sweep serves at most this many sockets, so that one turn stays far below the 50 ms that the
# rest of the process may have to wait for it.
EVENTS_PER_SWEEP_MAX = 32
# Sweeps in a row without giving other tasks (syncs that ended, timers) their turn.
TURN_SECONDS_MAX = 0.005


class Pollable(Protocol):
    """Something with a socket, registered with the reactor."""

    def on_events(self, mask: int) -> None: ...
    def close(self) -> None: ...


class Reactor:
    """Sweeps the sockets that are ready, and then calls whoever asked to run after the sweep."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._pollables: dict[int, Pollable] = {}
        self._after_sweep: list[Callable[[], None]] = []
        self._sweeping = False

    def register(self, fd: int, pollable: Pollable, mask: int) -> None:
        self._pollables[fd] = pollable
        self._epoll.register(fd, mask)

    def modify(self, fd: int, mask: int) -> None:
        self._epoll.modify(fd, mask)

    def unregister(self, fd: int) -> None:
        if self._pollables.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def call_after_sweep(self, callback: Callable[[], None]) -> None:
        """Run `callback` once after the sweep under way (or at once where there is none): the place
        for work that is better done once for many requests than once for each."""
        if self._sweeping:
            self._after_sweep.append(callback)
        else:
            callback()

    async def run(self) -> None:
        epoll = self._epoll
        clock = time.perf_counter
        while True:
            await trio.lowlevel.wait_readable(epoll.fileno())
            turn_ends = clock() + TURN_SECONDS_MAX
            while events := epoll.poll(0, EVENTS_PER_SWEEP_MAX):
                self._sweep(events)
                if clock() > turn_ends:
                    break

    def _sweep(self, events: list[tuple[int, int]]) -> None:
        pollables = self._pollables
        self._sweeping = True
        for fd, mask in events:
            # An earlier socket of this sweep may have closed this one.
            pollable = pollables.get(fd)
            if pollable is not None:
                try:
                    pollable.on_events(mask)
                except Exception:
                    logger.exception("closing %r after a fault in the broker", pollable)
                    pollable.close()
        self._sweeping = False
        while self._after_sweep:
            callbacks, self._after_sweep = self._after_sweep, []
            for callback in callbacks:
                try:
                    callback()
                except Exception:
                    logger.exception("a fault in the broker after a sweep")

    def close(self) -> None:
        self._epoll.close()
