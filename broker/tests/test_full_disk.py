"""A disk that is full: writes are refused, and everything that makes room goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.groups.group_client import commit, committed, find_coordinator
from klamm.broker.tests.raw_client import (
    RawClient,
    batch,
    create_topic,
    delete_topic,
    produce_to,
)
from klamm.broker.tests.waiting import until
from klamm.log.memory_fs import MemoryFileSystem
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

SEGMENT = 1024 * 1024
BATCH = batch(bytes(SEGMENT // 2))
PROPERTIES = {"offsets.topic.num.partitions": "1", "log.retention.check.interval.ms": "100"}


@pytest.fixture
def fs() -> MemoryFileSystem:
    return MemoryFileSystem()


@pytest.fixture
def broker(fs: MemoryFileSystem) -> Iterator[RunningBroker]:
    properties = {**PROPERTIES, "log.initial.task.delay.ms": "60000"}
    with running_broker(properties=properties, fs=fs) as broker:
        yield broker
        # A clean stop writes, too.
        fs.capacity_bytes = None


@pytest.fixture
def client(broker: RunningBroker, fs: MemoryFileSystem) -> Iterator[RawClient]:
    """Of a broker whose disk is full to the last byte, with a topic that has four segments."""
    with RawClient(broker) as client:
        fill(client, fs)
        yield client


def fill(client: RawClient, fs: MemoryFileSystem, configs: dict[str, str] | None = None) -> None:
    settings = {"segment.bytes": str(SEGMENT), "file.delete.delay.ms": "0", **(configs or {})}
    create_topic(client, "topic", configs=settings)
    create_topic(client, "other")
    for _ in range(7):
        produce_to(client, "topic", BATCH)
    find_coordinator(client, "group")
    until(lambda: commit(client, "group", {"topic": {0: 1}}) is ErrorCode.NONE)
    fs.capacity_bytes = sum(len(data) for data in fs.files().values())
    assert produce_to(client, "other").error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert commit(client, "group", {"topic": {0: 2}}) is ErrorCode.NOT_COORDINATOR
    assert committed(client, "group") == {"topic": {0: 1}}


def assert_there_is_room(client: RawClient) -> None:
    assert produce_to(client, "other").base_offset == 0
    assert commit(client, "group", {"topic": {0: 3}}) is ErrorCode.NONE
    assert committed(client, "group") == {"topic": {0: 3}}


def test_deleting_records_makes_room(client: RawClient) -> None:
    partition = DeleteRecordsPartition(partition_index=0, offset=6)
    topic = DeleteRecordsTopic(name="topic", partitions=[partition])
    response = client.call(DeleteRecordsRequest(topics=[topic], timeout_ms=10_000))
    (result,) = response.topics[0].partitions
    assert (result.error_code, result.low_watermark) == (ErrorCode.NONE, 6)
    assert_there_is_room(client)


def test_deleting_a_topic_makes_room(
    broker: RunningBroker, client: RawClient, fs: MemoryFileSystem
) -> None:
    delete_topic(client, "topic")
    until(lambda: not any("/topic-0" in path for path in fs.files()))
    assert produce_to(client, "other").base_offset == 0
    # And again: the room that it needs is kept back anew.
    create_topic(client, "topic")
    until(lambda: fs.size(f"{broker.data_dir}/.klamm-reserve") > 0)
    fs.capacity_bytes = sum(len(data) for data in fs.files().values())
    assert produce_to(client, "topic", BATCH).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    delete_topic(client, "topic")


def test_retention_makes_room(fs: MemoryFileSystem) -> None:
    properties = {**PROPERTIES, "log.initial.task.delay.ms": "0"}
    with running_broker(properties=properties, fs=fs) as broker, RawClient(broker) as client:
        fill(client, fs, {"retention.ms": "-1", "retention.bytes": str(8 * SEGMENT)})
        fs.capacity_bytes = None
        produced = 7
        while produced < 20:
            produce_to(client, "topic", BATCH)
            produced += 1
        fs.capacity_bytes = sum(len(data) for data in fs.files().values())
        until(lambda: produce_to(client, "other").error_code == ErrorCode.NONE)
        fs.capacity_bytes = None
