"""The handler of DescribeProducers: what a partition remembers of who wrote to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from klamm.broker.testing import running_broker
from klamm.broker.tests.raw_client import RawClient, batch, create_topic, produce_to
from klamm.log.memory_fs import MemoryFileSystem
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.describe_producers import (
    DescribeProducersRequest,
    PartitionResponse,
    TopicRequest,
)

TIMESTAMP = 1_700_000_000_000


@pytest.fixture
def client() -> Iterator[RawClient]:
    with running_broker(fs=MemoryFileSystem()) as broker, RawClient(broker) as client:
        create_topic(client, "topic", partitions=2)
        yield client


def describe(client: RawClient, topic: str, *indexes: int) -> list[PartitionResponse]:
    asked = TopicRequest(name=topic, partition_indexes=list(indexes))
    (described,) = client.call(DescribeProducersRequest(topics=[asked])).topics
    assert described.name == topic
    return list(described.partitions)


def test_producers_and_their_last_sequences(client: RawClient) -> None:
    produce_to(client, "topic", batch(count=3, producer_id=7, producer_epoch=2, base_sequence=0))
    produce_to(client, "topic", batch(count=2, producer_id=7, producer_epoch=2, base_sequence=3))
    produce_to(client, "topic", batch(producer_id=8, producer_epoch=0, base_sequence=0))
    produce_to(client, "topic", batch())
    written, empty = describe(client, "topic", 0, 1)
    assert written.error_code == ErrorCode.NONE
    seven, eight = written.active_producers
    assert (seven.producer_id, seven.producer_epoch, seven.last_sequence) == (7, 2, 4)
    assert (eight.producer_id, eight.producer_epoch, eight.last_sequence) == (8, 0, 0)
    assert {seven.last_timestamp, eight.last_timestamp} == {TIMESTAMP}
    assert {seven.current_txn_start_offset, seven.coordinator_epoch} == {-1}
    assert empty.active_producers == []


def test_what_is_not_there(client: RawClient) -> None:
    (beyond,) = describe(client, "topic", 2)
    assert (beyond.error_code, beyond.error_message) == (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        None,
    )
    (unknown,) = describe(client, "missing", 0)
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert unknown.error_message == "There is no topic 'missing'."
    first, second = describe(client, "a b", 0, 1)
    assert first.error_code == second.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert "only letters" in (first.error_message or "")
