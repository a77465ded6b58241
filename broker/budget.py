"""Memory for request bodies, reserved before a body is read.

A peer declares the size of its frame before it sends it. Room is taken from one budget
(`queued.max.request.bytes`) at that moment; while there is none the connection is simply not read,
and TCP holds the sender back. First come, first served: a large frame cannot be starved by a
stream of small ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class MemoryBudget:
    """A counted amount of bytes with a queue of those that wait for room."""

    def __init__(self, bytes_max: int) -> None:
        assert bytes_max > 0
        self._free = bytes_max
        self.bytes_max = bytes_max
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()

    @property
    def bytes_reserved(self) -> int:
        return self.bytes_max - self._free

    def reserve_now(self, size: int) -> bool:
        """Take `size` bytes, unless there is no room or others wait for it."""
        if self._waiting or not self._fits(size):
            return False
        self._free -= size
        return True

    def reserve(self, size: int, granted: Callable[[], None]) -> bool:
        """Take `size` bytes. True: taken now. False: `granted` is called once they are."""
        if self.reserve_now(size):
            return True
        self._waiting.append((size, granted))
        return False

    def withdraw(self, granted: Callable[[], None]) -> None:
        """Forget a reservation that still waits (its connection has gone)."""
        self._waiting = deque(entry for entry in self._waiting if entry[1] != granted)
        self._grant()

    def release(self, size: int) -> None:
        self._free += size
        assert self._free <= self.bytes_max
        self._grant()

    def _fits(self, size: int) -> bool:
        # A frame larger than the whole budget is served when nothing else is, else it never could.
        return size <= self._free or self._free == self.bytes_max

    def _grant(self) -> None:
        while self._waiting and self._fits(self._waiting[0][0]):
            size, granted = self._waiting.popleft()
            self._free -= size
            granted()
