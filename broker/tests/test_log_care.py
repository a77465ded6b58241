"""Retention and compaction in a running broker: when they run, and what clients see of them."""

from __future__ import annotations

import errno
import time
from pathlib import Path

import pytest
import trio

from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.alterations import BROKER, alter
from klamm.broker.tests.raw_client import RawClient, create_topic, fetch_from, produce_to
from klamm.broker.tests.waiting import until
from klamm.log.memory_fs import MemoryFileSystem
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from klamm.wire.records.batch import read_batch_header
from klamm.wire.records.record import build_batch, iter_records

EARLIEST = -2
SEGMENT = {"internal.segment.bytes": "1000"}
# Everything at once, again and again.
EAGER = {
    "log.initial.task.delay.ms": "0",
    "log.retention.check.interval.ms": "10",
    "log.cleaner.backoff.ms": "10",
    # The map must be small enough to be made often, and large enough for a few keys.
    "log.cleaner.dedupe.buffer.size": "1048576",
}

# Only when a test wants it.
SELDOM = {"log.initial.task.delay.ms": "3600000"}


def keyed(key: bytes, value: bytes) -> bytes:
    return build_batch([(key, value, (), 1_700_000_000_000)])


def earliest(client: RawClient, topic: str) -> int:
    request = ListOffsetsRequest(
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[ListOffsetsPartition(partition_index=0, timestamp=EARLIEST)],
            )
        ]
    )
    offset: int = client.call(request, 5).topics[0].partitions[0].offset
    return offset


def readable_offsets(client: RawClient, topic: str, end: int) -> list[int]:
    """The offsets of all records, read as a consumer reads: from behind the last batch on."""
    found: list[int] = []
    at = 0
    while at < end:
        fetched = fetch_from(client, topic, at)
        assert fetched.error_code == ErrorCode.NONE
        rest = memoryview(fetched.records)
        assert rest, f"nothing at {at}"
        while rest:
            header = read_batch_header(rest)
            found += [record.offset for record in iter_records(rest[: header.size_in_bytes])]
            at = header.next_offset
            rest = rest[header.size_in_bytes :]
    return found


def segment_files(broker: RunningBroker, topic: str) -> list[str]:
    folder: Path = broker.data_dir / f"{topic}-0"
    return sorted(path.name for path in folder.iterdir() if ".log" in path.name)


def test_retention_by_size_moves_the_start_and_removes_the_files() -> None:
    with running_broker(properties=EAGER) as broker, RawClient(broker) as client:
        # The records are old, and this is not about their age.
        configs = {"retention.bytes": "2000", "retention.ms": "-1", "file.delete.delay.ms": "0"}
        configs |= SEGMENT
        create_topic(client, "topic", configs=configs)
        for _ in range(20):
            assert produce_to(client, "topic", keyed(b"key", b"x" * 400)).error_code == 0
        # Of ten segments three stay: without the oldest of them it would be less than 2000 bytes.
        start = 14
        until(lambda: earliest(client, "topic") >= start)
        below = fetch_from(client, "topic", start - 1)
        assert below.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert fetch_from(client, "topic", start).error_code == ErrorCode.NONE
        until(lambda: len(segment_files(broker, "topic")) <= 4)
        broker.kill()
        broker.start()
        with RawClient(broker) as again:
            assert earliest(again, "topic") == start


def test_without_a_bound_nothing_goes() -> None:
    with running_broker(properties=EAGER) as broker, RawClient(broker) as client:
        configs = {**SEGMENT, "retention.bytes": "-1", "retention.ms": "-1"}
        create_topic(client, "kept", configs=configs)
        create_topic(client, "short", configs={**SEGMENT, "retention.bytes": "0"})
        for topic in ("kept", "short"):
            for _ in range(10):
                produce_to(client, topic, keyed(b"key", b"x" * 400))
        until(lambda: earliest(client, "short") > 0)
        assert earliest(client, "kept") == 0


def test_compaction_keeps_the_last_value_of_each_key_at_its_offset() -> None:
    with running_broker(properties=EAGER) as broker, RawClient(broker) as client:
        configs = {**SEGMENT, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
        create_topic(client, "topic", configs=configs)
        for number in range(60):
            batch = keyed(b"key-%d" % (number % 3), b"%d" % number + b"x" * 300)
            assert produce_to(client, "topic", batch).error_code == 0

        until(lambda: len(readable_offsets(client, "topic", 60)) < 12)
        left = readable_offsets(client, "topic", 60)
        assert left[-3:] == [57, 58, 59]
        assert left == sorted(left)
        assert earliest(client, "topic") == 0
        assert broker.probe.longest_step_s < 0.05, broker.probe.longest_task


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_compaction_can_be_turned_off(enabled: str) -> None:
    properties = {**EAGER, "log.cleaner.enable": enabled}
    with running_broker(properties=properties) as broker, RawClient(broker) as client:
        configs = {**SEGMENT, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
        create_topic(client, "topic", configs=configs)
        create_topic(client, "short", configs={**SEGMENT, "retention.bytes": "0"})
        for _ in range(20):
            produce_to(client, "topic", keyed(b"key", b"x" * 400))
            produce_to(client, "short", keyed(b"key", b"x" * 400))
        # Retention has had its runs by then, and compaction would have had as many.
        until(lambda: earliest(client, "short") >= 18)
        if enabled == "true":
            until(lambda: len(readable_offsets(client, "topic", 20)) < 20)
        else:
            assert len(readable_offsets(client, "topic", 20)) == 20


def test_a_stop_does_not_wait_for_a_slow_compaction() -> None:
    with running_broker(properties=EAGER) as broker, RawClient(broker) as client:
        slow = {"log.cleaner.io.max.bytes.per.second": "100"}
        assert alter(client, BROKER, "", slow) == ErrorCode.NONE
        configs = {**SEGMENT, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
        create_topic(client, "topic", configs=configs)
        for _ in range(10):
            produce_to(client, "topic", keyed(b"key", b"x" * 400))
        (partition,) = broker.broker.partitions
        until(lambda: partition.log.cleaning is not None)
        began_at = time.monotonic()
        broker.stop()
        # At that rate it would take most of a minute.
        assert time.monotonic() - began_at < 10
        assert (broker.data_dir / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize(
    ("refused", "number"),
    [("/first-0/00000000000000000000.log.deleted", errno.EIO), ("log-start-offset", errno.ENOSPC)],
)
def test_what_one_log_meets_is_nothing_to_the_others(refused: str, number: int) -> None:
    fs = MemoryFileSystem()
    with running_broker(properties=SELDOM, fs=fs) as broker, RawClient(broker) as client:
        fill_two(client)
        fs.refuse = lambda operation, path: number if refused in path else None
        run_retention(broker)
        fs.refuse = None
        assert earliest(client, "second") == 10
        # A full disk passes, and takes nothing offline.
        answer = produce_to(client, "first").error_code
        assert answer == (ErrorCode.KAFKA_STORAGE_ERROR if number == errno.EIO else ErrorCode.NONE)


def test_a_full_directory_is_not_offline() -> None:
    fs = MemoryFileSystem()
    properties = {**SELDOM, "log.dirs": "/first,/second"}
    with running_broker(properties=properties, fs=fs) as broker, RawClient(broker) as client:
        fill_two(client)
        (spare,) = (each.log for each in broker.broker.partitions if each.log.root == "/second")
        fs.refuse = lambda operation, path: (
            errno.ENOSPC if path.startswith("/second/log-start-offset") else None
        )
        run_retention(broker)
        fs.refuse = None
        assert produce_to(client, spare.topic).error_code == ErrorCode.NONE


def fill_two(client: RawClient) -> None:
    for topic in ("first", "second"):
        create_topic(client, topic, configs={**SEGMENT, "retention.bytes": "0"})
        for _ in range(10):
            assert produce_to(client, topic, keyed(b"key", b"x" * 400)).error_code == 0


def run_retention(broker: RunningBroker) -> None:
    assert broker._token is not None
    trio.from_thread.run(broker.broker.log_care.delete_old_segments, trio_token=broker._token)
