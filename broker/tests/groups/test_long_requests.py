"""Requests about thousands of partitions and groups: answered whole, and nobody else waits.

The assertion that counts is in the conftest.py above: no step of the loop was longer than 50 ms.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest

from klamm.broker.groups.topics import MetadataTopics
from klamm.broker.testing import RunningBroker
from klamm.broker.tests.groups.group_client import (
    COMMIT_VERSION,
    commit_codes,
    commit_request,
    committed,
    find_coordinator,
    join_request,
    listed,
    until,
)
from klamm.broker.tests.raw_client import RawClient, create_topic
from klamm.coordinator.ports import TopicDescription
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.delete_groups import DeleteGroupsRequest
from klamm.wire.messages.describe_groups import DescribeGroupsRequest
from klamm.wire.messages.join_group import JoinGroupRequestProtocol
from klamm.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

PARTITIONS = 20_000
GROUPS = 3_000
MEMBERS = 400


@pytest.fixture
def wide_topic(broker: RunningBroker, monkeypatch: pytest.MonkeyPatch) -> str:
    """A topic whose partitions exist in the eyes of the groups alone: files are not the point."""
    topic = TopicDescription("wide", UUID(int=5), (frozenset(),) * PARTITIONS)
    monkeypatch.setattr(MetadataTopics, "find", lambda self, name: topic)
    return topic.name


@pytest.fixture
def client(broker: RunningBroker) -> Iterator[RawClient]:
    with RawClient(broker) as connected:
        find_coordinator(connected)
        yield connected


def test_a_commit_of_very_many_partitions(client: RawClient, wide_topic: str) -> None:
    offsets = {wide_topic: {index: index for index in range(PARTITIONS)}}
    response = client.call(commit_request("g", offsets), COMMIT_VERSION)
    assert commit_codes(response) == {ErrorCode.NONE}
    assert committed(client, "g") == offsets
    response = client.call(DeleteGroupsRequest(groups_names=["g"]))
    assert [result.error_code for result in response.results] == [ErrorCode.NONE]
    assert committed(client, "g") == {}


def test_very_many_groups(client: RawClient) -> None:
    create_topic(client, "t")
    names = [f"group-{number}" for number in range(GROUPS)]
    assert {each.error_code for each in find_coordinator(client, *names)} == {ErrorCode.NONE}
    for name in names:
        client.send(commit_request(name, {"t": {0: 1}}), version=COMMIT_VERSION)
        assert commit_codes(client.receive()[1]) == {ErrorCode.NONE}
    assert len(listed(client)) == GROUPS
    described = client.call(DescribeGroupsRequest(groups=names)).groups
    assert {group.group_state for group in described} == {"Empty"}
    deleted = client.call(DeleteGroupsRequest(groups_names=names)).results
    assert {result.error_code for result in deleted} == {ErrorCode.NONE}
    assert listed(client) == {}


def test_a_group_of_very_many_members(broker: RunningBroker, client: RawClient) -> None:
    """More than Kafka could store: its record of the group is larger than 1 MiB."""
    metadata = b"x" * 5000
    protocols = [JoinGroupRequestProtocol(name="range", metadata=metadata)]
    # Alone first; then it has to join again with all the others.
    first = client.call(join_request("g", protocols=protocols), 3)
    connections = [RawClient(broker) for _ in range(20)]
    try:
        for number in range(MEMBERS - 1):
            member = join_request("g", protocols=protocols)
            connections[number % 20].send(member, version=3)
        until(lambda: _members(client) == MEMBERS)
        leader = client.call(join_request("g", first.member_id, protocols=protocols), 3)
        assert len(leader.members) == MEMBERS
        synced = client.call(
            SyncGroupRequest(
                group_id="g",
                generation_id=leader.generation_id,
                member_id=leader.member_id,
                assignments=[
                    SyncGroupRequestAssignment(member_id=each.member_id, assignment=b"all")
                    for each in leader.members
                ],
            ),
            3,
        )
        assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, b"all")
    finally:
        for connection in connections:
            connection.close()
    broker.restart()
    with RawClient(broker) as again:
        assert listed(again) == {"g": "Stable"}
        assert _members(again) == MEMBERS


def _members(client: RawClient) -> int:
    (group,) = client.call(DescribeGroupsRequest(groups=["g"])).groups
    return len(group.members)
