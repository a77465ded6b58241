"""What consumers send, one request at a time, over a raw connection."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from klamm.broker.tests.raw_client import RawClient
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.find_coordinator import FindCoordinatorRequest
from klamm.wire.messages.heartbeat import HeartbeatRequest
from klamm.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from klamm.wire.messages.list_groups import ListGroupsRequest
from klamm.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from klamm.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from klamm.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

# Versions that name topics, and the newest in which a member gets its id with its membership.
COMMIT_VERSION = 9
FETCH_VERSION = 9
JOIN_VERSION = 3
PATIENCE_S = 20.0
Offsets = Mapping[str, Mapping[int, int]]


def until(condition: Callable[[], bool]) -> None:
    gives_up_at = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < gives_up_at, "it did not happen"
        time.sleep(0.01)


def find_coordinator(client: RawClient, *group_ids: str) -> Any:
    """Make the topic of the groups, if need be."""
    request = FindCoordinatorRequest(coordinator_keys=list(group_ids or ("group",)))
    return client.call(request, 6).coordinators


def commit_request(
    group_id: str, offsets: Offsets, *, member_id: str = "", generation: int = -1
) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=[
            OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=offset, committed_metadata=""
                    )
                    for index, offset in partitions.items()
                ],
            )
            for name, partitions in offsets.items()
        ],
    )


def commit_codes(response: Any) -> set[ErrorCode]:
    return {
        ErrorCode(partition.error_code)
        for topic in response.topics
        for partition in topic.partitions
    }


def commit(client: RawClient, group_id: str, offsets: Offsets, **member: Any) -> ErrorCode:
    """Commit, and give the one code of all partitions."""
    response = client.call(commit_request(group_id, offsets, **member), COMMIT_VERSION)
    (code,) = commit_codes(response)
    return code


def fetch_request(*group_ids: str) -> OffsetFetchRequest:
    return OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group_id, topics=None) for group_id in group_ids]
    )


def committed(client: RawClient, group_id: str) -> dict[str, dict[int, int]]:
    """All offsets of a group, once its coordinator is loaded."""
    while True:
        (group,) = client.call(fetch_request(group_id), FETCH_VERSION).groups
        if group.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            break
    assert group.error_code == ErrorCode.NONE, ErrorCode(group.error_code)
    return {
        topic.name: {
            partition.partition_index: partition.committed_offset for partition in topic.partitions
        }
        for topic in group.topics
    }


def join_request(group_id: str, member_id: str = "", **fields: Any) -> JoinGroupRequest:
    given: dict[str, Any] = {
        "session_timeout_ms": 60_000,
        "rebalance_timeout_ms": 60_000,
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol(name="range", metadata=b"said")],
        **fields,
    }
    return JoinGroupRequest(group_id=group_id, member_id=member_id, **given)


def become_leader(client: RawClient, group_id: str, **fields: Any) -> Any:
    """Join a group that has no members and make it Stable; give the answer to JoinGroup."""
    joined = client.call(join_request(group_id, **fields), JOIN_VERSION)
    assert joined.error_code == ErrorCode.NONE, ErrorCode(joined.error_code)
    assert joined.leader == joined.member_id
    synced = client.call(
        SyncGroupRequest(
            group_id=group_id,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=[
                SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"assigned")
            ],
        ),
        3,
    )
    assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, b"assigned")
    return joined


def heartbeat(client: RawClient, group_id: str, joined: Any) -> ErrorCode:
    request = HeartbeatRequest(
        group_id=group_id, generation_id=joined.generation_id, member_id=joined.member_id
    )
    return ErrorCode(client.call(request).error_code)


def listed(client: RawClient) -> dict[str, str]:
    """The groups and their states, once all is loaded."""
    while True:
        response = client.call(ListGroupsRequest())
        if response.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            break
    assert response.error_code == ErrorCode.NONE
    return {group.group_id: group.group_state for group in response.groups}
