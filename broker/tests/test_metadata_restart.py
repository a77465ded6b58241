"""What of topics, partitions and ids survives a stop, a kill, and damage."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from klamm.broker import controller
from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.raw_client import (
    RawClient,
    create_topic,
    delete_topic,
    describe_topic,
    fetch_from,
    produce_to,
)
from klamm.broker.tests.watched_fs import WatchedFileSystem
from klamm.log.errors import CorruptLogError
from klamm.log.layout import CLEAN_SHUTDOWN_FILE
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from klamm.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from klamm.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from klamm.wire.messages.init_producer_id import InitProducerIdRequest
from klamm.wire.messages.metadata import MetadataRequest, MetadataRequestTopic


def stop(broker: RunningBroker) -> None:
    broker.stop()


def kill(broker: RunningBroker) -> None:
    broker.kill()


every_way_to_end = pytest.mark.parametrize("end", [stop, kill])


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    with running_broker(tmp_path / "data") as running:
        yield running


def retention_of(client: RawClient, topic: str) -> str:
    resource = DescribeConfigsResource(
        resource_type=2, resource_name=topic, configuration_keys=["retention.ms"]
    )
    (result,) = client.call(DescribeConfigsRequest(resources=[resource])).results
    (config,) = result.configs
    value: str = config.value
    return value


@every_way_to_end
def test_topics_keep_their_ids_configs_and_partitions(broker: RunningBroker, end: Any) -> None:
    with RawClient(broker) as client:
        topic_id = create_topic(client, "topic", 2, {"retention.ms": "12345"})
        create_topic(client, "gone")
        grown = CreatePartitionsTopic(name="topic", count=5, assignments=None)
        client.call(CreatePartitionsRequest(topics=[grown]))
        for index in range(5):
            produce_to(client, "topic", partition=index)
        delete_topic(client, "gone")
        cluster_id = client.call(MetadataRequest(topics=[])).cluster_id
    end(broker)
    broker.start()
    with RawClient(broker) as client:
        topic = describe_topic(client, "topic")
        assert (topic.topic_id, len(topic.partitions)) == (topic_id, 5)
        assert retention_of(client, "topic") == "12345"
        gone = describe_topic(client, "gone")
        assert gone.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert client.call(MetadataRequest(topics=[])).cluster_id == cluster_id
        for index in range(5):
            assert fetch_from(client, "topic", partitions=(index,)).high_watermark == 1
            assert produce_to(client, "topic", partition=index).base_offset == 1


@every_way_to_end
def test_a_topic_made_again_under_its_name_is_another_one(broker: RunningBroker, end: Any) -> None:
    with RawClient(broker) as client:
        first = create_topic(client, "topic")
        produce_to(client, "topic")
        delete_topic(client, "topic")
        second = create_topic(client, "topic")
        assert first != second
        assert fetch_from(client, "topic").high_watermark == 0
        produce_to(client, "topic")
        produce_to(client, "topic")
    end(broker)
    broker.start()
    with RawClient(broker) as client:
        assert describe_topic(client, "topic").topic_id == second
        assert fetch_from(client, "topic").high_watermark == 2


def test_only_an_unclean_end_bumps_the_leader_epoch(broker: RunningBroker) -> None:
    def epochs() -> list[int]:
        with RawClient(broker) as client:
            return [state.leader_epoch for state in describe_topic(client, "topic").partitions]

    with RawClient(broker) as client:
        create_topic(client, "topic", 2)
    assert epochs() == [0, 0]
    broker.restart()
    assert epochs() == [0, 0]
    broker.kill()
    broker.start()
    assert epochs() == [1, 1]
    broker.kill()
    broker.start()
    assert epochs() == [2, 2]
    with RawClient(broker) as client:
        produce_to(client, "topic")
    broker.restart()
    assert epochs() == [2, 2]


def test_a_crash_between_commit_and_the_making_of_partitions(
    broker: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RawClient(broker) as client:
        with monkeypatch.context() as patch:
            # The commit is on disk; then the process ends.
            patch.setattr(controller, "open_log", lambda *_: broker.broker.halt("crashed here"))
            topic = CreatableTopic(name="topic", num_partitions=3, replication_factor=1)
            client.send(CreateTopicsRequest(topics=[topic]))
            assert client.is_closed_by_peer()
        broker.kill()
    assert not (broker.data_dir / "topic-0").exists()
    broker.start()
    with RawClient(broker) as client:
        assert len(describe_topic(client, "topic").partitions) == 3
        for index in range(3):
            assert produce_to(client, "topic", partition=index).base_offset == 0


def test_a_crash_before_the_commit_is_synced_leaves_no_half_topic(tmp_path: Path) -> None:
    fs = WatchedFileSystem()
    with running_broker(tmp_path / "own", fs=fs) as broker:
        with RawClient(broker) as client:
            gate = fs.hold_syncs_of("__cluster_metadata")
            topic = CreatableTopic(name="topic", num_partitions=3, replication_factor=1)
            client.send(CreateTopicsRequest(topics=[topic]))
            gate.wait_for_arrival()
            with RawClient(broker) as other:
                # Nobody sees it before it is on disk.
                assert (
                    describe_topic(other, "topic").error_code
                    == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                )
            broker._call(lambda: broker.broker.halt("crashed here"))
            gate.let_through(100)
            broker.kill()
        assert not (tmp_path / "own" / "topic-0").exists()
        broker.start()
        with RawClient(broker) as client:
            topic = describe_topic(client, "topic")
            # It was in the page cache: all of it is there, or nothing.
            assert (topic.error_code, len(topic.partitions)) in (
                (0, 3),
                (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0),
            )


def damage(broker: RunningBroker, topic: str) -> tuple[Path, bytes]:
    """Flip a bit in the first batch, which is known to be synced, and end uncleanly."""
    # A clean end writes the recovery point down; below it nothing is ever cut off.
    broker.restart()
    broker.kill()
    (segment,) = (broker.data_dir / f"{topic}-0").glob("*.log")
    data = bytearray(segment.read_bytes())
    data[65] ^= 1
    segment.write_bytes(data)
    return segment, bytes(data)


def test_a_damaged_partition_stays_offline_and_others_are_served(
    broker: RunningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    with RawClient(broker) as client:
        for topic in ("damaged", "healthy"):
            create_topic(client, topic)
            for _ in range(3):
                produce_to(client, topic)
    segment, data = damage(broker, "damaged")
    broker.start()
    assert any("partition damaged-0 stays offline" in r.getMessage() for r in caplog.records)
    with RawClient(broker) as client:
        assert produce_to(client, "damaged").error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert fetch_from(client, "damaged").error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert produce_to(client, "healthy").base_offset == 3
        assert len(fetch_from(client, "healthy").records) > 0
        # Nothing of it was touched.
        assert segment.read_bytes() == data
    broker.restart()
    with RawClient(broker) as client:
        assert fetch_from(client, "damaged").error_code == ErrorCode.KAFKA_STORAGE_ERROR
        # It can be given up.
        delete_topic(client, "damaged")
        create_topic(client, "damaged")
        assert produce_to(client, "damaged").base_offset == 0
    broker.restart()
    with RawClient(broker) as client:
        assert fetch_from(client, "damaged").high_watermark == 1


def test_a_damaged_topic_that_is_deleted_leaves_nothing_behind(broker: RunningBroker) -> None:
    with RawClient(broker) as client:
        create_topic(client, "damaged", 2)
        produce_to(client, "damaged")
    segment, _ = damage(broker, "damaged")
    broker.start()
    with RawClient(broker) as client:
        delete_topic(client, "damaged")
        assert describe_topic(client, "damaged").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    broker.stop()
    # Everything that is left could be closed in order.
    assert (broker.data_dir / CLEAN_SHUTDOWN_FILE).exists()
    assert not segment.exists()
    broker.start()
    assert list(broker.data_dir.glob("damaged-*")) == []


def test_a_directory_that_no_topic_owns_is_set_aside_and_kept(broker: RunningBroker) -> None:
    with RawClient(broker) as client:
        create_topic(client, "topic")
        produce_to(client, "topic")
    broker.stop()
    stray = broker.data_dir / "stray-7"
    stray.mkdir()
    (stray / "precious").write_text("data")
    broker.start()
    assert not stray.exists()
    (kept,) = broker.data_dir.glob("stray-7.*-stray")
    assert (kept / "precious").read_text() == "data"
    with RawClient(broker) as client:
        assert fetch_from(client, "topic").high_watermark == 1
    broker.restart()
    assert kept.exists()


def test_damaged_metadata_is_not_taken_for_none(broker: RunningBroker) -> None:
    with RawClient(broker) as client:
        create_topic(client, "topic")
        create_topic(client, "other")
    segment, data = damage(broker, "__cluster_metadata")
    with pytest.raises(CorruptLogError, match="damaged batch"):
        broker.start()
    assert segment.read_bytes() == data
    assert (broker.data_dir / "topic-0").exists()


def take_producer_id(client: RawClient) -> int:
    response = client.call(InitProducerIdRequest(transactional_id=None, producer_id=-1))
    assert (response.error_code, response.producer_epoch) == (0, 0)
    producer_id: int = response.producer_id
    return producer_id


@every_way_to_end
def test_producer_ids_are_never_given_twice(broker: RunningBroker, end: Any) -> None:
    taken: list[int] = []
    for _ in range(4):
        with RawClient(broker) as client:
            taken += [take_producer_id(client) for _ in range(3)]
        end(broker)
        broker.start()
    assert len(set(taken)) == len(taken)
    assert taken == sorted(taken)


def test_more_producers_than_a_block_has_get_ids(broker: RunningBroker) -> None:
    request = InitProducerIdRequest(transactional_id=None, producer_id=-1)
    taken = []
    with RawClient(broker) as client, RawClient(broker) as other:
        for _ in range(21):
            for each in (client, other):
                each.send(*[request] * 50)
            for each in (client, other):
                taken += [each.receive()[1].producer_id for _ in range(50)]
    assert sorted(taken) == list(range(2100))


def test_a_block_that_cannot_be_recorded_is_not_used(tmp_path: Path) -> None:
    fs = WatchedFileSystem()
    with running_broker(tmp_path / "own", fs=fs) as broker, RawClient(broker) as client:
        fs.fail_appends(errno.ENOSPC)
        request = InitProducerIdRequest(transactional_id=None, producer_id=-1)
        refused = client.call(request)
        assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert refused.producer_id == -1
        fs.fail_appends(0)
        assert take_producer_id(client) == 0


def test_changes_are_made_one_after_the_other(broker: RunningBroker) -> None:
    """Many clients make the same topic: one of them makes it."""
    clients = [RawClient(broker) for _ in range(10)]
    topic = CreatableTopic(name="topic", num_partitions=3, replication_factor=1)
    for client in clients:
        client.send(CreateTopicsRequest(topics=[topic]))
    codes = [client.receive()[1].topics[0].error_code for client in clients]
    assert sorted(codes) == [0] + [ErrorCode.TOPIC_ALREADY_EXISTS] * 9
    for client in clients:
        client.close()


def test_many_clients_that_ask_for_a_missing_topic_get_the_same_one(
    broker: RunningBroker,
) -> None:
    clients = [RawClient(broker) for _ in range(10)]
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name="missing"), MetadataRequestTopic(name="other")]
    )
    for client in clients:
        client.send(request, version=12)
    answers = [client.receive()[1].topics for client in clients]
    assert {topic.error_code for topics in answers for topic in topics} == {0}
    assert len({(topic.name, topic.topic_id) for topics in answers for topic in topics}) == 2
    # It is ready when it is shown.
    assert produce_to(clients[0], "missing").base_offset == 0
    for client in clients:
        client.close()


def test_metadata_that_is_being_written_when_a_stop_comes_is_finished(tmp_path: Path) -> None:
    fs = WatchedFileSystem()
    with running_broker(tmp_path / "own", fs=fs) as broker:
        with RawClient(broker) as client:
            gate = fs.hold_syncs_of("__cluster_metadata")
            topic = CreatableTopic(name="topic", num_partitions=1, replication_factor=1)
            client.send(CreateTopicsRequest(topics=[topic]))
            gate.wait_for_arrival()
            broker._call(broker.broker.stop)
            gate.let_through(100)
            assert client.receive()[1].topics[0].error_code == 0
        broker.stop()
        broker.start()
        with RawClient(broker) as client:
            assert describe_topic(client, "topic").error_code == 0
