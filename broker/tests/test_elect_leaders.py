"""The handler of ElectLeaders: who leads already, and what can't be led."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any

import pytest

from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.raw_client import RawClient, create_topic
from klamm.log.memory_fs import MemoryFileSystem
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)

PREFERRED, UNCLEAN = 0, 1


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


def elect(
    client: RawClient, *topics: tuple[str, list[int]], version: int | None = None, **fields: Any
) -> ElectLeadersResponse:
    named = [TopicPartitions(topic=topic, partitions=held) for topic, held in topics]
    response = client.call(ElectLeadersRequest(topic_partitions=named or None, **fields), version)
    assert isinstance(response, ElectLeadersResponse)
    return response


def codes(response: ElectLeadersResponse) -> dict[tuple[str, int], int]:
    return {
        (topic.topic, partition.partition_id): partition.error_code
        for topic in response.replica_election_results
        for partition in topic.partition_result
    }


@pytest.mark.parametrize("election_type", [PREFERRED, UNCLEAN])
def test_no_election_is_needed(client: RawClient, election_type: int) -> None:
    response = elect(client, ("topic", [0, 2]), ("missing", [0]), election_type=election_type)
    assert response.error_code == ErrorCode.NONE
    assert codes(response) == {
        ("topic", 0): ErrorCode.ELECTION_NOT_NEEDED,
        ("topic", 2): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("missing", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    everything = elect(client, election_type=election_type)
    assert [topic.topic for topic in everything.replica_election_results] == ["topic"]
    assert codes(everything) == {}


def test_a_partition_that_nobody_can_lead(fs: MemoryFileSystem, client: RawClient) -> None:
    fs.refuse = lambda operation, path: errno.EIO if "/broken-" in path else None
    create_topic(client, "broken")
    for election_type, code in (
        (PREFERRED, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (UNCLEAN, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
    ):
        named = elect(client, ("broken", [0]), election_type=election_type)
        everything = elect(client, election_type=election_type)
        assert codes(named) == codes(everything) == {("broken", 0): code}


def test_an_election_that_does_not_exist(client: RawClient) -> None:
    response = elect(client, ("topic", [0]), election_type=2)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert codes(response) == {("topic", 0): ErrorCode.INVALID_REQUEST}


def test_no_time(client: RawClient) -> None:
    response = elect(client, ("topic", [0]), timeout_ms=0)
    assert response.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert codes(response) == {("topic", 0): ErrorCode.REQUEST_TIMED_OUT}
    assert elect(client, timeout_ms=-1).error_code == ErrorCode.REQUEST_TIMED_OUT


def test_an_empty_list_asks_for_nothing(client: RawClient) -> None:
    for fields in ({}, {"timeout_ms": 0}, {"election_type": 5}):
        response = client.call(ElectLeadersRequest(topic_partitions=[], **fields))
        assert response.error_code == ErrorCode.NONE
        assert response.replica_election_results == []
