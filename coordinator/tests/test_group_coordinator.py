"""Who serves a request: the protocol of the group, whatever protocol the request is of."""

from __future__ import annotations

import pytest

from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.ports import Client
from klamm.coordinator.records import RECORD_TYPES
from klamm.coordinator.settings import GroupSettings
from klamm.coordinator.tests.groups import SUBSCRIPTION, Coordinated, codes, drain
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from klamm.wire.messages.heartbeat import HeartbeatRequest
from klamm.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from klamm.wire.messages.leave_group import LeaveGroupRequest
from klamm.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

CLIENT = Client("client", "/127.0.0.1", 1)
LEAVING = -1


@pytest.fixture
def world() -> Coordinated:
    coordinated = Coordinated()
    coordinated.topics.add("t", 2)
    return coordinated


def consumer_heartbeat(
    world: Coordinated, member_id: str = "member", epoch: int = 0
) -> ConsumerGroupHeartbeatResponse:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id=member_id, member_epoch=epoch, rebalance_timeout_ms=10_000
    )
    if epoch == 0:
        request.subscribed_topic_names = ["t"]
        request.topic_partitions = []
    return world.coordinator.consumer_heartbeat(request, CLIENT)


def test_every_record_type_that_is_read_is_replayed(world: Coordinated) -> None:
    assert set(world.coordinator._replay) == {key for key, _ in RECORD_TYPES.values()}


def test_a_consumer_group_lives_through_a_restart(world: Coordinated) -> None:
    joined = consumer_heartbeat(world)
    assert joined.error_code == ErrorCode.NONE
    assert joined.member_epoch > 0
    response = world.commit("g", {"t": {0: 5}}, member_id="member", generation=joined.member_epoch)
    assert codes(response) == {"t": {0: ErrorCode.NONE}}
    before = world.coordinator.describe_consumer_group("g")
    world.restart()
    assert world.coordinator.describe_consumer_group("g") == before
    assert world.offsets("g") == {"t": {0: 5}}
    again = consumer_heartbeat(world, epoch=joined.member_epoch)
    assert (again.error_code, again.member_epoch) == (ErrorCode.NONE, joined.member_epoch)


def test_offsets_of_before_a_consumer_group_stay(world: Coordinated) -> None:
    """A simple group becomes a consumer group when somebody joins, also in a log that was cleaned:
    then the offsets may stand in front of everything else."""
    world.commit("g", {"t": {0: 5}})
    consumer_heartbeat(world)
    assert world.groups["g"].TYPE == "consumer"
    assert world.offsets("g") == {"t": {0: 5}}
    world.restart()
    assert world.groups["g"].TYPE == "consumer"
    assert world.offsets("g") == {"t": {0: 5}}


def test_who_fetches_with_an_old_epoch_is_refused(world: Coordinated) -> None:
    joined = consumer_heartbeat(world)
    world.fetch("g", {"t": [0]}, member_id="member", member_epoch=joined.member_epoch)
    for member_id, epoch, code in (
        ("member", joined.member_epoch + 1, ErrorCode.STALE_MEMBER_EPOCH),
        ("nobody", joined.member_epoch, ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        with pytest.raises(CoordinatorError) as caught:
            world.fetch("g", {"t": [0]}, member_id=member_id, member_epoch=epoch)
        assert caught.value.code is code


def test_a_commit_with_a_newer_epoch_stores_nothing(world: Coordinated) -> None:
    joined = consumer_heartbeat(world)
    response = world.commit(
        "g", {"t": {0: 5}}, member_id="member", generation=joined.member_epoch + 1
    )
    assert codes(response) == {"t": {0: ErrorCode.STALE_MEMBER_EPOCH}}
    assert world.offsets("g") == {}


def test_a_member_behind_may_commit_only_what_it_had_by_then(world: Coordinated) -> None:
    """KIP-1251: each partition is asked, and one that is refused refuses the request."""
    first = consumer_heartbeat(world)
    world.timers.advance(1_000)
    world.topics.add("t", 4)
    world.coordinator.on_topics_changed(["t"])
    second = consumer_heartbeat(world, epoch=first.member_epoch)
    assert second.member_epoch > first.member_epoch
    behind = {"member_id": "member", "generation": first.member_epoch}
    assert codes(world.commit("g", {"t": {0: 5}}, **behind)) == {"t": {0: ErrorCode.NONE}}  # type: ignore[arg-type]
    stale = ErrorCode.STALE_MEMBER_EPOCH
    assert codes(world.commit("g", {"t": {0: 6, 3: 6}}, **behind)) == {"t": {0: stale, 3: stale}}  # type: ignore[arg-type]
    assert world.offsets("g") == {"t": {0: 5}}


def test_classic_requests_about_a_consumer_group_are_served_by_it(world: Coordinated) -> None:
    consumer_heartbeat(world)
    joined: list[JoinGroupResponse] = []
    world.coordinator.join(
        JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
        ),
        CLIENT,
        joined.append,
    )
    (join,) = joined
    assert join.error_code == ErrorCode.NONE
    synced: list[SyncGroupResponse] = []
    world.coordinator.sync(
        SyncGroupRequest(group_id="g", generation_id=join.generation_id, member_id=join.member_id),
        CLIENT,
        synced.append,
    )
    assert [sync.error_code for sync in synced] == [ErrorCode.NONE]
    beat = HeartbeatRequest(
        group_id="g", generation_id=join.generation_id, member_id=join.member_id
    )
    assert world.coordinator.heartbeat(beat, CLIENT).error_code in (
        ErrorCode.NONE,
        ErrorCode.REBALANCE_IN_PROGRESS,
    )
    leave = LeaveGroupRequest(group_id="g", member_id=join.member_id)
    assert world.coordinator.leave(leave, CLIENT).error_code == ErrorCode.NONE
    described = world.coordinator.describe_consumer_group("g")
    assert [member.member_id for member in described.members] == ["member"]


def test_what_each_describe_says_of_groups_of_the_other_kind(world: Coordinated) -> None:
    world.become_member("classic")
    consumer_heartbeat(world)
    not_found = ErrorCode.GROUP_ID_NOT_FOUND
    classic = world.coordinator.describe("classic", 6)
    assert (classic.error_code, classic.group_state) == (ErrorCode.NONE, "Stable")
    for group_id, message in (
        ("g", "Group g is not a classic group."),
        ("none", "Group none not found."),
    ):
        new = world.coordinator.describe(group_id, 6)
        assert (new.error_code, new.error_message) == (not_found, message)
        old = world.coordinator.describe(group_id, 5)
        assert (old.error_code, old.error_message) == (ErrorCode.NONE, None)
        assert old.group_state == new.group_state == "Dead"
    assert world.coordinator.describe_consumer_group("classic").error_code == not_found
    assert world.coordinator.describe_consumer_group("none").error_code == not_found


def test_all_kinds_are_listed(world: Coordinated) -> None:
    world.commit("simple", {"t": {0: 1}})
    world.become_member("classic")
    consumer_heartbeat(world)
    found = sorted(
        (group.group_id, group.group_type, group.group_state, group.protocol_type)
        for group in world.coordinator.list_groups()
    )
    assert found == [
        ("classic", "classic", "Stable", "consumer"),
        ("g", "consumer", "Stable", "consumer"),
        ("simple", "classic", "Empty", ""),
    ]


def test_a_group_that_goes_while_it_is_listed(world: Coordinated) -> None:
    for group_id in ("a", "b"):
        world.commit(group_id, {"t": {0: 1}})
    listing = world.coordinator.list_groups()
    assert next(listing).group_id == "a"
    drain(world.coordinator.delete("b"))
    assert list(listing) == []


def test_an_empty_consumer_group_is_deleted_with_all_its_records(world: Coordinated) -> None:
    joined = consumer_heartbeat(world)
    world.commit("g", {"t": {0: 5}}, member_id="member", generation=joined.member_epoch)
    with pytest.raises(CoordinatorError) as caught:
        drain(world.coordinator.delete("g"))
    assert caught.value.code is ErrorCode.NON_EMPTY_GROUP
    consumer_heartbeat(world, epoch=LEAVING)
    drain(world.coordinator.delete("g"))
    assert world.groups == {}
    world.restart()
    assert world.groups == {}


def test_who_waits_hears_that_the_coordinator_goes(world: Coordinated) -> None:
    world.become_member("g")
    parked: list[JoinGroupResponse] = []
    world.coordinator.join(
        JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
        ),
        CLIENT,
        parked.append,
    )
    assert parked == []
    world.coordinator.on_unloaded()
    assert [response.error_code for response in parked] == [ErrorCode.NOT_COORDINATOR]
    assert world.timers.remaining_ms() == {}


def test_other_settings_count_from_the_next_request_on(world: Coordinated) -> None:
    joined = consumer_heartbeat(world)
    assert joined.heartbeat_interval_ms == GroupSettings().group_consumer_heartbeat_interval_ms
    world.coordinator.reconfigure(GroupSettings(group_consumer_heartbeat_interval_ms=1234))
    again = consumer_heartbeat(world, epoch=joined.member_epoch)
    assert again.heartbeat_interval_ms == 1234
