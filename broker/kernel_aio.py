"""Orders to the kernel by `io_submit`, for where io_uring is forbidden.

Linux takes an `fdatasync` as an order and counts it in an eventfd when it is done. Python has no
function for it, so the calls are made by their numbers.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Callable, Sequence

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


class AioOrders:
    """What io_setup has made.

    Args:
        call: the function `syscall` of the C library.
        numbers: those of this machine's calls.
        orders_max: how many may be under way.
    """

    def __init__(
        self,
        call: Callable[..., int],
        numbers: tuple[int, int, int, int],
        context: ctypes.c_ulong,
        orders_max: int,
    ) -> None:
        self._call = call
        _, self._destroy, self._submit, self._get_events = numbers
        self._context = context
        self._orders_max = orders_max
        # Written anew for each call: the kernel copies an order when it takes it.
        self._orders = ctypes.create_string_buffer(ORDER.size * orders_max)
        start = ctypes.addressof(self._orders)
        self._addresses = (ctypes.c_void_p * orders_max)(
            *range(start, start + ORDER.size * orders_max, ORDER.size)
        )
        self._completions = ctypes.create_string_buffer(COMPLETION.size * orders_max)
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def submit(self, fds: Sequence[int], first: int) -> int:
        for index, fd in enumerate(fds):
            ORDER.pack_into(
                *(self._orders, index * ORDER.size, first + index, 0, 0, OPCODE_FDSYNC, 0),
                *(fd, 0, 0, 0, 0, FLAG_EVENTFD, self.fd),
            )
        return max(0, self._call(self._submit, self._context, len(fds), self._addresses))

    def take_results(self) -> list[tuple[int, int]] | None:
        os.eventfd_read(self.fd)
        count = self._call(
            *(self._get_events, self._context, 0, self._orders_max, self._completions, None)
        )
        if count < 0:
            return None
        return [
            COMPLETION.unpack_from(self._completions, index * COMPLETION.size)[0:3:2]
            for index in range(count)
        ]

    def close(self, *, is_idle: bool) -> None:
        """Give the kernel its memory back, unless a sync is still under way: after a halt nobody
        waits for it, and giving back would."""
        os.close(self.fd)
        if is_idle:
            self._call(self._destroy, self._context)


def open_aio_orders(call: Callable[..., int], orders_max: int) -> AioOrders | None:
    """Return None where the kernel can't or may not do this."""
    numbers = CALLS_BY_MACHINE.get(platform.machine())
    if numbers is None:
        return None
    context = ctypes.c_ulong()
    if call(numbers[0], orders_max, ctypes.byref(context)) != 0:
        return None
    return AioOrders(call, numbers, context, orders_max)
