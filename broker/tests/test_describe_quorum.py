"""The handler of DescribeQuorum: a quorum of one, and requests that ask for another."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.raw_client import RawClient, create_topic
from klamm.log.memory_fs import MemoryFileSystem
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RequestPartitionData,
    RequestTopicData,
)

METADATA = "__cluster_metadata"


@pytest.fixture
def broker() -> Iterator[RunningBroker]:
    with running_broker(fs=MemoryFileSystem()) as broker:
        yield broker


@pytest.fixture
def client(broker: RunningBroker) -> Iterator[RawClient]:
    with RawClient(broker) as client:
        yield client


def describe(client: RawClient, *topics: tuple[str, list[int]]) -> DescribeQuorumResponse:
    named = [
        RequestTopicData(
            topic_name=name,
            partitions=[RequestPartitionData(partition_index=index) for index in indexes],
        )
        for name, indexes in topics
    ]
    response = client.call(DescribeQuorumRequest(topics=named))
    assert isinstance(response, DescribeQuorumResponse)
    return response


def test_a_quorum_of_one(broker: RunningBroker, client: RawClient) -> None:
    response = describe(client, (METADATA, [0]))
    (partition,) = response.topics[0].partitions
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 1, 1)
    (voter,) = partition.current_voters
    assert voter.replica_id == 1
    assert voter.replica_directory_id == broker.broker.logs.metadata.directory_id
    assert voter.log_end_offset == partition.high_watermark > 0
    assert voter.last_caught_up_timestamp == voter.last_fetch_timestamp > 0
    assert partition.observers == []
    (node,) = response.nodes
    (listener,) = node.listeners
    assert (node.node_id, listener.host, listener.port) == (1, "127.0.0.1", broker.port)


def test_it_grows_with_the_metadata(client: RawClient) -> None:
    def high_watermark() -> int:
        return describe(client, (METADATA, [0])).topics[0].partitions[0].high_watermark

    before = high_watermark()
    create_topic(client, "topic")
    assert high_watermark() == before + 2


@pytest.mark.parametrize(
    "asked",
    [
        [(METADATA, [1])],
        [(METADATA, [0, 0])],
        [(METADATA, [0]), (METADATA, [0])],
        [(METADATA, [0]), ("topic", [0])],
        [("topic", [0])],
        [(METADATA, [])],
        [],
    ],
)
def test_anything_else_is_unknown(client: RawClient, asked: list[tuple[str, list[int]]]) -> None:
    response = describe(client, *asked)
    assert (response.error_code, response.error_message, response.nodes) == (0, "", [])
    answered = [
        (topic.topic_name, [partition.partition_index for partition in topic.partitions])
        for topic in response.topics
    ]
    assert answered == asked
    codes = {part.error_code for topic in response.topics for part in topic.partitions}
    assert codes <= {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
