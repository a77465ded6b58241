"""Syncs that the kernel does by itself, and tells the event loop of.

Linux takes an `fdatasync` as an order. So nothing is handed to a thread and back: two threads of
one interpreter take turns, and each turn costs more than the order. Many files are ordered by one
call. There are two ways to order (`kernel_ring.py`, and `kernel_aio.py` where that is forbidden);
where there is neither (another system or processor, a strict sandbox), `open_kernel_syncs` gives
None, and threads do the work.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from klamm.broker.kernel_aio import open_aio_orders
from klamm.broker.kernel_ring import open_ring_orders
from klamm.broker.reactor import READABLE, Reactor
from klamm.broker.sync_threads import Done

if TYPE_CHECKING:
    from klamm.log.fs import OsFile

# Orders under way; whatever comes beyond goes to threads.
ORDERS_MAX = 64


class Orders(Protocol):
    """One way to have files synced by the kernel."""

    @property
    def fd(self) -> int:
        """Readable when a sync has ended."""

    def submit(self, fds: Sequence[int], first: int) -> int:
        """Have files synced, by numbers from `first` on; return how many the kernel has taken."""

    def take_results(self) -> Sequence[tuple[int, int]] | None:
        """The number of each sync that has ended and 0, or the negative code of its error; None
        when the kernel can't say what has become of them."""

    def close(self, *, is_idle: bool) -> None: ...


class KernelSyncs:
    """Orders under way, and who waits for each.

    Args:
        reactor: where `done` is called.
    """

    def __init__(self, reactor: Reactor, orders: Orders) -> None:
        self.orders = orders
        # By the number of the order. The file is kept open until its sync has ended.
        self.under_way: dict[int, tuple[OsFile, Done]] = {}
        self._ordered = 0
        self._reactor = reactor
        reactor.register(orders.fd, self, READABLE)

    def submit(self, wanted: Sequence[tuple[OsFile, Done]]) -> int:
        """Have files synced, and each `done` called with what went wrong; return how many of them,
        from the first on, the kernel has taken."""
        count = min(len(wanted), ORDERS_MAX - len(self.under_way))
        if count <= 0:
            return 0
        first = self._ordered + 1
        taken = self.orders.submit([file.fileno() for file, _ in wanted[:count]], first)
        self.under_way.update(zip(range(first, first + taken), wanted, strict=False))
        self._ordered += taken
        return taken

    def on_events(self, mask: int) -> None:
        # All are read before the first is told: telling may lead to the next order.
        ended = self.orders.take_results()
        if ended is None:
            self._fail_all()
            return
        for number, result in ended:
            _, done = self.under_way.pop(number)
            done(None if result == 0 else OSError(-result, os.strerror(-result)))

    def _fail_all(self) -> None:
        """Nobody can say any more what is on disk."""
        failed = list(self.under_way.values())
        self.under_way.clear()
        for _, done in failed:
            done(OSError("the kernel has lost the order"))

    def close(self) -> None:
        self._reactor.unregister(self.orders.fd)
        self.orders.close(is_idle=not self.under_way)


def open_kernel_syncs(reactor: Reactor) -> KernelSyncs | None:
    """Return None where the kernel can't or may not do this."""
    if sys.platform != "linux":
        return None
    # None of these calls waits for anything, so the interpreter is not let go for them.
    call = ctypes.PyDLL(None).syscall
    call.restype = ctypes.c_long
    orders: Orders | None = open_ring_orders(call, ORDERS_MAX)
    if orders is None:
        orders = open_aio_orders(call, ORDERS_MAX)
    return None if orders is None else KernelSyncs(reactor, orders)
