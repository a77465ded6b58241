"""The disk stops at every single operation of a transaction (reliability row 28).

A transaction runs once, and before each operation of the disk, from its first write to its last
record, is kept what a crash would leave, and how many of its requests were answered by then. An
operation of a thread waits until the event loop has nothing left to do: whatever does not wait for
the disk, although it should, has left by then. From each of these points the broker starts again,
and either its producer goes on with the request that was not answered, or another one takes over.
Then must hold:

- what was decided, and answered, stays decided;
- the transaction is there in all its partitions and offsets, or in none;
- it ends once: its markers, written again, change nothing;
- nothing is left open, and the next transaction comes through.
"""

from __future__ import annotations

import select
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.groups.group_client import committed, find_coordinator
from klamm.broker.tests.raw_client import RawClient, create_topic
from klamm.broker.tests.transactions.conftest import FEW_PARTITIONS
from klamm.broker.tests.transactions.test_offsets import GROUP, commit_offsets, unstable
from klamm.broker.tests.transactions.transactional_client import Producer, stored_committed
from klamm.broker.tests.waiting import until
from klamm.log.memory_fs import (
    MemoryFileSystem,
    SurvivingBytes,
    SurvivingNames,
    keep_bytes,
    keep_names,
    lose_bytes,
    lose_names,
    tear_bytes,
)
from klamm.wire.errors import ErrorCode

DATA_DIR = "/data"
STATE_TOPIC = "__transaction_state"
PARTITIONS = (0, 1)


def keep_decisions(path: str, synced: bytes, current: bytes) -> bytes:
    """By chance the disk had what the coordinator wrote, and nothing else that was not synced."""
    return (keep_bytes if STATE_TOPIC in path else lose_bytes)(path, synced, current)


def lose_decisions(path: str, synced: bytes, current: bytes) -> bytes:
    return (lose_bytes if STATE_TOPIC in path else keep_bytes)(path, synced, current)


CRASHES: tuple[tuple[SurvivingBytes, SurvivingNames], ...] = (
    (lose_bytes, lose_names),
    (tear_bytes, keep_names),
    (keep_decisions, keep_names),
    (lose_decisions, keep_names),
)
# After so many turns the event loop has handled all that was ready, and sent the replies.
TURNS = 5
LOOP_TIMEOUT_S = 5.0

Step = Callable[[Producer], ErrorCode]


@dataclass(frozen=True)
class Scenario:
    """One transaction, as the requests of its producer.

    Attributes:
        version: of transactions: 1 announces partitions, and keeps its epoch.
    """

    commit: bool
    has_offsets: bool = False
    version: int = 2

    def __str__(self) -> str:
        offsets = " with offsets" if self.has_offsets else ""
        return f"{'commit' if self.commit else 'abort'}{offsets}, version {self.version}"

    @property
    def steps(self) -> list[Step]:
        """What its producer asks for, one after the other; the last one ends it."""
        steps: list[Step] = []
        if self.version == 1:
            steps.append(lambda producer: producer.add("t", *PARTITIONS))
        steps += [self._writing(partition) for partition in PARTITIONS]
        if self.has_offsets:
            steps.append(lambda producer: commit_offsets(producer, {0: 5}))
        return [*steps, lambda producer: producer.end(commit=self.commit, version=self.version + 3)]

    def _writing(self, partition: int) -> Step:
        version = 12 if self.version == 2 else 11

        def write(producer: Producer) -> ErrorCode:
            # The same request again, should it be repeated.
            producer.sequences["t", partition] = 0
            return producer.write("t", b"value", partition, version=version)

        return write


@dataclass(frozen=True)
class Point:
    """A moment at which the disk may stop.

    Attributes:
        disks: what the next start finds, by what a crash leaves.
        answered: how many of the producer's requests were answered.
    """

    operation: str
    disks: list[MemoryFileSystem]
    answered: int


class SteppedDisk(MemoryFileSystem):
    """A disk that says what it is about to do."""

    def __init__(self) -> None:
        super().__init__()
        self.before_operation: Callable[[str], None] = lambda operation: None

    def step(self, operation: str, path: str, size: int = 0) -> int:
        self.before_operation(f"{operation} {path}")
        return super().step(operation, path, size)


@dataclass
class Watch:
    """Keeps the points of a run; `client` sends nothing but the requests of the transaction."""

    disk: SteppedDisk
    broker: RunningBroker
    client: RawClient
    answered: int = 0
    points: list[Point] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _loop_waits: bool = False

    def begin(self) -> None:
        self.disk.before_operation = self.before_operation

    def end(self) -> None:
        self.disk.before_operation = lambda operation: None

    def before_operation(self, operation: str) -> None:
        is_loop = threading.current_thread() is self.broker._thread
        self._loop_waits = self._loop_waits or is_loop
        with self._lock:
            if is_loop:
                self._loop_waits = False
            disks = [self.disk.after_crash(*crash) for crash in CRASHES]
            if not is_loop:
                self._let_the_loop_work()
            is_there, _, _ = select.select([self.client.socket], [], [], 0)
            self.points.append(Point(operation, disks, self.answered + len(is_there)))

    def _let_the_loop_work(self) -> None:
        """Until it has nothing left to do, or waits for the disk as well."""
        token = self.broker._token
        assert token is not None
        has_worked = threading.Event()

        def turn(left: int) -> None:
            if left:
                token.run_sync_soon(turn, left - 1)
            else:
                has_worked.set()

        token.run_sync_soon(turn, TURNS)
        for _ in range(int(LOOP_TIMEOUT_S * 1000)):
            if self._loop_waits or has_worked.wait(0.001):
                return
        raise TimeoutError("the event loop does nothing")

    def run(self, step: Step, producer: Producer) -> None:
        """Make a request, and note its answer in one piece with taking it from the socket."""
        receive = self.client.receive_frame

        def receive_and_note() -> bytes:
            select.select([self.client.socket], [], [], LOOP_TIMEOUT_S)
            with self._lock:
                reply = receive()
                self.answered += 1
            return reply

        self.client.receive_frame = receive_and_note  # type: ignore[method-assign]
        try:
            assert step(producer) is ErrorCode.NONE
        finally:
            self.client.receive_frame = receive  # type: ignore[method-assign]


@dataclass(frozen=True)
class Run:
    """The points of a transaction, and who its producer was, and was to be after it."""

    points: list[Point]
    producer_id: int
    epoch: int
    next_epoch: int

    def producer(self, client: RawClient) -> Producer:
        """The producer as it was while the transaction was open."""
        producer = Producer(client)
        producer.become(self.producer_id, self.epoch)
        # What comes behind the records of this transaction, if its epoch goes on.
        producer.sequences = {("t", partition): 1 for partition in PARTITIONS}
        return producer


def run(scenario: Scenario) -> Run:
    disk = SteppedDisk()
    with running_broker(DATA_DIR, FEW_PARTITIONS, fs=disk) as broker:
        with RawClient(broker) as client, RawClient(broker) as other:
            create_topic(client, "t", len(PARTITIONS))
            find_coordinator(client, GROUP)
            producer = Producer(client)
            producer.init()
            who = (producer.producer_id, producer.epoch)
            watch = Watch(disk, broker, client)
            watch.begin()
            for step in scenario.steps:
                watch.run(step, producer)
            producer.client = other
            producer.settle()
            watch.end()
        broker.kill()
    return Run(watch.points, *who, next_epoch=producer.epoch)


SCENARIOS = [
    Scenario(commit=True),
    Scenario(commit=False),
    Scenario(commit=True, has_offsets=True),
    Scenario(commit=False, has_offsets=True),
    Scenario(commit=True, version=1),
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_the_disk_stops_at_every_operation(scenario: Scenario) -> None:
    watched = run(scenario)
    check_that_everything_is_seen(watched, scenario)
    looked_at = set()
    for number, point in enumerate(watched.points):
        for crash, disk in enumerate(point.disks):
            found = (tuple(disk.files().items()), point.answered)
            # Without a sync in between, one point often leaves what the one before has left.
            if found in looked_at:
                continue
            looked_at.add(found)
            goes_on, takes_over = disk, disk.after_kill()
            if crash == 0 or number % 2:
                let_the_producer_go_on(goes_on, point, watched, scenario)
            if crash == 0 or not number % 2:
                let_another_take_over(takes_over, point, watched, scenario)


def check_that_everything_is_seen(watched: Run, scenario: Scenario) -> None:
    """The points lie before, between and behind the answers, and every log is among them."""
    count = len(scenario.steps)
    assert {point.answered for point in watched.points} == set(range(count + 1))
    appended = [one for one in operations(watched) if one.startswith("append")]
    synced = [one for one in operations(watched) if one.startswith("datasync")]
    for partition in PARTITIONS:
        # The record and the marker.
        for found in (appended, synced):
            assert sum(f"/t-{partition}/" in one and one.endswith(".log") for one in found) == 2
    last = [point for point in watched.points if STATE_TOPIC in point.operation][-1]
    assert last.answered == count, "it is complete after the answer"
    assert any("__consumer_offsets" in one for one in synced) is scenario.has_offsets


def operations(watched: Run) -> list[str]:
    return [point.operation for point in watched.points]


def let_the_producer_go_on(
    disk: MemoryFileSystem, point: Point, watched: Run, scenario: Scenario
) -> None:
    """Its request was not answered, so it is made again, and then what is left to do."""
    with running_broker(DATA_DIR, FEW_PARTITIONS, fs=disk) as broker, RawClient(broker) as client:
        producer = watched.producer(client)
        steps = scenario.steps[point.answered :]
        for step in steps:
            until(lambda step=step: is_done(step(producer)))  # type: ignore[misc]
        if not steps:
            # The answer has told it who it is now.
            producer.become(producer.producer_id, watched.next_epoch)
        until(lambda: producer.state.startswith("Complete"))
        check_outcome(broker, client, scenario, is_there=scenario.commit, is_ended=True)
        check_next(broker, producer)
        broker.kill()


def is_done(code: ErrorCode) -> bool:
    """Whether it is done; a client waits while its coordinator loads, or ends what was before."""
    passing = {
        # What Produce makes of the other codes.
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }
    assert code in passing or code is ErrorCode.NONE
    return code is ErrorCode.NONE


def let_another_take_over(
    disk: MemoryFileSystem, point: Point, watched: Run, scenario: Scenario
) -> None:
    with running_broker(DATA_DIR, FEW_PARTITIONS, fs=disk) as broker, RawClient(broker) as client:
        successor = Producer(client)
        successor.init()
        is_there = stored_committed(broker, "t") != []
        last = len(scenario.steps) - 1
        if point.answered > last:
            assert is_there is scenario.commit
        elif point.answered < last:
            assert not is_there, "nobody had asked for a decision"
        else:
            # Its producer was not told: it may be decided or not, but it was never to be aborted
            # and committed.
            assert scenario.commit or not is_there
        check_outcome(broker, client, scenario, is_there=is_there, is_ended=False)
        zombie = watched.producer(client).write("t", b"zombie")
        assert zombie is ErrorCode.INVALID_PRODUCER_EPOCH
        check_next(broker, successor)
        broker.kill()


def check_outcome(
    broker: RunningBroker,
    client: RawClient,
    scenario: Scenario,
    *,
    is_there: bool,
    is_ended: bool,
) -> None:
    """All of it is there, or nothing, and nothing is open.

    Args:
        is_ended: it was written and ended, so that readers have to be told if it is aborted.
    """
    for partition in PARTITIONS:
        log = broker.broker.partitions.find("t", partition).log
        until(lambda log=log: log.last_stable_offset == log.log_end_offset)  # type: ignore[misc]
        assert stored_committed(broker, "t", partition) == [b"value"] * is_there
        aborted = log.aborted_transactions(0, log.log_end_offset)
        assert len(aborted) <= (not is_there), "it was aborted twice, or committed as well"
        assert len(aborted) == (not is_there) or not is_ended
    if scenario.has_offsets:
        until(lambda: unstable(client) == set())
        assert committed(client, GROUP) == ({"t": {0: 5}} if is_there else {})


def check_next(broker: RunningBroker, producer: Producer) -> None:
    """The next transaction is seen, and readers are not told that it is aborted."""
    before = {partition: stored_committed(broker, "t", partition) for partition in PARTITIONS}
    for partition in PARTITIONS:
        until(lambda partition=partition: is_done(producer.write("t", b"next", partition)))  # type: ignore[misc]
    assert producer.end() is ErrorCode.NONE
    producer.settle()
    for partition, values in before.items():
        assert stored_committed(broker, "t", partition) == [*values, b"next"]
