"""The handlers of AlterPartitionReassignments and ListPartitionReassignments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from klamm.broker.testing import running_broker
from klamm.broker.tests.raw_client import RawClient, create_topic
from klamm.log.memory_fs import MemoryFileSystem
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopic,
)
from klamm.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)


@pytest.fixture
def client() -> Iterator[RawClient]:
    with running_broker(fs=MemoryFileSystem()) as broker, RawClient(broker) as client:
        create_topic(client, "topic", partitions=2)
        yield client


def alter(
    client: RawClient, topic: str, *targets: tuple[int, list[int] | None], **fields: Any
) -> AlterPartitionReassignmentsResponse:
    partitions = [
        ReassignablePartition(partition_index=index, replicas=replicas)
        for index, replicas in targets
    ]
    response = client.call(
        AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(name=topic, partitions=partitions)], **fields
        )
    )
    assert isinstance(response, AlterPartitionReassignmentsResponse)
    return response


def only(response: AlterPartitionReassignmentsResponse) -> ReassignablePartitionResponse:
    (topic,) = response.responses
    (partition,) = topic.partitions
    return partition


def test_where_it_is_already(client: RawClient) -> None:
    response = alter(client, "topic", (0, [1]), (1, [1]), allow_replication_factor_change=False)
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    assert not response.allow_replication_factor_change
    codes = [partition.error_code for partition in response.responses[0].partitions]
    assert codes == [ErrorCode.NONE, ErrorCode.NONE]


def test_nothing_to_stop(client: RawClient) -> None:
    refused = only(alter(client, "topic", (0, None)))
    assert refused.error_code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert refused.error_message is None


@pytest.mark.parametrize("replicas", [[], [2], [1, 2], [1, 1], [-1]])
def test_replicas_that_can_not_be(client: RawClient, replicas: list[int]) -> None:
    refused = only(alter(client, "topic", (0, replicas)))
    assert refused.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert refused.error_message


def test_partitions_that_are_not_there(client: RawClient) -> None:
    for topic, index in (("topic", 2), ("topic", -1), ("missing", 0)):
        refused = only(alter(client, topic, (index, [1])))
        assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_no_time(client: RawClient) -> None:
    response = alter(client, "topic", (0, [1]), timeout_ms=0)
    assert response.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert only(response).error_code == ErrorCode.REQUEST_TIMED_OUT


def test_nothing_is_ever_on_its_way(client: RawClient) -> None:
    named = [ListPartitionReassignmentsTopics(name="topic", partition_indexes=[0])]
    for topics in (None, [], named):
        response = client.call(ListPartitionReassignmentsRequest(topics=topics))
        assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
        assert response.topics == []
