"""Orders to the kernel by io_uring.

Orders lie in memory that is shared with the kernel, and so do their results. The kernel has threads
of its own for them, which run wherever a processor is free; with `io_submit` a sync waits for the
processor that has ordered it (measured beside a busy event loop: 0.3 ms here, 4 ms there). Many
containers forbid these calls, so `open_ring_orders` may give None.

Only for x86-64: other processors may read a result before the count that says it is there, and
Python has no way to forbid that.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress

MACHINE = "x86_64"
# The numbers of io_uring_setup and io_uring_enter.
SETUP, ENTER = 425, 426
# struct io_uring_params: entries of both rings, flags, thread's processor and idle time, features,
# a descriptor, three reserved; then where things lie in each ring, ten numbers each.
PARAMETERS = struct.Struct("=10I10I10I")
FEATURE_SINGLE_MMAP = 1
RINGS_AT, ORDERS_AT = 0, 0x10000000
# struct io_uring_sqe: opcode, flags, priority, descriptor, offset, address, size, flags of a sync,
# data, and four that a sync has no use for.
ORDER = struct.Struct("=BBHiQQIIQHHiQQ")
OPCODE_FSYNC = 3
DATA_ONLY = 1
# struct io_uring_cqe: data, result, flags.
RESULT = struct.Struct("=QiI")
COUNTER_MASK = 0xFFFFFFFF


class RingOrders:
    """The rings of orders and of results.

    The kernel reads orders only while it is called. What it has not taken then is taken back, and
    never lies in the ring when another order is added.

    Args:
        fd: what io_uring_setup has made; readable when there are results.
        parameters: what it says about the rings.
    """

    def __init__(self, call: Callable[..., int], fd: int, parameters: Sequence[int]) -> None:
        self.fd = fd
        self._call = call
        orders_max, results_max = parameters[:2]
        _, tail, mask, _, _, _, indexes, _, _, _ = parameters[10:20]
        head_of_results, tail_of_results, mask_of_results, _, _, results, _, _, _, _ = parameters[
            20:
        ]
        size = max(indexes + 4 * orders_max, results + RESULT.size * results_max)
        self._rings = mmap.mmap(fd, size, offset=RINGS_AT)
        self._orders = mmap.mmap(fd, orders_max * ORDER.size, offset=ORDERS_AT)
        self._numbers = memoryview(self._rings).cast("I")
        # Places in `_numbers`, and in bytes where results begin.
        self._tail_at = tail // 4
        self._head_of_results_at = head_of_results // 4
        self._tail_of_results_at = tail_of_results // 4
        self._results_at = results
        self._mask = self._numbers[mask // 4]
        self._mask_of_results = self._numbers[mask_of_results // 4]
        # Which order stands at which place never changes.
        for index in range(orders_max):
            self._numbers[indexes // 4 + index] = index

    def submit(self, fds: Sequence[int], first: int) -> int:
        tail = self._numbers[self._tail_at]
        for index, fd in enumerate(fds):
            place = (tail + index & self._mask) * ORDER.size
            ORDER.pack_into(
                *(self._orders, place, OPCODE_FSYNC, 0, 0, fd, 0, 0, 0, DATA_ONLY, first + index),
                *(0, 0, 0, 0, 0),
            )
        self._numbers[self._tail_at] = tail + len(fds) & COUNTER_MASK
        taken = max(0, self._call(ENTER, self.fd, len(fds), 0, 0, None, 0))
        if taken < len(fds):
            self._numbers[self._tail_at] = tail + taken & COUNTER_MASK
        return taken

    def take_results(self) -> list[tuple[int, int]]:
        head = self._numbers[self._head_of_results_at]
        count = self._numbers[self._tail_of_results_at] - head & COUNTER_MASK
        taken = [
            RESULT.unpack_from(
                self._rings,
                self._results_at + (head + index & self._mask_of_results) * RESULT.size,
            )[:2]
            for index in range(count)
        ]
        self._numbers[self._head_of_results_at] = head + count & COUNTER_MASK
        return taken

    def close(self, *, is_idle: bool) -> None:
        """The kernel ends what is under way by itself."""
        self._numbers.release()
        self._rings.close()
        self._orders.close()
        os.close(self.fd)


def open_ring_orders(call: Callable[..., int], orders_max: int) -> RingOrders | None:
    """Return None where the kernel can't or may not do this."""
    if platform.machine() != MACHINE:
        return None
    parameters = ctypes.create_string_buffer(PARAMETERS.size)
    fd = call(SETUP, orders_max, parameters)
    if fd < 0:
        return None
    said = PARAMETERS.unpack(parameters)
    features = said[5]
    # Linux before 5.4 lacks it.
    if features & FEATURE_SINGLE_MMAP:
        with suppress(OSError):
            return RingOrders(call, fd, said)
    os.close(fd)
    return None
