"""Syncs that the kernel does by itself, and tells the event loop of.

Linux takes an `fdatasync` as an order (`io_submit`) and counts it in an eventfd when it is done. So
nothing is handed to a thread and back: two threads of one interpreter take turns, and each turn
costs more than the order. Many files are ordered by one call. Python has no function for it, so the
calls are made by number; where that is not possible (another system or processor, a sandbox that
forbids it), `open_kernel_syncs` gives None, and threads do the work.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from klamm.broker.reactor import READABLE, Reactor
from klamm.broker.sync_threads import Done

if TYPE_CHECKING:
    from klamm.log.fs import OsFile

# Orders under way; whatever comes beyond goes to threads.
ORDERS_MAX = 64

# The numbers of io_setup, io_destroy, io_submit and io_getevents.
CALLS_BY_MACHINE = {
    "x86_64": (206, 207, 209, 208),
    "aarch64": (0, 1, 2, 4),
}
# struct iocb: data, key, rw_flags, opcode, priority, descriptor, buffer, size, offset, reserved,
# flags, eventfd.
ORDER = struct.Struct("=QIIHhIQQqQII")
OPCODE_FDSYNC = 3
FLAG_EVENTFD = 1
# struct io_event: data, address of the order, result, second result.
COMPLETION = struct.Struct("=QQqq")


class KernelSyncs:
    """Orders under way, and who waits for each.

    Args:
        reactor: where `done` is called.
        call: the function `syscall` of the C library.
        numbers: those of this machine's calls.
        context: what io_setup has made.
    """

    def __init__(
        self,
        reactor: Reactor,
        call: Callable[..., int],
        numbers: tuple[int, int, int, int],
        context: ctypes.c_ulong,
    ) -> None:
        self._call = call
        _, self._destroy, self._submit, self._get_events = numbers
        self._context = context
        # Written anew for each call: the kernel copies an order when it takes it.
        self._orders = ctypes.create_string_buffer(ORDER.size * ORDERS_MAX)
        start = ctypes.addressof(self._orders)
        self._addresses = (ctypes.c_void_p * ORDERS_MAX)(
            *range(start, start + ORDER.size * ORDERS_MAX, ORDER.size)
        )
        self._completions = ctypes.create_string_buffer(COMPLETION.size * ORDERS_MAX)
        # The file is kept open until its sync has ended.
        self._under_way: dict[int, tuple[OsFile, Done]] = {}
        self._ordered = 0
        self._reactor = reactor
        self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        reactor.register(self._fd, self, READABLE)

    def submit(self, wanted: Sequence[tuple[OsFile, Done]]) -> int:
        """Have files synced, and each `done` called with what went wrong; return how many of them,
        from the first on, the kernel has taken."""
        count = min(len(wanted), ORDERS_MAX - len(self._under_way))
        if count <= 0:
            return 0
        first = self._ordered + 1
        for index in range(count):
            ORDER.pack_into(
                *(self._orders, index * ORDER.size, first + index, 0, 0, OPCODE_FDSYNC, 0),
                *(wanted[index][0].fileno(), 0, 0, 0, 0, FLAG_EVENTFD, self._fd),
            )
        taken = max(0, self._call(self._submit, self._context, count, self._addresses))
        self._under_way.update(zip(range(first, first + taken), wanted, strict=False))
        self._ordered += taken
        return taken

    def on_events(self, mask: int) -> None:
        os.eventfd_read(self._fd)
        count = self._call(self._get_events, self._context, 0, ORDERS_MAX, self._completions, None)
        if count < 0:
            self._fail_all()
            return
        # All are read before the first is told: telling may lead to the next order.
        ended = [
            COMPLETION.unpack_from(self._completions, i * COMPLETION.size) for i in range(count)
        ]
        for number, _, result, _ in ended:
            _, done = self._under_way.pop(number)
            done(None if result == 0 else OSError(-result, os.strerror(-result)))

    def _fail_all(self) -> None:
        """Nobody can say any more what is on disk."""
        failed = list(self._under_way.values())
        self._under_way.clear()
        for _, done in failed:
            done(OSError("the kernel has lost the order"))

    def close(self) -> None:
        """Give the kernel its memory back, unless a sync is still under way: after a halt nobody
        waits for it, and giving back would."""
        self._reactor.unregister(self._fd)
        os.close(self._fd)
        if not self._under_way:
            self._call(self._destroy, self._context)


def open_kernel_syncs(reactor: Reactor) -> KernelSyncs | None:
    """Return None where the kernel can't or may not do this."""
    numbers = CALLS_BY_MACHINE.get(platform.machine())
    if sys.platform != "linux" or numbers is None:
        return None
    # None of these calls waits for anything, so the interpreter is not let go for them.
    call = ctypes.PyDLL(None).syscall
    call.restype = ctypes.c_long
    context = ctypes.c_ulong()
    if call(numbers[0], ORDERS_MAX, ctypes.byref(context)) != 0:
        return None
    return KernelSyncs(reactor, call, numbers, context)
