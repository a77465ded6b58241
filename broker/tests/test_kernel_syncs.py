"""Syncs that the kernel does by itself, in each of its ways."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import trio

from klamm.broker.flusher import Flusher
from klamm.broker.kernel_aio import COMPLETION, ORDER, AioOrders, open_aio_orders
from klamm.broker.kernel_ring import ENTER, RingOrders, open_ring_orders
from klamm.broker.kernel_syncs import ORDERS_MAX, KernelSyncs, Orders, open_kernel_syncs
from klamm.broker.reactor import Reactor
from klamm.broker.sync_threads import Done
from klamm.broker.tests.in_trio import in_trio
from klamm.broker.tests.raw_client import batch
from klamm.broker.timers import Timers
from klamm.log.config import LogConfig
from klamm.log.fs import OsFile, OsFileSystem
from klamm.log.manager import LogManager

NOW_MS = 1_700_000_000_000
SUBMIT, GET_EVENTS, DESTROY = 1, 2, 3
NUMBERS = (0, DESTROY, SUBMIT, GET_EVENTS)


@pytest.fixture
def reactor() -> Iterator[Reactor]:
    made = Reactor()
    yield made
    made.close()


@pytest.fixture
def file(tmp_path: Path) -> OsFile:
    return OsFileSystem().open(str(tmp_path / "file"), create=True)


@pytest.fixture(params=[open_ring_orders, open_aio_orders])
def orders(request: pytest.FixtureRequest) -> Orders:
    """Each way that the kernel of this machine has."""
    opened: Orders | None = request.param(system_call(), ORDERS_MAX)
    if opened is None:
        pytest.skip(f"{request.param.__name__}: the kernel of this machine takes no such orders")
    return opened


def system_call() -> Callable[..., int]:
    call = ctypes.PyDLL(None).syscall
    call.restype = ctypes.c_long
    return call


def _nobody_waits(error: Exception | None) -> None:
    pass


class ScriptedKernel:
    """Takes orders, and ends them with the results that it is told."""

    def __init__(self) -> None:
        self.taken: list[tuple[Any, ...]] = []
        self.ended: list[tuple[int, int]] = []
        self.takes_max = ORDERS_MAX
        self.is_broken = False
        self.is_destroyed = False

    def __call__(self, number: int, context: Any, *arguments: Any) -> int:
        if number == SUBMIT:
            count = min(arguments[0], self.takes_max)
            for address in arguments[1][:count]:
                self.taken.append(ORDER.unpack(ctypes.string_at(address, ORDER.size)))
            return count if count else -1
        if number == GET_EVENTS:
            if self.is_broken:
                return -1
            for index, (order_number, result) in enumerate(self.ended):
                COMPLETION.pack_into(
                    arguments[2], index * COMPLETION.size, order_number, 0, result, 0
                )
            count = len(self.ended)
            self.ended.clear()
            return count
        assert number == DESTROY
        self.is_destroyed = True
        return 0

    def end(self, syncs: KernelSyncs, results: dict[int, int]) -> None:
        self.ended = list(results.items())
        os.eventfd_write(self.taken[0][-1], len(results))
        syncs.on_events(0)


def scripted(reactor: Reactor, kernel: ScriptedKernel) -> KernelSyncs:
    orders = AioOrders(kernel, NUMBERS, ctypes.c_ulong(), ORDERS_MAX)
    return KernelSyncs(reactor, orders)


@in_trio
async def test_a_file_is_synced_and_the_loop_told(orders: Orders, file: OsFile) -> None:
    reactor = Reactor()
    syncs = KernelSyncs(reactor, orders)
    file.append([b"data"], 4)
    results: list[int] = []
    synced = trio.Event()
    # So often that both rings come round, and once more.
    counts = [1, 2, 3, ORDERS_MAX, 5] * 4
    async with trio.open_nursery() as nursery:
        nursery.start_soon(reactor.run)
        for count in counts:
            results.clear()
            synced = trio.Event()

            def done(error: Exception | None, number: int) -> None:
                assert error is None
                results.append(number)
                if len(results) == count:  # noqa: B023
                    synced.set()  # noqa: B023

            wanted: list[tuple[OsFile, Done]] = [
                (file, partial(done, number=number)) for number in range(count)
            ]
            assert syncs.submit(wanted) == count
            await synced.wait()
            assert sorted(results) == list(range(count))
            assert not syncs.under_way
        nursery.cancel_scope.cancel()
    syncs.close()
    reactor.close()


@in_trio
async def test_a_ring_tells_what_could_not_be_synced(file: OsFile) -> None:
    reactor = Reactor()
    syncs = KernelSyncs(reactor, ring(system_call()))
    results: dict[str, Exception | None] = {}
    read_end, write_end = os.pipe()
    os.close(write_end)
    wanted: list[tuple[OsFile, Done]] = [
        (OsFile("a pipe", read_end), lambda error: results.update(pipe=error)),
        (file, lambda error: results.update(file=error)),
    ]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(reactor.run)
        assert syncs.submit(wanted) == 2
        with trio.fail_after(30):
            while len(results) < 2:  # noqa: ASYNC110
                await trio.sleep(0.001)
        nursery.cancel_scope.cancel()
    assert results["file"] is None
    problem = results["pipe"]
    assert isinstance(problem, OSError)
    assert problem.errno == errno.EINVAL
    syncs.close()
    reactor.close()


def test_what_a_ring_has_not_taken_is_taken_back(file: OsFile) -> None:
    takes: list[int] = []
    call = system_call()

    def moody(number: int, *arguments: Any) -> int:
        """Takes so many orders as it is told; -1 is a refusal."""
        if number != ENTER or not takes:
            return call(number, *arguments)
        count = takes.pop(0)
        return call(number, arguments[0], count, *arguments[2:]) if count > 0 else count

    orders = ring(moody)
    fds = [file.fileno()] * 3
    takes += [-1, 2]
    assert orders.submit(fds, 10) == 0
    assert orders.submit(fds, 20) == 2
    assert orders.submit(fds, 30) == 3
    results: list[tuple[int, int]] = []
    deadline = time.monotonic() + 30
    while len(results) < 5 and time.monotonic() < deadline:
        results += orders.take_results()
    assert sorted(results) == [(20, 0), (21, 0), (30, 0), (31, 0), (32, 0)]
    orders.close(is_idle=True)


def test_a_ring_is_closed_with_orders_under_way(reactor: Reactor, file: OsFile) -> None:
    syncs = KernelSyncs(reactor, ring(system_call()))
    fd = syncs.orders.fd
    file.append([bytes(1 << 20)], 1 << 20)
    assert syncs.submit([(file, _nobody_waits)] * ORDERS_MAX) == ORDERS_MAX
    syncs.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def ring(call: Callable[..., int]) -> RingOrders:
    opened = open_ring_orders(call, ORDERS_MAX)
    if opened is None:
        pytest.skip("the kernel of this machine has no io_uring, or forbids it")
    return opened


def test_each_learns_what_became_of_its_own_order(reactor: Reactor, file: OsFile) -> None:
    kernel = ScriptedKernel()
    syncs = scripted(reactor, kernel)
    results: dict[str, Exception | None] = {}
    wanted: list[tuple[OsFile, Done]] = [
        (file, lambda error, name=name: results.update({name: error}))  # type: ignore[misc]
        for name in ("first", "second", "third")
    ]
    assert syncs.submit(wanted[:2]) == 2
    assert syncs.submit(wanted[2:]) == 1
    assert [order[5] for order in kernel.taken] == [file.fileno()] * 3
    first, second, third = (order[0] for order in kernel.taken)
    kernel.end(syncs, {second: -errno.EIO, first: 0})
    assert list(results) == ["second", "first"]
    assert results["first"] is None
    problem = results["second"]
    assert isinstance(problem, OSError)
    assert problem.errno == errno.EIO
    kernel.end(syncs, {third: 0})
    assert results["third"] is None
    syncs.close()
    assert kernel.is_destroyed


def test_orders_that_the_kernel_has_lost_have_failed(reactor: Reactor, file: OsFile) -> None:
    kernel = ScriptedKernel()
    syncs = scripted(reactor, kernel)
    results: list[Exception | None] = []
    assert syncs.submit([(file, results.append)] * 2) == 2
    kernel.is_broken = True
    kernel.end(syncs, {kernel.taken[0][0]: 0})
    assert [type(result) for result in results] == [OSError, OSError]
    syncs.close()


def test_a_file_stays_open_while_it_is_synced(reactor: Reactor, file: OsFile) -> None:
    kernel = ScriptedKernel()
    syncs = scripted(reactor, kernel)
    fd = file.fileno()
    assert syncs.submit([(file, _nobody_waits)]) == 1
    del file
    os.fstat(fd)
    kernel.end(syncs, {kernel.taken[0][0]: 0})
    syncs.close()


def test_nobody_waits_at_the_end_for_a_sync_under_way(reactor: Reactor, file: OsFile) -> None:
    kernel = ScriptedKernel()
    syncs = scripted(reactor, kernel)
    assert syncs.submit([(file, _nobody_waits)]) == 1
    syncs.close()
    assert not kernel.is_destroyed


def test_there_is_a_limit(reactor: Reactor, file: OsFile) -> None:
    kernel = ScriptedKernel()
    syncs = scripted(reactor, kernel)
    wanted = [(file, _nobody_waits)] * (ORDERS_MAX - 1)
    assert [syncs.submit(wanted) for _ in range(3)] == [ORDERS_MAX - 1, 1, 0]
    syncs.close()


def test_the_kernel_may_take_only_some(reactor: Reactor, file: OsFile) -> None:
    kernel = ScriptedKernel()
    kernel.takes_max = 2
    syncs = scripted(reactor, kernel)
    results: list[int] = []
    wanted: list[tuple[OsFile, Done]] = [
        (file, lambda error, number=number: results.append(number))  # type: ignore[misc]
        for number in range(4)
    ]
    assert syncs.submit(wanted) == 2
    assert syncs.submit(wanted[2:]) == 2
    numbers = [order[0] for order in kernel.taken]
    kernel.end(syncs, dict.fromkeys(reversed(numbers), 0))
    assert results == [3, 2, 1, 0]
    kernel.takes_max = 0
    assert syncs.submit(wanted) == 0
    syncs.close()
    assert kernel.is_destroyed


def test_what_can_not_be_synced_is_not_taken(reactor: Reactor) -> None:
    orders = open_aio_orders(system_call(), ORDERS_MAX)
    assert orders is not None, "the tests need a kernel that syncs by itself"
    syncs = KernelSyncs(reactor, orders)
    read_end, write_end = os.pipe()
    os.close(write_end)
    assert syncs.submit([(OsFile("a pipe", read_end), _nobody_waits)]) == 0
    syncs.close()


# A number that no call has: what a sandbox answers.
FORBIDDEN = -1


def test_where_a_ring_is_forbidden_there_is_another_way(
    reactor: Reactor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("klamm.broker.kernel_ring.SETUP", FORBIDDEN)
    syncs = open_kernel_syncs(reactor)
    assert syncs is not None
    assert isinstance(syncs.orders, AioOrders)
    syncs.close()


def test_a_ring_that_can_not_be_mapped_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []

    def refuse(fd: int, size: int, *, offset: int) -> mmap.mmap:
        opened.append(fd)
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(mmap, "mmap", refuse)
    assert open_ring_orders(system_call(), ORDERS_MAX) is None
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(opened[0])


def test_elsewhere_threads_do_it(reactor: Reactor, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(platform, "machine", lambda: "another")
        assert open_kernel_syncs(reactor) is None
    with monkeypatch.context() as patch:
        patch.setattr("klamm.broker.kernel_ring.SETUP", FORBIDDEN)
        patch.setattr(
            "klamm.broker.kernel_aio.CALLS_BY_MACHINE", {platform.machine(): (FORBIDDEN,)}
        )
        assert open_kernel_syncs(reactor) is None


@in_trio
async def test_a_flusher_needs_no_thread_for_a_segment_alone(tmp_path: Path) -> None:
    reasons: list[str] = []
    manager = LogManager.open(OsFileSystem(), str(tmp_path / "data"), node_id=1)
    log = manager.open_partition("topic", 0, UUID(int=5), LogConfig(), now_ms=NOW_MS)
    log.append(memoryview(batch()), leader_epoch=0, now_ms=NOW_MS)
    log.flush()
    reactor = Reactor()
    flusher = Flusher(reactor, Timers(), 1, reasons.append)
    threads_before = threading.active_count()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(reactor.run)
        for _ in range(3):
            log.append(memoryview(batch()), leader_epoch=0, now_ms=NOW_MS)
            await flusher.wait_synced(log)
            assert log.recovery_point == log.log_end_offset
        assert threading.active_count() == threads_before
        # A new segment has a name, which only a thread syncs.
        log.roll(NOW_MS)
        log.append(memoryview(batch()), leader_epoch=0, now_ms=NOW_MS)
        await flusher.wait_synced(log)
        assert threading.active_count() == threads_before + 1
        nursery.cancel_scope.cancel()
    assert (log.recovery_point, reasons) == (5, [])
    flusher.close()
    reactor.close()
    manager.abandon()
