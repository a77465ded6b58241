"""The handler of DescribeLogDirs: what is in the directory, and a disk that refuses to say."""

from __future__ import annotations

import errno
from collections.abc import Iterator

import pytest

from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.raw_client import RawClient, batch, create_topic, produce_to
from klamm.log.memory_fs import MemoryFileSystem
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResult,
)


@pytest.fixture
def fs() -> MemoryFileSystem:
    return MemoryFileSystem()


@pytest.fixture
def broker(fs: MemoryFileSystem) -> Iterator[RunningBroker]:
    with running_broker(fs=fs) as broker:
        yield broker


@pytest.fixture
def client(broker: RunningBroker) -> Iterator[RawClient]:
    with RawClient(broker) as client:
        create_topic(client, "topic", partitions=2)
        create_topic(client, "other")
        produce_to(client, "topic")
        yield client


def describe(client: RawClient, *topics: tuple[str, list[int]]) -> DescribeLogDirsResult:
    """The one directory; without topics, all of it."""
    named = [DescribableLogDirTopic(topic=topic, partitions=list(held)) for topic, held in topics]
    response = client.call(DescribeLogDirsRequest(topics=named or None))
    assert response.error_code == ErrorCode.NONE
    (result,) = response.results
    assert isinstance(result, DescribeLogDirsResult)
    return result


def sizes(result: DescribeLogDirsResult) -> dict[tuple[str, int], int]:
    return {
        (topic.name, partition.partition_index): partition.partition_size
        for topic in result.topics
        for partition in topic.partitions
    }


def test_all_partitions_and_their_sizes(broker: RunningBroker, client: RawClient) -> None:
    result = describe(client)
    assert result.log_dir == str(broker.data_dir)
    assert sizes(result) == {("topic", 0): len(batch()), ("topic", 1): 0, ("other", 0): 0}


def test_what_is_not_there_is_left_out(client: RawClient) -> None:
    result = describe(client, ("topic", [1, 1, 7]), ("missing", [0]), ("other", []), ("topic", [1]))
    assert sizes(result) == {("topic", 1): 0}


def test_the_space(fs: MemoryFileSystem, client: RawClient) -> None:
    fs.capacity_bytes = 1_000_000
    result = describe(client)
    assert result.total_bytes == 1_000_000
    assert 0 < result.usable_bytes < 1_000_000


def test_a_disk_that_does_not_answer(fs: MemoryFileSystem, client: RawClient) -> None:
    fs.refuse = lambda operation, path: errno.EIO if operation == "space" else None
    result = describe(client)
    assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert (result.topics, result.total_bytes, result.usable_bytes) == ([], -1, -1)
