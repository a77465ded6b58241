"""Members over real connections: parked replies, sessions that end, a topic that goes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from klamm.broker.clock import Clock
from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.groups.conftest import FEW_PARTITIONS
from klamm.broker.tests.groups.group_client import (
    JOIN_VERSION,
    become_leader,
    commit,
    committed,
    find_coordinator,
    heartbeat,
    join_request,
    until,
)
from klamm.broker.tests.raw_client import RawClient, create_topic, delete_topic
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.describe_groups import DescribeGroupsRequest
from klamm.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from klamm.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    with running_broker(tmp_path / "data", FEW_PARTITIONS) as running:
        with RawClient(running) as client:
            create_topic(client, "t")
            find_coordinator(client)
        yield running


def described(client: RawClient, group_id: str = "g") -> Any:
    (group,) = client.call(DescribeGroupsRequest(groups=[group_id])).groups
    return group


def sync_request(joined: Any, assignments: dict[str, bytes] | None = None) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id="g",
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=[
            SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
            for member_id, assignment in (assignments or {}).items()
        ],
    )


def test_two_members_share_a_group(broker: RunningBroker) -> None:
    with RawClient(broker) as first, RawClient(broker) as second:
        leader = become_leader(first, "g")
        second.send(join_request("g"), version=JOIN_VERSION)
        until(lambda: heartbeat(first, "g", leader) is ErrorCode.REBALANCE_IN_PROGRESS)
        rejoined = first.call(join_request("g", leader.member_id), JOIN_VERSION)
        _, follower = second.receive()
        assert (rejoined.generation_id, follower.generation_id) == (2, 2)
        assert {member.member_id for member in rejoined.members} == {
            leader.member_id,
            follower.member_id,
        }
        assert follower.members == []
        second.send(sync_request(follower), version=3)
        assignments = {leader.member_id: b"one", follower.member_id: b"two"}
        assert first.call(sync_request(rejoined, assignments), 3).assignment == b"one"
        _, synced = second.receive()
        assert synced.assignment == b"two"
        assert described(first).group_state == "Stable"


def test_a_session_ends_although_nobody_asks(broker: RunningBroker) -> None:
    with RawClient(broker) as client:
        become_leader(client, "g", session_timeout_ms=150)
        until(lambda: described(client).group_state == "Empty")
        assert described(client).members == []


def test_a_closed_connection_loses_its_reply_and_not_its_membership(broker: RunningBroker) -> None:
    with RawClient(broker) as first, RawClient(broker) as other:
        leader = become_leader(first, "g")
        with RawClient(broker) as second:
            second.send(join_request("g"), version=JOIN_VERSION)
            until(lambda: len(described(other).members) == 2)
        rejoined = first.call(join_request("g", leader.member_id), JOIN_VERSION)
        assert len(rejoined.members) == 2
        assert broker.broker.dispatcher.handler_failures == 0


def test_members_that_wait_hear_when_the_coordinator_goes(broker: RunningBroker) -> None:
    with RawClient(broker) as first, RawClient(broker) as second:
        leader = become_leader(first, "g")
        second.send(join_request("g"), version=JOIN_VERSION)
        until(lambda: len(described(first).members) == 2)
        delete_topic(first, "__consumer_offsets")
        _, refused = second.receive()
        assert refused.error_code == ErrorCode.NOT_COORDINATOR
        assert heartbeat(first, "g", leader) is ErrorCode.NOT_COORDINATOR
        find_coordinator(first, "g")
        assert heartbeat(first, "g", leader) is ErrorCode.UNKNOWN_MEMBER_ID
        become_leader(first, "g")


@pytest.mark.parametrize("version", range(6))
def test_leaving_in_every_version(broker: RunningBroker, version: int) -> None:
    with RawClient(broker) as client:
        joined = become_leader(client, "g")
        request = LeaveGroupRequest(
            group_id="g",
            member_id=joined.member_id,
            members=[
                MemberIdentity(member_id=joined.member_id),
                MemberIdentity(member_id="nobody"),
            ],
        )
        response = client.call(request, version)
        assert response.error_code == ErrorCode.NONE
        if version >= 3:
            assert [member.error_code for member in response.members] == [
                ErrorCode.NONE,
                ErrorCode.UNKNOWN_MEMBER_ID,
            ]
        assert described(client).group_state == "Empty"


@pytest.mark.parametrize("version", range(10))
def test_joining_and_syncing_in_every_version(broker: RunningBroker, version: int) -> None:
    with RawClient(broker) as client:
        request = join_request("g", session_timeout_ms=60_000)
        joined = client.call(request, version)
        if version >= 4:
            assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
            assert joined.protocol_name == (None if version >= 7 else "")
            joined = client.call(join_request("g", joined.member_id), version)
        assert (joined.error_code, joined.protocol_name) == (ErrorCode.NONE, "range")
        sync = sync_request(joined, {joined.member_id: b"x"})
        sync.protocol_type, sync.protocol_name = "consumer", "range"
        synced = client.call(sync, min(version, 5))
        assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, b"x")


@pytest.mark.parametrize("version", range(10))
def test_a_group_needs_an_id(broker: RunningBroker, version: int) -> None:
    with RawClient(broker) as client:
        refused = client.call(join_request("", "me"), version)
        assert (refused.error_code, refused.member_id) == (ErrorCode.INVALID_GROUP_ID, "me")
        assert refused.protocol_name == (None if version >= 7 else "")
        sync = SyncGroupRequest(protocol_type="consumer", protocol_name="range")
        sync_version = min(version, 5)
        assert client.call(sync, sync_version).error_code == ErrorCode.INVALID_GROUP_ID
        assert client.call(LeaveGroupRequest(), 0).error_code == ErrorCode.INVALID_GROUP_ID


def test_expired_offsets_are_swept_and_a_jump_of_the_clock_is_not_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A minute of retention; the wall clock is set a day ahead, and a broker starts a day later."""
    properties = {
        **FEW_PARTITIONS,
        "offsets.retention.minutes": "1",
        "offsets.retention.check.interval.ms": "5",
    }
    data_dir = tmp_path / "swept"
    real = Clock.now_ms
    with running_broker(data_dir, properties) as running, RawClient(running) as client:
        create_topic(client, "t")
        find_coordinator(client)
        assert commit(client, "g", {"t": {0: 1}}) is ErrorCode.NONE
        monkeypatch.setattr(Clock, "now_ms", lambda self: real(self) + 86_400_000)
        sweeps = running.broker.groups.sweeps
        until(lambda: running.broker.groups.sweeps > sweeps + 3)
        assert committed(client, "g") == {"t": {0: 1}}
    with running_broker(data_dir, properties) as running, RawClient(running) as client:
        until(lambda: committed(client, "g") == {})
