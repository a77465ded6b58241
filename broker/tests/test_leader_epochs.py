"""What readers are told of a log that was written in several leader epochs.

The epochs of a lone broker grow when it was killed, so that a reader finds out what it has read and
the log has lost (KIP-320, KIP-595).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.raw_client import (
    FETCH_VERSION,
    RawClient,
    create_topic,
    fetch,
    produce_to,
)
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from klamm.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

LATEST, EARLIEST, OF_LARGEST_TIME = -1, -2, -3
CURRENT_EPOCH = 3


@pytest.fixture
def client(tmp_path: Path) -> Iterator[RawClient]:
    """Epoch 0 wrote the offsets 0 and 1, epoch 1 the offset 2, epoch 2 nothing, and epoch 3, which
    is the current one, the offset 3. The second partition is empty."""
    with running_broker(tmp_path / "data") as broker:
        with RawClient(broker) as first:
            create_topic(first, "topic", 2)
        for count in (2, 1, 0):
            write(broker, count)
            broker.kill()
            broker.start()
        write(broker, 1)
        with RawClient(broker) as connected:
            yield connected


def write(broker: RunningBroker, count: int) -> None:
    with RawClient(broker) as client:
        for _ in range(count):
            assert produce_to(client, "topic").error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("asked", "epoch", "end_offset"),
    [
        (0, 0, 2),
        (1, 1, 3),
        # The largest epoch up to it that has written anything.
        (2, 1, 3),
        (CURRENT_EPOCH, CURRENT_EPOCH, 4),
        (CURRENT_EPOCH + 1, -1, -1),
        (-1, -1, -1),
    ],
)
def test_where_an_epoch_ends(client: RawClient, asked: int, epoch: int, end_offset: int) -> None:
    assert end_of_epoch(client, asked) == (epoch, end_offset)


def end_of_epoch(client: RawClient, epoch: int) -> tuple[int, int]:
    partition = OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
    topic = OffsetForLeaderTopic(topic="topic", partitions=[partition])
    (answered,) = client.call(OffsetForLeaderEpochRequest(topics=[topic])).topics
    (found,) = answered.partitions
    assert found.error_code == ErrorCode.NONE
    return found.leader_epoch, found.end_offset


def test_an_epoch_ends_the_ones_before_it_though_it_has_written_nothing(tmp_path: Path) -> None:
    """Kafka notes where an epoch begins when its leader begins to lead."""
    with running_broker(tmp_path / "data") as broker:
        with RawClient(broker) as client:
            create_topic(client, "topic")
        for _ in range(2):
            broker.kill()
            broker.start()
        with RawClient(broker) as client:
            assert [end_of_epoch(client, epoch) for epoch in (1, 2, 3)] == [
                (1, 0),
                (2, 0),
                (-1, -1),
            ]
            produce_to(client, "topic")
        for _ in range(2):
            broker.kill()
            broker.start()
        with RawClient(broker) as client:
            ends = [end_of_epoch(client, epoch) for epoch in (2, 3, 4, 5)]
            assert ends == [(2, 1), (2, 1), (4, 1), (-1, -1)]


def fetched(client: RawClient, offset: int, last_fetched_epoch: int) -> Any:
    request = fetch("topic", offset)
    request.topics[0].partitions[0].last_fetched_epoch = last_fetched_epoch
    return client.call(request, FETCH_VERSION).responses[0].partitions[0]


@pytest.mark.parametrize(
    ("offset", "last_fetched_epoch"), [(1, 0), (2, 0), (2, 1), (3, 1), (3, 3), (4, 3)]
)
def test_a_reader_whose_epoch_reaches_its_offset_gets_records(
    client: RawClient, offset: int, last_fetched_epoch: int
) -> None:
    found = fetched(client, offset, last_fetched_epoch)
    assert (found.error_code, found.diverging_epoch.end_offset) == (0, -1)
    assert bool(found.records) == (offset < 4)


@pytest.mark.parametrize(
    ("offset", "last_fetched_epoch", "epoch", "end_offset"),
    [(3, 0, 0, 2), (4, 1, 1, 3), (3, 2, 1, 3), (1, 2, 1, 3)],
)
def test_a_reader_that_has_read_what_is_not_there_learns_where_to_go_on(
    client: RawClient, offset: int, last_fetched_epoch: int, epoch: int, end_offset: int
) -> None:
    found = fetched(client, offset, last_fetched_epoch)
    diverging = found.diverging_epoch
    assert (found.error_code, diverging.epoch, diverging.end_offset) == (0, epoch, end_offset)
    assert not found.records


def test_a_reader_of_an_epoch_to_come_is_out_of_range(client: RawClient) -> None:
    assert fetched(client, 1, CURRENT_EPOCH + 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize(
    ("partition", "timestamp", "offset", "epoch"),
    [
        (0, EARLIEST, 0, 0),
        (0, LATEST, 4, CURRENT_EPOCH),
        (0, OF_LARGEST_TIME, 0, 0),
        (0, 0, 0, 0),
        # Nobody has written it yet.
        (1, EARLIEST, 0, CURRENT_EPOCH),
        (1, LATEST, 0, CURRENT_EPOCH),
    ],
)
def test_an_offset_is_listed_with_the_epoch_that_wrote_it(
    client: RawClient, partition: int, timestamp: int, offset: int, epoch: int
) -> None:
    asked = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="topic", partitions=[asked])])
    (found,) = client.call(request).topics[0].partitions
    assert (found.error_code, found.offset, found.leader_epoch) == (0, offset, epoch)
