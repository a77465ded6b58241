"""Requests about offsets and groups over the wire, in all versions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.groups.group_client import (
    become_leader,
    commit,
    committed,
    find_coordinator,
    listed,
    until,
)
from klamm.broker.tests.raw_client import RawClient, create_topic, delete_topic
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from klamm.wire.messages.delete_groups import DeleteGroupsRequest
from klamm.wire.messages.describe_groups import DescribeGroupsRequest
from klamm.wire.messages.list_groups import ListGroupsRequest
from klamm.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from klamm.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from klamm.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

UNKNOWN_ID = UUID(int=99)


@pytest.fixture
def topic_id(client: RawClient) -> UUID:
    find_coordinator(client)
    return create_topic(client, "t", 3)


@pytest.mark.parametrize("version", range(2, 11))
def test_commit_in_every_version(client: RawClient, topic_id: UUID, version: int) -> None:
    request = OffsetCommitRequest(
        group_id="g",
        topics=[
            OffsetCommitRequestTopic(
                name=name,
                topic_id=asked_id,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=10 + index,
                        committed_leader_epoch=0,
                        committed_metadata="note",
                    )
                    for index in (0, 2, 3)
                ],
            )
            for name, asked_id in (("t", topic_id), ("none", UNKNOWN_ID))
        ],
    )
    response = client.call(request, version)
    codes = [
        (topic.name or topic.topic_id, partition.partition_index, ErrorCode(partition.error_code))
        for topic in response.topics
        for partition in topic.partitions
    ]
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if version < 10:
        known, unknown, unknown_code = "t", "none", missing
    else:
        known, unknown, unknown_code = topic_id, UNKNOWN_ID, ErrorCode.UNKNOWN_TOPIC_ID  # type: ignore[assignment]
    assert codes == [
        (known, 3, missing),
        (known, 0, ErrorCode.NONE),
        (known, 2, ErrorCode.NONE),
        (unknown, 0, unknown_code),
        (unknown, 2, unknown_code),
        (unknown, 3, unknown_code),
    ]
    assert committed(client, "g") == {"t": {0: 10, 2: 12}}


def one_group(version: int, topic_id: UUID, names: list[str] | None) -> OffsetFetchRequest:
    if names is None:
        return OffsetFetchRequest(
            group_id="g",
            topics=None,
            groups=[OffsetFetchRequestGroup(group_id="g", topics=None)],
        )
    ids = {"t": topic_id, "none": UNKNOWN_ID}
    return OffsetFetchRequest(
        group_id="g",
        topics=[OffsetFetchRequestTopic(name=name, partition_indexes=[0, 1]) for name in names],
        groups=[
            OffsetFetchRequestGroup(
                group_id="g",
                topics=[
                    OffsetFetchRequestTopics(
                        name=name, topic_id=ids[name], partition_indexes=[0, 1]
                    )
                    for name in names
                ],
            )
        ],
    )


def fetched(response: Any, version: int) -> list[tuple[Any, ...]]:
    group = response if version < 8 else response.groups[0]
    assert version < 2 or group.error_code == ErrorCode.NONE
    return [
        (
            topic.name if version < 10 else topic.topic_id,
            partition.partition_index,
            partition.committed_offset,
            partition.committed_leader_epoch if version >= 5 else None,
            partition.metadata,
            ErrorCode(partition.error_code),
        )
        for topic in group.topics
        for partition in topic.partitions
    ]


@pytest.mark.parametrize("version", range(1, 11))
def test_fetch_in_every_version(client: RawClient, topic_id: UUID, version: int) -> None:
    partition = OffsetCommitRequestPartition(
        partition_index=0,
        committed_offset=7,
        committed_leader_epoch=0,
        committed_metadata="note",
    )
    client.call(
        OffsetCommitRequest(
            group_id="g", topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])]
        ),
        9,
    )
    name = "t" if version < 10 else topic_id
    epoch, none = (0, -1) if version >= 5 else (None, None)
    known = [
        (name, 0, 7, epoch, "note", ErrorCode.NONE),
        (name, 1, -1, none, "", ErrorCode.NONE),
    ]
    if version < 10:
        unknown = [("none", index, -1, none, "", ErrorCode.NONE) for index in (0, 1)]
    else:
        unknown = [
            (UNKNOWN_ID, index, -1, none, "", ErrorCode.UNKNOWN_TOPIC_ID) for index in (0, 1)
        ]
    response = client.call(one_group(version, topic_id, ["t", "none"]), version)
    assert fetched(response, version) == [*known, *unknown]
    if version >= 2:
        response = client.call(one_group(version, topic_id, None), version)
        assert fetched(response, version) == known[:1]


@pytest.mark.parametrize("version", range(1, 11))
def test_a_refused_fetch_in_every_version(broker: RunningBroker, version: int) -> None:
    """There is no coordinator as long as the topic is not there."""
    with RawClient(broker) as client:
        topic_id = create_topic(client, "t")
        response = client.call(one_group(version, topic_id, ["t"]), version)
    refused = ErrorCode.NOT_COORDINATOR
    if version == 1:
        (topic,) = response.topics
        assert [partition.error_code for partition in topic.partitions] == [refused, refused]
    elif version < 8:
        assert (response.error_code, response.topics) == (refused, [])
    else:
        (group,) = response.groups
        assert (group.group_id, group.error_code, group.topics) == ("g", refused, [])


def test_several_groups_in_one_fetch(client: RawClient, topic_id: UUID) -> None:
    for number in range(5):
        assert commit(client, f"g{number}", {"t": {0: number}}) is ErrorCode.NONE
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=f"g{number}", topics=None) for number in (4, 9, 0)]
    )
    response = client.call(request, 8)
    assert [(group.group_id, len(group.topics)) for group in response.groups] == [
        ("g4", 1),
        ("g9", 0),
        ("g0", 1),
    ]


def test_offsets_go_with_their_topic_and_do_not_come_back_with_its_name(
    client: RawClient, topic_id: UUID
) -> None:
    create_topic(client, "u")
    assert commit(client, "g", {"t": {0: 1}, "u": {0: 2}}) is ErrorCode.NONE
    delete_topic(client, "t")
    until(lambda: committed(client, "g") == {"u": {0: 2}})
    create_topic(client, "t")
    assert committed(client, "g") == {"u": {0: 2}}


def test_delete_offsets_over_the_wire(client: RawClient, topic_id: UUID) -> None:
    def delete(group_id: str, *topics: tuple[str, list[int]]) -> Any:
        return client.call(
            OffsetDeleteRequest(
                group_id=group_id,
                topics=[
                    OffsetDeleteRequestTopic(
                        name=name,
                        partitions=[
                            OffsetDeleteRequestPartition(partition_index=index) for index in indexes
                        ],
                    )
                    for name, indexes in topics
                ],
            )
        )

    assert commit(client, "g", {"t": {0: 1, 1: 1}}) is ErrorCode.NONE
    response = delete("g", ("t", [0, 7]), ("none", [0]))
    assert response.error_code == ErrorCode.NONE
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [
        (topic.name, [(each.partition_index, each.error_code) for each in topic.partitions])
        for topic in response.topics
    ] == [("t", [(7, missing), (0, ErrorCode.NONE)]), ("none", [(0, missing)])]
    assert committed(client, "g") == {"t": {1: 1}}
    for group_id, code in (
        ("", ErrorCode.INVALID_GROUP_ID),
        ("unknown", ErrorCode.GROUP_ID_NOT_FOUND),
    ):
        refused = delete(group_id, ("t", [0]), ("none", [0]))
        assert (refused.error_code, refused.topics) == (code, [])


def test_groups_are_listed_described_and_deleted(client: RawClient, topic_id: UUID) -> None:
    for group_id in ("a", "b", "c"):
        assert commit(client, group_id, {"t": {0: 1}}) is ErrorCode.NONE
    become_leader(client, "b")
    assert listed(client) == {"a": "Empty", "b": "Stable", "c": "Empty"}
    response = client.call(DeleteGroupsRequest(groups_names=["a", "b", "a", "none"]))
    assert [(result.group_id, ErrorCode(result.error_code)) for result in response.results] == [
        ("a", ErrorCode.NONE),
        ("b", ErrorCode.NON_EMPTY_GROUP),
        ("none", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    assert listed(client) == {"b": "Stable", "c": "Empty"}
    response = client.call(
        DescribeGroupsRequest(groups=["a", "b"], include_authorized_operations=True)
    )
    gone, stable = response.groups
    assert (gone.error_code, gone.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert gone.authorized_operations == -(2**31)
    assert (stable.group_state, stable.protocol_type) == ("Stable", "consumer")
    assert (stable.protocol_data, stable.members[0].member_assignment) == ("range", b"assigned")
    assert (stable.members[0].client_host, stable.members[0].client_id) == ("/127.0.0.1", "raw")
    assert stable.authorized_operations == 0b1101_0100_1000
    (old,) = client.call(DescribeGroupsRequest(groups=["a"]), 5).groups
    assert (old.error_code, old.group_state) == (ErrorCode.NONE, "Dead")


def test_filters_of_the_list(client: RawClient, topic_id: UUID) -> None:
    assert commit(client, "empty", {"t": {0: 1}}) is ErrorCode.NONE
    become_leader(client, "stable")

    def ask(states: list[str], types: list[str]) -> list[tuple[str, str]]:
        request = ListGroupsRequest(states_filter=states, types_filter=types)
        return sorted((group.group_id, group.group_type) for group in client.call(request).groups)

    empty, stable = ("empty", "classic"), ("stable", "classic")
    assert ask([], []) == [empty, stable]
    assert ask([" STABLE "], []) == [stable]
    assert ask(["Empty", "nonsense"], ["Classic"]) == [empty]
    assert ask([], ["consumer"]) == []
    assert ask(["nonsense"], []) == []
    assert ask([], ["nonsense"]) == []


@pytest.fixture
def classic_only(tmp_path: Path) -> Iterator[RawClient]:
    properties = {"group.coordinator.rebalance.protocols": "classic"}
    with running_broker(tmp_path / "data", properties) as broker, RawClient(broker) as client:
        find_coordinator(client)
        yield client


def test_the_consumer_protocol_can_be_switched_off(classic_only: RawClient) -> None:
    response = classic_only.call(ConsumerGroupDescribeRequest(group_ids=["g"]))
    (group,) = response.groups
    assert group.error_code == ErrorCode.UNSUPPORTED_VERSION
    become_leader(classic_only, "g")
