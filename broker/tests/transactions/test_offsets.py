"""Offsets in transactions: pending, then in force or gone, whatever happens to the broker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from klamm.broker.groups.topics import MetadataTopics
from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.groups.group_client import (
    FETCH_VERSION,
    commit,
    commit_codes,
    committed,
    fetch_request,
    find_coordinator,
)
from klamm.broker.tests.raw_client import RawClient, create_topic
from klamm.broker.tests.transactions.conftest import FEW_PARTITIONS
from klamm.broker.tests.transactions.transactional_client import Producer
from klamm.broker.tests.waiting import until
from klamm.coordinator.ports import TopicDescription
from klamm.log.memory_fs import MemoryFileSystem, lose_bytes, lose_names
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

GROUP = "g"
OFFSETS_TOPIC = "__consumer_offsets"
PARTITIONS = 20_000
NEWEST = 5
# Whatever is not the last of its key goes as soon as it can.
EAGER_COMPACTION = {
    **FEW_PARTITIONS,
    "offsets.topic.num.partitions": "1",
    "log.cleaner.backoff.ms": "10",
    "log.cleaner.dedupe.buffer.size": "1048576",
    "log.cleaner.min.cleanable.ratio": "0.01",
    # So that markers go, too.
    "log.cleaner.delete.retention.ms": "0",
}


def committing(
    producer: Producer, offsets: Mapping[int, int], topic: str
) -> TxnOffsetCommitRequest:
    return TxnOffsetCommitRequest(
        transactional_id=producer.id,
        group_id=GROUP,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        topics=[
            TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=index, committed_offset=offset, committed_metadata=""
                    )
                    for index, offset in offsets.items()
                ],
            )
        ],
    )


def commit_offsets(
    producer: Producer, offsets: Mapping[int, int], *, topic: str = "t", version: int = NEWEST
) -> ErrorCode:
    """Commit in the open transaction; the one code of all partitions."""
    response = producer.client.call(committing(producer, offsets, topic), version)
    (code,) = commit_codes(response)
    return code


def unstable(client: RawClient) -> set[int]:
    """The partitions whose committed offset has to be waited for."""
    request = fetch_request(GROUP)
    request.require_stable = True
    (group,) = client.call(request, FETCH_VERSION).groups
    return {
        partition.partition_index
        for topic in group.topics
        for partition in topic.partitions
        if partition.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
    }


@pytest.fixture
def client(broker: RunningBroker) -> Iterator[RawClient]:
    with RawClient(broker) as connected:
        create_topic(connected, "t", 4)
        find_coordinator(connected, GROUP)
        yield connected


@pytest.fixture
def producer(client: RawClient) -> Producer:
    made = Producer(client)
    made.init()
    return made


@pytest.mark.parametrize("is_commit", [True, False])
def test_offsets_come_into_force_with_the_marker(
    client: RawClient, producer: Producer, is_commit: bool
) -> None:
    assert commit(client, GROUP, {"t": {0: 1}}) is ErrorCode.NONE
    assert commit_offsets(producer, {0: 5, 1: 6}) is ErrorCode.NONE
    assert producer.state == "Ongoing"
    assert committed(client, GROUP) == {"t": {0: 1}}
    assert unstable(client) == {0}
    assert producer.end(commit=is_commit) is ErrorCode.NONE
    producer.settle()
    assert committed(client, GROUP) == {"t": {0: 5, 1: 6} if is_commit else {0: 1}}
    assert unstable(client) == set()


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (0, ErrorCode.INVALID_TXN_STATE),
        (3, ErrorCode.INVALID_TXN_STATE),
        (4, ErrorCode.TRANSACTION_ABORTABLE),
    ],
)
def test_who_did_not_announce_it_may_not_commit(
    client: RawClient, producer: Producer, version: int, code: ErrorCode
) -> None:
    assert commit_offsets(producer, {0: 5}, version=version) is code
    assert producer.write("t", b"opens a transaction") is ErrorCode.NONE
    assert commit_offsets(producer, {0: 5}, version=version) is code
    assert producer.end() is ErrorCode.NONE
    assert committed(client, GROUP) == {}


def test_a_zombie_commits_nothing(client: RawClient, producer: Producer) -> None:
    assert commit_offsets(producer, {0: 5}) is ErrorCode.NONE
    successor = Producer(client)
    successor.init()
    assert commit_offsets(producer, {0: 6}) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert commit_offsets(successor, {0: 7}) is ErrorCode.NONE
    assert successor.end() is ErrorCode.NONE
    successor.settle()
    assert committed(client, GROUP) == {"t": {0: 7}}


def test_a_restart_in_the_middle_of_a_transaction(broker: RunningBroker) -> None:
    with RawClient(broker) as client:
        create_topic(client, "t", 4)
        find_coordinator(client, GROUP)
        producer = Producer(client)
        producer.init()
        assert commit(client, GROUP, {"t": {0: 1}}) is ErrorCode.NONE
        assert commit_offsets(producer, {0: 5}) is ErrorCode.NONE
    broker.restart()
    with RawClient(broker) as client:
        assert committed(client, GROUP) == {"t": {0: 1}}
        assert unstable(client) == {0}
        producer.client = client
        until(lambda: producer.end() is ErrorCode.NONE)
        producer.settle()
        assert committed(client, GROUP) == {"t": {0: 5}}


def test_what_was_acknowledged_survives_a_power_cut() -> None:
    fs = MemoryFileSystem()
    with running_broker("/data", FEW_PARTITIONS, fs=fs) as broker:
        with RawClient(broker) as client:
            create_topic(client, "t", 4)
            find_coordinator(client, GROUP)
            producer = Producer(client)
            producer.init()
            assert commit_offsets(producer, {0: 5}) is ErrorCode.NONE
            assert producer.end() is ErrorCode.NONE
            assert commit_offsets(producer, {0: 6}) is ErrorCode.NONE
        broker.kill()
    found = fs.after_crash(lose_bytes, lose_names)
    with running_broker("/data", FEW_PARTITIONS, fs=found) as broker, RawClient(broker) as client:
        until(lambda: committed(client, GROUP) == {"t": {0: 5}})
        assert unstable(client) == {0}
        producer.client = client
        until(lambda: producer.end() is ErrorCode.NONE)
        producer.settle()
        assert committed(client, GROUP) == {"t": {0: 6}}


def test_very_many_offsets_hold_nobody_up(
    broker: RunningBroker,
    client: RawClient,
    producer: Producer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = TopicDescription("wide", UUID(int=5), (frozenset(),) * PARTITIONS)
    monkeypatch.setattr(MetadataTopics, "find", lambda self, name: topic)
    offsets = {index: index for index in range(PARTITIONS)}
    assert commit_offsets(producer, offsets, topic="wide") is ErrorCode.NONE
    assert producer.end() is ErrorCode.NONE
    producer.settle()
    assert committed(client, GROUP) == {"wide": offsets}
    assert broker.probe.longest_step_s < 0.05, broker.probe.longest_task


def test_compaction_leaves_what_is_in_force_and_what_is_pending(tmp_path: Path) -> None:
    with running_broker(tmp_path / "data", EAGER_COMPACTION) as broker:
        with RawClient(broker) as client:
            create_topic(client, "t", 4)
            find_coordinator(client, GROUP)
            log = broker.broker.partitions.find(OFFSETS_TOPIC, 0).log
            small = replace(log.config, segment_bytes=4096)
            broker._call(lambda: log.update_config(small))
            producer, pending = Producer(client), Producer(client, "pending")
            for one in (producer, pending):
                one.init()
            expected: dict[int, int] = {}
            for number in range(120):
                partition = number % 3
                if number % 4 == 0:
                    assert commit(client, GROUP, {"t": {partition: number}}) is ErrorCode.NONE
                else:
                    assert commit_offsets(producer, {partition: number}) is ErrorCode.NONE
                    assert producer.end(commit=number % 4 != 3) is ErrorCode.NONE
                if number % 4 != 3:
                    expected[partition] = number
            producer.settle()
            assert commit_offsets(pending, {0: 1000}) is ErrorCode.NONE
            until(lambda: (log.cleaner_offset or 0) >= log.active_segment.base_offset > 0)
            assert committed(client, GROUP) == {"t": expected}
        broker.restart()
        with RawClient(broker) as client:
            assert committed(client, GROUP) == {"t": expected}
            assert unstable(client) == {0}
            pending.client = client
            until(lambda: pending.end() is ErrorCode.NONE)
            pending.settle()
            assert committed(client, GROUP) == {"t": {**expected, 0: 1000}}
