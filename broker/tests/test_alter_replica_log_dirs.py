"""The handler of AlterReplicaLogDirs: there is one directory, and everything is in it."""

from __future__ import annotations

import errno
from collections.abc import Iterator

import pytest

from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.raw_client import RawClient, create_topic
from klamm.log.memory_fs import MemoryFileSystem
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
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
        yield client


@pytest.fixture
def here(broker: RunningBroker) -> str:
    return str(broker.data_dir)


def alter(client: RawClient, *moves: tuple[str, str, list[int]]) -> dict[tuple[str, int], int]:
    dirs = [
        AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=name, partitions=held)])
        for path, name, held in moves
    ]
    response = client.call(AlterReplicaLogDirsRequest(dirs=dirs))
    answers = [
        ((topic.topic_name, partition.partition_index), partition.error_code)
        for topic in response.results
        for partition in topic.partitions
    ]
    assert len(dict(answers)) == len(answers)
    return dict(answers)


def test_where_it_is_already(client: RawClient, here: str) -> None:
    answers = alter(client, (here, "topic", [0, 1, 2, 0]), (here, "missing", [0]))
    assert answers == {
        ("topic", 0): ErrorCode.NONE,
        ("topic", 1): ErrorCode.NONE,
        ("topic", 2): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("missing", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_other_directories(client: RawClient, here: str) -> None:
    for path in ("/elsewhere", "", f"{here}/", "."):
        assert alter(client, (path, "topic", [0])) == {("topic", 0): ErrorCode.LOG_DIR_NOT_FOUND}


def test_the_last_directory_counts(client: RawClient, here: str) -> None:
    ours, other = (here, "topic", [0]), ("/elsewhere", "topic", [0])
    assert alter(client, ours, other) == {("topic", 0): ErrorCode.LOG_DIR_NOT_FOUND}
    assert alter(client, other, ours) == {("topic", 0): ErrorCode.NONE}


def test_names_that_are_too_long_to_move(client: RawClient, here: str) -> None:
    fits, too_long = "x" * 213, "x" * 214
    assert alter(client, (here, fits, [0]), ("/elsewhere", too_long, [0])) == {
        (fits, 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (too_long, 0): ErrorCode.INVALID_TOPIC_EXCEPTION,
    }


def test_a_partition_that_is_offline(fs: MemoryFileSystem, client: RawClient, here: str) -> None:
    fs.refuse = lambda operation, path: errno.EIO if "/broken-" in path else None
    create_topic(client, "broken")
    assert alter(client, (here, "broken", [0])) == {("broken", 0): ErrorCode.KAFKA_STORAGE_ERROR}
