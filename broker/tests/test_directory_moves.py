"""Partitions that move between log directories while they are written to and read."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from klamm.broker import directory_moves
from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.raw_client import (
    RawClient,
    batch,
    create_topic,
    delete_topic,
    fetch,
    fetch_from,
    produce_to,
)
from klamm.broker.tests.test_alter_replica_log_dirs import alter
from klamm.broker.tests.waiting import until
from klamm.broker.tests.watched_fs import WatchedFileSystem
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from klamm.wire.messages.find_coordinator import FindCoordinatorRequest
from klamm.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from klamm.wire.records.batch import read_batch_header


class Disks(WatchedFileSystem):
    """Copies can be held up, or fail."""

    def __init__(self) -> None:
        super().__init__()
        self.error: int | None = None
        self.before_append = self._before_append

    def _before_append(self, path: str) -> None:
        if "-future/" in path and path.endswith(".log") and self.error is not None:
            raise OSError(self.error, "refused by the test", path)

    def hold(self) -> None:
        """No room for copies; they are tried again and again."""
        self.error = errno.ENOSPC

    def let_go(self) -> None:
        self.error = None


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory_moves, "RETRY_S", 0.01)


@pytest.fixture
def disks() -> Disks:
    return Disks()


@pytest.fixture
def broker(tmp_path: Path, disks: Disks) -> Iterator[RunningBroker]:
    properties = {
        "log.dirs": f"{tmp_path}/a,{tmp_path}/b",
        "log.segment.bytes": "1048576",
        "offsets.topic.num.partitions": "1",
        "replica.high.watermark.checkpoint.interval.ms": "20",
    }
    with running_broker(properties=properties, fs=disks) as broker:
        yield broker


@pytest.fixture
def client(broker: RunningBroker) -> Iterator[RawClient]:
    with RawClient(broker) as client:
        create_topic(client, "topic")
        produce_to(client, "topic")
        yield client


@pytest.fixture
def a(tmp_path: Path) -> Path:
    return tmp_path / "a"


@pytest.fixture
def b(tmp_path: Path) -> Path:
    return tmp_path / "b"


def places(client: RawClient, topic: str = "topic") -> dict[str, tuple[bool, int]]:
    """Where partition 0 is, whether only a copy is there, and how many offsets that lacks."""
    return {
        result.log_dir.rpartition("/")[2]: (partition.is_future_key, partition.offset_lag)
        for result in client.call(DescribeLogDirsRequest(topics=None)).results
        for found in result.topics
        if found.name == topic
        for partition in found.partitions
    }


def move(client: RawClient, path: Path, topic: str = "topic") -> int:
    return alter(client, (str(path), topic, [0]))[topic, 0]


def wait_until_moved(client: RawClient, name: str, topic: str = "topic") -> None:
    until(lambda: places(client, topic) == {name: (False, 0)})


def values(client: RawClient, count: int) -> list[int]:
    """The base offsets of all batches, read from the start."""
    offsets: list[int] = []
    while len(offsets) < count:
        data = memoryview(fetch_from(client, "topic", len(offsets)).records)
        assert data
        while data:
            header = read_batch_header(data)
            offsets.append(header.base_offset)
            data = data[header.size_in_bytes :]
    return offsets


def test_there_and_back(client: RawClient, a: Path, b: Path) -> None:
    assert places(client) == {"a": (False, 0)}
    for there, name in ((b, "b"), (a, "a"), (b, "b")):
        assert move(client, there) == ErrorCode.NONE
        wait_until_moved(client, name)
        produce_to(client, "topic")
    assert values(client, 4) == [0, 1, 2, 3]
    until(lambda: [path.name for path in a.glob("topic*")] == [])
    assert [path.name for path in b.glob("topic*")] == ["topic-0"]


def test_while_it_is_written_to_and_read(broker: RunningBroker, client: RawClient, b: Path) -> None:
    """Rolls, more than is copied at a time, and a producer that does not pause."""
    stop = threading.Event()
    acknowledged: list[int] = []

    def write() -> None:
        with RawClient(broker) as writer:
            while not stop.is_set():
                answer = produce_to(writer, "topic", batch(bytes(100_000)))
                assert answer.error_code == ErrorCode.NONE
                acknowledged.append(answer.base_offset)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        until(lambda: len(acknowledged) > 40)
        assert move(client, b) == ErrorCode.NONE
        wait_until_moved(client, "b")
        seen = len(acknowledged)
        until(lambda: len(acknowledged) > seen + 10)
    finally:
        stop.set()
        thread.join()
    assert acknowledged == list(range(1, len(acknowledged) + 1))
    assert values(client, len(acknowledged) + 1) == [0, *acknowledged]


def test_a_move_is_seen_under_way_and_can_be_stopped(
    disks: Disks, client: RawClient, a: Path, b: Path
) -> None:
    disks.hold()
    assert move(client, b) == ErrorCode.NONE
    assert places(client) == {"a": (False, 0), "b": (True, 1)}
    assert [path.name.endswith("-future") for path in b.glob("topic*")] == [True]
    assert move(client, b) == ErrorCode.NONE
    assert move(client, a) == ErrorCode.NONE
    assert places(client) == {"a": (False, 0)}
    until(lambda: not list(b.glob("topic*")))
    disks.let_go()
    assert move(client, b) == ErrorCode.NONE
    wait_until_moved(client, "b")


def test_a_fetch_that_waits_sees_what_comes_after_the_move(
    broker: RunningBroker, client: RawClient, b: Path
) -> None:
    with RawClient(broker) as parked:
        parked.send(fetch("topic", 1, max_wait_ms=60_000), version=12)
        move(client, b)
        wait_until_moved(client, "b")
        produce_to(client, "topic")
        _, response = parked.receive()
    assert response.responses[0].partitions[0].records == fetch_from(client, "topic", 1).records


def test_a_topic_is_deleted_while_it_moves(
    disks: Disks, client: RawClient, a: Path, b: Path
) -> None:
    disks.hold()
    move(client, b)
    delete_topic(client, "topic")
    disks.let_go()
    create_topic(client, "topic")
    produce_to(client, "topic")
    until(lambda: [path.name for path in (*a.glob("topic*"), *b.glob("topic*"))] == ["topic-0"])
    assert values(client, 1) == [0]


def test_a_restart_goes_on_with_it(
    disks: Disks, broker: RunningBroker, client: RawClient, b: Path
) -> None:
    disks.hold()
    move(client, b)
    for end in (broker.stop, broker.kill):
        end()
        disks.hold()
        broker.start()
        with RawClient(broker) as again:
            assert places(again) == {"a": (False, 0), "b": (True, 1)}
    disks.let_go()
    with RawClient(broker) as again:
        wait_until_moved(again, "b")
        assert values(again, 1) == [0]
    broker.restart()
    with RawClient(broker) as again:
        assert places(again) == {"b": (False, 0)}


def test_a_directory_that_fails_ends_moves_to_it(
    disks: Disks, client: RawClient, a: Path, b: Path
) -> None:
    disks.error = errno.EIO
    assert move(client, b) == ErrorCode.NONE
    until(lambda: places(client) == {"a": (False, 0)})
    codes = [
        result.error_code for result in client.call(DescribeLogDirsRequest(topics=None)).results
    ]
    assert codes == [ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR]
    assert produce_to(client, "topic").error_code == ErrorCode.NONE
    # As in Kafka, where nothing moves while a directory is offline.
    assert move(client, b) == ErrorCode.KAFKA_STORAGE_ERROR
    assert move(client, a) == ErrorCode.NONE


def test_groups_are_served_while_their_log_moves(
    disks: Disks, broker: RunningBroker, client: RawClient, b: Path
) -> None:
    def commit(offset: int) -> int:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topic = OffsetCommitRequestTopic(name="topic", partitions=[partition])
        response = client.call(OffsetCommitRequest(group_id="group", topics=[topic]), 8)
        code: int = response.topics[0].partitions[0].error_code
        return code

    client.call(FindCoordinatorRequest(key_type=0, coordinator_keys=["group"]))
    until(lambda: commit(1) == ErrorCode.NONE)
    target = "b" if places(client, "__consumer_offsets") == {"a": (False, 0)} else "a"
    assert move(client, b.parent / target, "__consumer_offsets") == ErrorCode.NONE
    for offset in range(2, 20):
        assert commit(offset) == ErrorCode.NONE
    wait_until_moved(client, target, "__consumer_offsets")
    assert commit(20) == ErrorCode.NONE
