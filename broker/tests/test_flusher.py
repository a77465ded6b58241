"""When a log is synced, and who waits for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest
import trio
import trio.testing

from klamm.broker.flusher import Flusher
from klamm.broker.reactor import Reactor
from klamm.broker.sync_threads import Done
from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.in_trio import in_trio
from klamm.broker.tests.raw_client import (
    ACKS_NONE,
    PRODUCE_VERSION,
    RawClient,
    batch,
    create_topic,
    produce,
    produce_to,
)
from klamm.broker.tests.waiting import until
from klamm.broker.tests.watched_fs import WatchedFileSystem
from klamm.broker.timers import Timers
from klamm.log.config import LogConfig
from klamm.log.fs import OsFile, OsFileSystem
from klamm.log.manager import LogManager
from klamm.log.partition_log import PartitionLog
from klamm.wire.messages.api_versions import ApiVersionsRequest

PATIENCE_S = 10.0
NOW_MS = 1_700_000_000_000


@pytest.fixture
def fs() -> WatchedFileSystem:
    return WatchedFileSystem()


@pytest.fixture
def manager(tmp_path: Path, fs: WatchedFileSystem) -> Iterator[LogManager]:
    opened = LogManager.open(fs, str(tmp_path / "data"), node_id=1)
    yield opened
    opened.abandon()


@pytest.fixture
def log(manager: LogManager) -> PartitionLog:
    made = manager.open_partition("topic", 0, UUID(int=5), LogConfig(), now_ms=NOW_MS)
    made.flush()
    return made


def append(log: PartitionLog) -> None:
    log.append(memoryview(batch()), leader_epoch=0, now_ms=NOW_MS)


def must_not_halt(reason: str) -> None:
    raise AssertionError(reason)


@asynccontextmanager
async def running_flusher(
    threads_max: int = 1,
    halt: Callable[[str], None] = must_not_halt,
    *,
    with_timers: bool = False,
) -> AsyncIterator[Flusher]:
    """A flusher with the reactor that it needs; leaving waits until nothing is under way."""
    reactor = Reactor()
    timers = Timers()
    flusher = Flusher(reactor, timers, threads_max, halt)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(reactor.run)
        if with_timers:
            nursery.start_soon(timers.run)
        yield flusher
        await until_idle(flusher)
        nursery.cancel_scope.cancel()
    flusher.close()
    reactor.close()


async def until_idle(flusher: Flusher) -> None:
    with trio.fail_after(PATIENCE_S):
        while not flusher.is_idle:  # noqa: ASYNC110
            await trio.sleep(0.001)


# --- group commit ---


@in_trio
async def test_one_sync_answers_all_that_wait_for_it(
    log: PartitionLog, fs: WatchedFileSystem
) -> None:
    before = fs.syncs_of("topic")
    async with running_flusher() as flusher:
        called: list[int] = []
        for number in range(50):
            append(log)
            flusher.call_when_synced(log, partial(called.append, number))
        idle_before = flusher.is_idle
    assert called == list(range(50))
    assert (idle_before, flusher.is_idle) == (False, True)
    assert fs.syncs_of("topic") - before == 1
    assert log.recovery_point == 50


@in_trio
async def test_what_comes_during_a_sync_waits_for_the_next_one(
    log: PartitionLog, fs: WatchedFileSystem
) -> None:
    gate = fs.hold_syncs_of("topic")
    before = fs.syncs_of("topic")
    async with running_flusher() as flusher:
        called: list[tuple[str, int]] = []

        def note(name: str) -> Callable[[], None]:
            return lambda: called.append((name, log.recovery_point))

        append(log)
        flusher.call_when_synced(log, note("first"))
        await trio.to_thread.run_sync(gate.wait_for_arrival)
        append(log)
        flusher.call_when_synced(log, note("second"))
        append(log)
        flusher.call_when_synced(log, note("third"))
        gate.let_through()
        await trio.to_thread.run_sync(gate.wait_for_arrival)
        assert called == [("first", 1)]
        gate.let_through()
    assert called == [("first", 1), ("second", 3), ("third", 3)]
    assert fs.syncs_of("topic") - before == 2


@in_trio
async def test_several_logs_sync_at_the_same_time(
    manager: LogManager, fs: WatchedFileSystem
) -> None:
    logs = [
        manager.open_partition("topic", index, UUID(int=5), LogConfig(), now_ms=NOW_MS)
        for index in range(3)
    ]
    for log in logs:
        log.flush()
        append(log)
    gate = fs.hold_syncs_of("topic")
    async with running_flusher(2) as flusher:
        for log in logs:
            flusher.sync_soon(log)
        # Two are under way, the third waits for a thread.
        await trio.to_thread.run_sync(gate.wait_for_arrival)
        await trio.to_thread.run_sync(gate.wait_for_arrival)
        assert sum(fs.syncs_of("topic", index) for index in range(3)) == 2
        gate.let_through(3)
    assert [log.recovery_point for log in logs] == [1, 1, 1]


@in_trio
async def test_a_fault_of_one_waiter_is_not_anothers(
    log: PartitionLog, caplog: pytest.LogCaptureFixture
) -> None:
    called: list[str] = []

    def fail() -> None:
        raise ValueError("on purpose")

    async with running_flusher() as flusher:
        flusher.call_when_synced(log, fail)
        flusher.call_when_synced(log, lambda: called.append("second"))
    assert called == ["second"]
    assert flusher.is_idle
    assert len(caplog.records) == 1


@in_trio
async def test_after_a_failed_sync_nobody_is_called_and_nothing_is_tried_again(
    log: PartitionLog, fs: WatchedFileSystem
) -> None:
    reasons: list[str] = []
    halted = trio.Event()

    def halt(reason: str) -> None:
        reasons.append(reason)
        halted.set()

    fs.fail_syncs_of("topic")
    before = fs.syncs_of("topic")
    reactor = Reactor()
    flusher = Flusher(reactor, Timers(), 1, halt)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(reactor.run)
        append(log)
        flusher.call_when_synced(log, lambda: must_not_halt("acknowledged"))
        await halted.wait()
        append(log)
        flusher.call_when_synced(log, lambda: must_not_halt("acknowledged"))
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    flusher.close()
    reactor.close()
    assert len(reasons) == 1
    assert reasons[0].startswith("sync of topic-0 failed")
    assert fs.syncs_of("topic") - before == 1
    assert log.recovery_point == 0


@in_trio
async def test_many_waiters_let_others_have_their_turn(
    log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("klamm.broker.reactor.TURN_SECONDS_MAX", 0.0)
    called: list[int] = []
    seen: set[int] = set()
    async with running_flusher() as flusher:
        for number in range(20):
            flusher.call_when_synced(log, partial(called.append, number))
        while len(called) < 20:
            seen.add(len(called))
            await trio.lowlevel.checkpoint()
    assert called == list(range(20))
    assert len(seen) > 10


# --- rounds ---


class Kernel:
    """Takes orders and ends them when it is told."""

    def __init__(self) -> None:
        self.rounds: list[list[str]] = []
        self._under_way: dict[str, Done] = {}

    def submit(self, wanted: Sequence[tuple[OsFile, Done]]) -> int:
        directories = [file.path.split("/")[-2] for file, _ in wanted]
        self.rounds.append(directories)
        self._under_way.update(zip(directories, (done for _, done in wanted), strict=True))
        return len(wanted)

    def end(self, *directories: str) -> None:
        for directory in directories:
            self._under_way.pop(directory)(None)

    def close(self) -> None:
        assert not self._under_way


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    made = Kernel()
    monkeypatch.setattr("klamm.broker.flusher.open_kernel_syncs", lambda reactor: made)
    return made


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[list[PartitionLog]]:
    """Three on one disk, and one on another; each has something to sync, and nothing but that."""
    managers = [
        LogManager.open(OsFileSystem(), str(tmp_path / name), node_id=1) for name in ("one", "two")
    ]
    made = [
        manager.open_partition("t", index, UUID(int=5), LogConfig(), now_ms=NOW_MS)
        for manager, index in zip([managers[0]] * 3 + [managers[1]], range(4), strict=True)
    ]
    for log in made:
        append(log)
        log.flush()
        append(log)
    yield made
    for manager in managers:
        manager.abandon()


async def until_rounds(kernel: Kernel, count: int) -> None:
    with trio.fail_after(PATIENCE_S):
        while len(kernel.rounds) < count:  # noqa: ASYNC110
            await trio.sleep(0.001)


@in_trio
async def test_what_comes_during_a_round_is_synced_together_after_it(
    logs: list[PartitionLog], kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("klamm.broker.flusher.ROUND_S_MAX", 1_000.0)
    one, two, three, _ = logs
    async with running_flusher() as flusher:
        called: list[str] = []
        flusher.call_when_synced(one, lambda: called.append("one"))
        flusher.call_when_synced(two, lambda: called.append("two"))
        await until_rounds(kernel, 1)
        flusher.call_when_synced(three, lambda: called.append("three"))
        append(one)
        flusher.call_when_synced(one, lambda: called.append("one again"))
        kernel.end("t-0")
        await trio.testing.wait_all_tasks_blocked()
        # Its own sync has ended, and the round has not.
        assert (called, len(kernel.rounds)) == (["one"], 1)
        kernel.end("t-1")
        await until_rounds(kernel, 2)
        kernel.end("t-2", "t-0")
    assert called == ["one", "two", "three", "one again"]
    assert kernel.rounds == [["t-0", "t-1"], ["t-2", "t-0"]]


@in_trio
async def test_disks_do_not_wait_for_each_other(logs: list[PartitionLog], kernel: Kernel) -> None:
    async with running_flusher() as flusher:
        flusher.sync_soon(logs[0])
        await until_rounds(kernel, 1)
        flusher.sync_soon(logs[3])
        await until_rounds(kernel, 2)
        kernel.end("t-3", "t-0")
    assert kernel.rounds == [["t-0"], ["t-3"]]


@in_trio
async def test_a_round_that_takes_long_holds_nobody_up(
    logs: list[PartitionLog], kernel: Kernel
) -> None:
    one, two, _, _ = logs
    async with running_flusher(with_timers=True) as flusher:
        flusher.sync_soon(one)
        await until_rounds(kernel, 1)
        flusher.sync_soon(two)
        append(one)
        flusher.sync_soon(one)
        await until_rounds(kernel, 2)
        # The log itself waits: it has one sync at a time.
        assert kernel.rounds == [["t-0"], ["t-1"]]
        # The first round ends while the second is under way, which the third waits for.
        kernel.end("t-0")
        kernel.end("t-1")
        await until_rounds(kernel, 3)
        kernel.end("t-0")
    assert kernel.rounds[2] == ["t-0"]
    assert [log.recovery_point for log in (one, two)] == [3, 2]


@in_trio
async def test_no_round_waits_for_a_thread(
    logs: list[PartitionLog], kernel: Kernel, log: PartitionLog, fs: WatchedFileSystem
) -> None:
    gate = fs.hold_syncs_of("topic")
    append(log)
    async with running_flusher() as flusher:
        for each in (log, logs[0]):
            flusher.sync_soon(each)
        await until_rounds(kernel, 1)
        kernel.end("t-0")
        flusher.sync_soon(logs[1])
        await until_rounds(kernel, 2)
        kernel.end("t-1")
        await trio.to_thread.run_sync(gate.wait_for_arrival)
        gate.let_through()
    assert kernel.rounds == [["t-0"], ["t-1"]]
    assert log.recovery_point == 1


# --- when a broker syncs ---


@pytest.fixture
def broker(tmp_path: Path, fs: WatchedFileSystem) -> Iterator[RunningBroker]:
    with running_broker(tmp_path / "broker", fs=fs) as running:
        yield running


def round_trip(client: RawClient) -> None:
    """When this is answered, everything before it was handled."""
    client.call(ApiVersionsRequest(), 0)


@pytest.mark.parametrize(("acks", "syncs"), [(-1, 1), (1, 0)])
def test_acks_all_waits_for_a_sync_and_acks_one_does_not_even_ask_for_it(
    client: RawClient, fs: WatchedFileSystem, acks: int, syncs: int
) -> None:
    create_topic(client, "topic")
    assert produce_to(client, "topic", acks=acks).error_code == 0
    assert fs.syncs_of("topic") == syncs


def test_without_flush_before_ack_nothing_is_synced(
    client: RawClient, fs: WatchedFileSystem
) -> None:
    create_topic(client, "topic", configs={"flush.before.ack": "false"})
    for _ in range(5):
        assert produce_to(client, "topic").error_code == 0
    assert fs.syncs_of("topic") == 0


def test_flush_before_ack_can_be_off_for_all_topics(tmp_path: Path) -> None:
    fs = WatchedFileSystem()
    properties = {"flush.before.ack": "false"}
    with (
        running_broker(tmp_path / "own", properties, fs=fs) as broker,
        RawClient(broker) as client,
    ):
        create_topic(client, "topic")
        create_topic(client, "careful", configs={"flush.before.ack": "true"})
        produce_to(client, "topic")
        produce_to(client, "careful")
        assert (fs.syncs_of("topic"), fs.syncs_of("careful")) == (0, 1)


@pytest.mark.parametrize("acks", [1, -1])
def test_flush_messages_syncs_after_so_many(
    client: RawClient, fs: WatchedFileSystem, acks: int
) -> None:
    configs = {"flush.messages": "4", "flush.before.ack": "false"}
    create_topic(client, "topic", configs=configs)
    syncs = []
    for _ in range(9):
        produce_to(client, "topic", acks=acks)
        syncs.append(fs.syncs_of("topic"))
    # The reply to the fourth waits for the sync.
    assert syncs == [0, 0, 0, 1, 1, 1, 1, 2, 2]


def test_flush_ms_syncs_after_that_time(client: RawClient, fs: WatchedFileSystem) -> None:
    configs = {"flush.ms": "30", "flush.before.ack": "false"}
    create_topic(client, "topic", configs=configs)
    produce_to(client, "topic")
    until(lambda: fs.syncs_of("topic") == 1)
    # Nothing new, nothing to do.
    round_trip(client)
    produce_to(client, "topic", acks=1)
    until(lambda: fs.syncs_of("topic") == 2)


def test_flush_ms_is_one_promise_for_all_that_is_appended_meanwhile(
    client: RawClient, fs: WatchedFileSystem
) -> None:
    configs = {"flush.ms": "300", "flush.before.ack": "false"}
    create_topic(client, "topic", configs=configs)
    client.send(*[produce("topic") for _ in range(20)], version=PRODUCE_VERSION)
    for _ in range(20):
        client.receive()
    until(lambda: fs.syncs_of("topic") == 1)


def test_a_full_segment_is_synced_without_being_asked(
    client: RawClient, fs: WatchedFileSystem
) -> None:
    create_topic(client, "topic", configs={"segment.bytes": str(1024 * 1024)})
    for _ in range(3):
        produce_to(client, "topic", batch(b"x" * 500_000), acks=1)
    until(lambda: fs.syncs_of("topic") > 0)
    assert any(path.endswith("topic-0/00000000000000000000.log") for path in fs.synced)


def test_acks_zero_is_not_synced_unless_somebody_asks_for_it(
    client: RawClient, fs: WatchedFileSystem
) -> None:
    create_topic(client, "topic")
    create_topic(client, "careful", configs={"flush.messages": "1"})
    client.send(produce("topic", acks=ACKS_NONE), version=PRODUCE_VERSION)
    client.send(produce("careful", acks=ACKS_NONE), version=PRODUCE_VERSION)
    round_trip(client)
    until(lambda: fs.syncs_of("careful") == 1)
    assert fs.syncs_of("topic") == 0


def test_a_clean_shutdown_syncs_what_was_not(tmp_path: Path) -> None:
    fs = WatchedFileSystem()
    with running_broker(tmp_path / "own", fs=fs) as broker, RawClient(broker) as client:
        create_topic(client, "topic")
        produce_to(client, "topic", acks=1)
        assert fs.syncs_of("topic") == 0
        broker.stop()
        assert fs.syncs_of("topic") == 1
