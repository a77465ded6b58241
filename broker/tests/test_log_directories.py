"""Several log directories: where partitions go, and what becomes of them when a directory fails."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from klamm.broker.broker import BrokerHaltedError
from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.raw_client import (
    RawClient,
    create_topic,
    delete_topic,
    describe_topic,
    fetch,
    fetch_from,
    produce_to,
)
from klamm.broker.tests.test_alter_replica_log_dirs import alter
from klamm.broker.tests.waiting import until
from klamm.log.errors import DuplicatePartitionError, InconsistentDirectoryError
from klamm.log.memory_fs import MemoryFileSystem
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from klamm.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from klamm.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from klamm.wire.messages.find_coordinator import FindCoordinatorRequest
from klamm.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

NODE = 1
ROOTS = ("/a", "/b", "/c")
PROPERTIES = {
    "log.dirs": ",".join(ROOTS),
    "replica.high.watermark.checkpoint.interval.ms": "20",
    "offsets.topic.num.partitions": "3",
}


class Disks(MemoryFileSystem):
    """A disk for each directory, of which some do not work any more."""

    def __init__(self) -> None:
        super().__init__()
        self.broken: set[str] = set()
        self.refuse = self._refuse

    def _refuse(self, operation: str, path: str) -> int | None:
        return errno.EIO if f"/{path.split('/')[1]}" in self.broken else None


@pytest.fixture
def disks() -> Disks:
    return Disks()


@pytest.fixture
def broker(disks: Disks) -> Iterator[RunningBroker]:
    with running_broker(properties=PROPERTIES, fs=disks) as broker:
        yield broker


@pytest.fixture
def client(broker: RunningBroker) -> Iterator[RawClient]:
    with RawClient(broker) as client:
        yield client


def directories(client: RawClient) -> dict[str, set[tuple[str, int]] | None]:
    """What is in each directory; None for one that is offline."""
    found: dict[str, set[tuple[str, int]] | None] = {}
    for result in client.call(DescribeLogDirsRequest(topics=None)).results:
        held = {
            (topic.name, partition.partition_index)
            for topic in result.topics
            for partition in topic.partitions
        }
        found[result.log_dir] = None if result.error_code else held
        if result.error_code:
            assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert (held, result.total_bytes, result.usable_bytes) == (set(), -1, -1)
    return found


def leaders(client: RawClient, topic: str) -> dict[int, int]:
    return {
        state.partition_index: state.leader_id for state in describe_topic(client, topic).partitions
    }


def end_of(client: RawClient, topic: str, index: int) -> int:
    """Where a partition ends; nothing is read, because these disks can't send files."""
    asked = ListOffsetsPartition(partition_index=index, timestamp=-1)
    response = client.call(
        ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[asked])])
    )
    (found,) = response.topics[0].partitions
    assert found.error_code == 0
    offset: int = found.offset
    return offset


def wait_until_offline(client: RawClient, topic: str, *indexes: int) -> None:
    until(lambda: all(leaders(client, topic)[index] == -1 for index in indexes))


# --- placement -----------------------------------------------------------------------------------


def test_new_partitions_go_where_the_fewest_are(client: RawClient) -> None:
    create_topic(client, "topic", partitions=7)
    sizes = [len(held or ()) for held in directories(client).values()]
    assert sorted(sizes) == [2, 2, 3]
    create_topic(client, "other", partitions=2)
    assert [len(held or ()) for held in directories(client).values()] == [3, 3, 3]
    grown = CreatePartitionsTopic(name="other", count=5, assignments=None)
    client.call(CreatePartitionsRequest(topics=[grown]))
    assert [len(held or ()) for held in directories(client).values()] == [4, 4, 4]
    delete_topic(client, "topic")
    assert sum(len(held or ()) for held in directories(client).values()) == 5


def test_partitions_are_found_again(broker: RunningBroker) -> None:
    with RawClient(broker) as client:
        create_topic(client, "topic", partitions=6)
        for index in range(6):
            produce_to(client, "topic", partition=index)
        before = directories(client)
    broker.restart()
    with RawClient(broker) as client:
        assert directories(client) == before
        assert leaders(client, "topic") == dict.fromkeys(range(6), NODE)
        assert {state.leader_epoch for state in describe_topic(client, "topic").partitions} == {0}
    broker.kill()
    broker.start()
    with RawClient(broker) as client:
        assert directories(client) == before
        for index in range(6):
            assert end_of(client, "topic", index) == 1


def test_cordoned_directories_get_no_new_partitions(disks: Disks) -> None:
    properties = {**PROPERTIES, "cordoned.log.dirs": "/a,/c"}
    with running_broker(properties=properties, fs=disks) as broker, RawClient(broker) as client:
        create_topic(client, "topic", partitions=3)
        assert [len(held or ()) for held in directories(client).values()] == [0, 3, 0]
        results = client.call(DescribeLogDirsRequest(topics=None)).results
        assert [result.is_cordoned for result in results] == [True, False, True]
        moves = alter(client, ("/a", "topic", [0]), ("/b", "topic", [1]))
        assert moves["topic", 0] == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert moves["topic", 1] == ErrorCode.NONE
    all_of_them = {**PROPERTIES, "cordoned.log.dirs": "*"}
    with running_broker(properties=all_of_them, fs=disks) as broker, RawClient(broker) as client:
        wanted = CreatableTopic(name="other", num_partitions=1, replication_factor=1)
        (refused,) = client.call(CreateTopicsRequest(topics=[wanted])).topics
        assert refused.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
        grown = CreatePartitionsTopic(name="topic", count=5, assignments=None)
        (refused,) = client.call(CreatePartitionsRequest(topics=[grown])).results
        assert refused.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
        assert leaders(client, "topic") == dict.fromkeys(range(3), NODE)


def test_the_metadata_log_may_have_a_directory_of_its_own(disks: Disks) -> None:
    properties = {**PROPERTIES, "metadata.log.dir": "/meta"}
    with running_broker(properties=properties, fs=disks) as broker:
        with RawClient(broker) as client:
            create_topic(client, "topic", partitions=3)
            assert list(directories(client)) == list(ROOTS)
        assert "__cluster_metadata-0" in disks.list_directories("/meta")
        assert "__cluster_metadata-0" not in disks.list_directories("/a")
        broker.restart()
        with RawClient(broker) as client:
            assert leaders(client, "topic") == {0: NODE, 1: NODE, 2: NODE}


# --- a directory that fails ----------------------------------------------------------------------


@pytest.fixture
def spread(client: RawClient) -> RawClient:
    """A topic with a partition in each directory: 0 in /a, 1 in /b, 2 in /c."""
    create_topic(client, "topic", partitions=3)
    for index in range(3):
        produce_to(client, "topic", partition=index)
    held = list(directories(client).values())
    assert held == [{("topic", index)} for index in range(3)]
    return client


def test_a_failed_checkpoint_takes_its_directory_offline(
    disks: Disks, broker: RunningBroker, spread: RawClient
) -> None:
    disks.broken.add("/b")
    wait_until_offline(spread, "topic", 1)
    topic = describe_topic(spread, "topic")
    offline = topic.partitions[1]
    assert offline.error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert (offline.leader_epoch, offline.isr_nodes, offline.offline_replicas) == (1, [], [NODE])
    assert directories(spread) == {"/a": {("topic", 0)}, "/b": None, "/c": {("topic", 2)}}
    assert produce_to(spread, "topic", partition=1).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    refused = fetch_from(spread, "topic", partitions=(1,))
    assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    for index in (0, 2):
        assert produce_to(spread, "topic", partition=index).base_offset == 1
        assert end_of(spread, "topic", index) == 2
    # New partitions go to what is left.
    create_topic(spread, "later", partitions=4)
    assert leaders(spread, "later") == dict.fromkeys(range(4), NODE)
    assert [len(held or ()) for held in directories(spread).values()] == [3, 0, 3]


def test_a_failed_write_takes_its_directory_offline(disks: Disks, spread: RawClient) -> None:
    create_topic(spread, "beside", partitions=3)
    (beside,) = [index for topic, index in directories(spread)["/c"] or () if topic == "beside"]
    disks.broken.add("/c")
    assert produce_to(spread, "topic", partition=2).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    refused = produce_to(spread, "beside", partition=beside)
    assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    wait_until_offline(spread, "beside", beside)


def test_a_parked_fetch_hears_of_it(disks: Disks, broker: RunningBroker, spread: RawClient) -> None:
    with RawClient(broker) as parked:
        parked.send(fetch("topic", 1, partitions=(1,), max_wait_ms=60_000), version=12)
        disks.broken.add("/b")
        wait_until_offline(spread, "topic", 1)
        _, response = parked.receive()
        assert response.responses[0].partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_its_groups_are_not_served_and_others_are(disks: Disks, client: RawClient) -> None:
    groups = [str(number) for number in range(12)]
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=groups)

    def codes() -> list[int]:
        return [found.error_code for found in client.call(request).coordinators]

    assert set(codes()) == {0}
    disks.broken.add("/b")
    until(lambda: ErrorCode.COORDINATOR_NOT_AVAILABLE in codes())
    assert {0, ErrorCode.COORDINATOR_NOT_AVAILABLE} == set(codes())


def test_it_is_back_after_a_restart(disks: Disks, broker: RunningBroker) -> None:
    with RawClient(broker) as client:
        create_topic(client, "topic", partitions=3)
        for index in range(3):
            produce_to(client, "topic", partition=index)
        disks.broken.add("/b")
        wait_until_offline(client, "topic", 1)
    broker.restart()
    with RawClient(broker) as client:
        assert leaders(client, "topic") == {0: NODE, 1: -1, 2: NODE}
        assert describe_topic(client, "topic").partitions[1].leader_epoch == 1
        assert directories(client)["/b"] is None
    disks.broken.clear()
    broker.restart()
    with RawClient(broker) as client:
        assert leaders(client, "topic") == dict.fromkeys(range(3), NODE)
        epochs = [state.leader_epoch for state in describe_topic(client, "topic").partitions]
        assert epochs == [0, 2, 0]
        assert end_of(client, "topic", 1) == 1


def test_a_topic_can_be_deleted_while_a_part_of_it_is_offline(
    disks: Disks, broker: RunningBroker
) -> None:
    with RawClient(broker) as client:
        create_topic(client, "topic", partitions=3)
        disks.broken.add("/b")
        wait_until_offline(client, "topic", 1)
        delete_topic(client, "topic")
        create_topic(client, "topic", partitions=3)
        assert leaders(client, "topic") == dict.fromkeys(range(3), NODE)
    disks.broken.clear()
    broker.restart()
    with RawClient(broker) as client:
        assert leaders(client, "topic") == dict.fromkeys(range(3), NODE)
        assert directories(client)["/b"] == set()
    assert any(name.endswith("-stray") for name in disks.list_directories("/b"))


def test_without_the_metadata_log_there_is_no_broker(disks: Disks) -> None:
    with running_broker(properties=PROPERTIES, fs=disks) as broker:
        with RawClient(broker) as client:
            disks.broken.add("/a")
            assert client.is_closed_by_peer()
        with pytest.raises(BrokerHaltedError, match="the checkpoints can't be written"):
            broker.stop()


def test_without_any_directory_there_is_no_broker(disks: Disks) -> None:
    properties = {**PROPERTIES, "metadata.log.dir": "/meta"}
    with running_broker(properties=properties, fs=disks) as broker:
        with RawClient(broker) as client:
            disks.broken.update(ROOTS)
            assert client.is_closed_by_peer()
        with pytest.raises(BrokerHaltedError, match="no log directory is left"):
            broker.stop()


def test_a_directory_that_is_taken_away_is_not_made_again(tmp_path: Path) -> None:
    """What would be written there is not found by a start with the real one in its place."""
    roots = [tmp_path / name for name in "ab"]
    properties = {"log.dirs": ",".join(map(str, roots))}
    with running_broker(properties=properties) as broker, RawClient(broker) as client:
        roots[1].rename(tmp_path / "away")
        create_topic(client, "topic", partitions=2)
        assert sorted(leaders(client, "topic").values()) == [-1, NODE]
        assert directories(client)[str(roots[1])] is None
        assert not roots[1].exists()


def test_the_only_directory_is_taken_away(tmp_path: Path) -> None:
    root = tmp_path / "data"
    properties = {"replica.high.watermark.checkpoint.interval.ms": "2000"}
    with running_broker(root, properties) as broker:
        with RawClient(broker) as client:
            root.rename(tmp_path / "away")
            create_topic(client, "topic")
            assert produce_to(client, "topic").error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert client.is_closed_by_peer()
        with pytest.raises(BrokerHaltedError, match="the checkpoints can't be written"):
            broker.stop()
    assert not root.exists()


# --- directories at the start --------------------------------------------------------------------


def test_a_missing_directory_is_offline_and_an_empty_one_is_new(
    disks: Disks, broker: RunningBroker
) -> None:
    with RawClient(broker) as client:
        create_topic(client, "topic", partitions=3)
    broker.stop()
    disks.rename("/b", "/elsewhere")
    broker.start()
    with RawClient(broker) as client:
        assert leaders(client, "topic") == {0: NODE, 1: -1, 2: NODE}
        assert directories(client)["/b"] is None
        assert not disks.exists("/b")
    broker.stop()
    disks.make_directory("/b")
    broker.start()
    with RawClient(broker) as client:
        # What was assigned to the other disk is not made anew, empty.
        assert leaders(client, "topic") == {0: NODE, 1: -1, 2: NODE}
        assert directories(client)["/b"] == set()
        create_topic(client, "more")
        assert directories(client)["/b"] == {("more", 0)}


def test_a_directory_of_somebody_else_is_refused(disks: Disks, broker: RunningBroker) -> None:
    broker.stop()
    other = {"log.dirs": "/other", "node.id": "1"}
    with running_broker(properties=other, fs=disks):
        pass
    disks.rename("/b", "/away")
    disks.rename("/other", "/b")
    with pytest.raises(InconsistentDirectoryError, match="/b belongs to cluster"):
        broker.start()
    disks.rename("/b", "/other")
    disks.rename("/away", "/b")
    broker.start()


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    """Real directories: between those a partition can be moved by hand."""
    return [tmp_path / name for name in "abc"]


@pytest.fixture
def stopped(folders: list[Path]) -> Iterator[RunningBroker]:
    """A broker that has a partition with one record in each directory, and is stopped."""
    properties = {"log.dirs": ",".join(map(str, folders))}
    with running_broker(properties=properties) as broker:
        with RawClient(broker) as client:
            create_topic(client, "topic", partitions=3)
            for index in range(3):
                produce_to(client, "topic", partition=index)
        broker.stop()
        yield broker


def test_a_partition_moved_by_hand_is_found(stopped: RunningBroker, folders: list[Path]) -> None:
    _, b, c = folders
    (b / "topic-1").rename(c / "topic-1")
    for _ in range(2):
        stopped.start()
        with RawClient(stopped) as client:
            assert fetch_from(client, "topic", partitions=(1,)).high_watermark == 1
            assert directories(client)[str(c)] == {("topic", 1), ("topic", 2)}
        stopped.stop()


def test_of_two_copies_the_one_that_the_metadata_names_is_served(
    stopped: RunningBroker, folders: list[Path]
) -> None:
    """The other one is kept under another name."""
    a, b, _ = folders
    shutil.copytree(b / "topic-1", a / "topic-1")
    stopped.start()
    with RawClient(stopped) as client:
        assert directories(client)[str(b)] == {("topic", 1)}
        assert directories(client)[str(a)] == {("topic", 0)}
    assert [path.name.endswith("-stray") for path in a.glob("topic-1*")] == [True]


def test_two_copies_in_wrong_directories_are_refused(
    stopped: RunningBroker, folders: list[Path]
) -> None:
    a, b, c = folders
    shutil.copytree(a / "topic-0", c / "topic-0")
    (a / "topic-0").rename(b / "topic-0")
    with pytest.raises(DuplicatePartitionError, match=f"topic-0 is in {b} and {c}"):
        stopped.start()
