"""How offsets and groups go: by age, with their topic, on demand; and what keeps them."""

from __future__ import annotations

import pytest

from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.ports import Client
from klamm.coordinator.settings import GroupSettings
from klamm.coordinator.tests.groups import Coordinated, codes, drain
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.leave_group import LeaveGroupRequest
from klamm.wire.messages.stored.classic_group import GroupMetadataKey, OffsetCommitKey

HOUR_MS = 3_600_000
RETENTION_MS = 24 * HOUR_MS


@pytest.fixture
def world() -> Coordinated:
    coordinated = Coordinated(GroupSettings(offsets_retention_ms=RETENTION_MS))
    coordinated.topics.add("t", 2000)
    coordinated.topics.add("u", 2)
    return coordinated


def sweep(world: Coordinated, after_ms: int = 0) -> None:
    """Remove what is expired after that time; nobody's session goes on meanwhile."""
    drain(world.coordinator.remove_expired(world.shard.now_ms() + after_ms))


def leave(world: Coordinated, group_id: str, member_id: str) -> None:
    request = LeaveGroupRequest(group_id=group_id, member_id=member_id)
    world.coordinator.leave(request, Client("client", "/127.0.0.1", 0))


# --- by age ---


def test_offsets_of_a_simple_group_expire_by_their_commit_and_the_group_with_them(
    world: Coordinated,
) -> None:
    world.commit("g", {"t": {0: 1}})
    world.timers.advance(HOUR_MS)
    world.commit("g", {"t": {1: 1}})
    sweep(world, RETENTION_MS - HOUR_MS - 1)
    assert world.offsets("g") == {"t": {0: 1, 1: 1}}
    sweep(world, RETENTION_MS - HOUR_MS)
    assert world.offsets("g") == {"t": {1: 1}}
    sweep(world, RETENTION_MS)
    assert world.groups == {}
    world.restart()
    assert world.groups == {}


def test_a_later_commit_keeps_an_offset(world: Coordinated) -> None:
    world.commit("g", {"t": {0: 1}})
    world.timers.advance(HOUR_MS)
    world.commit("g", {"t": {0: 1}})
    sweep(world, RETENTION_MS - HOUR_MS)
    assert world.offsets("g") == {"t": {0: 1}}


def test_a_retention_time_of_the_request_counts_for_its_offset(world: Coordinated) -> None:
    world.commit("g", {"t": {0: 1}}, version=2, retention_ms=HOUR_MS)
    world.commit("g", {"t": {1: 1}}, version=2, retention_ms=30 * RETENTION_MS)
    sweep(world, HOUR_MS)
    assert world.offsets("g") == {"t": {1: 1}}
    sweep(world, 29 * RETENTION_MS)
    assert world.offsets("g") == {"t": {1: 1}}


def test_nothing_that_a_member_reads_expires(world: Coordinated) -> None:
    member_id = world.become_member("g")
    world.commit("g", {"t": {0: 1}, "u": {0: 1}}, generation=1, member_id=member_id)
    sweep(world, 10 * RETENTION_MS)
    assert world.offsets("g") == {"t": {0: 1}}
    assert world.groups["g"].state_name == "Stable"


def test_offsets_of_a_group_expire_from_when_it_became_empty(world: Coordinated) -> None:
    member_id = world.become_member("g")
    world.commit("g", {"t": {0: 1}}, generation=1, member_id=member_id)
    for _ in range(3):
        world.timers.advance(9_000)
        world.commit("g", {"u": {0: 1}}, generation=1, member_id=member_id)
    leave(world, "g", member_id)
    sweep(world, RETENTION_MS - 1)
    assert world.offsets("g") == {"t": {0: 1}, "u": {0: 1}}
    sweep(world, RETENTION_MS)
    assert world.groups == {}
    keys = [type(record.key) for record in world.journal.records[-3:]]
    assert keys == [OffsetCommitKey, OffsetCommitKey, GroupMetadataKey]


def test_an_empty_group_without_offsets_goes_at_once(world: Coordinated) -> None:
    member_id = world.become_member("g")
    sweep(world)
    assert "g" in world.groups
    leave(world, "g", member_id)
    sweep(world)
    assert world.groups == {}


def test_very_many_expire_in_pieces(world: Coordinated) -> None:
    world.commit("g", {"t": dict.fromkeys(range(1100), 1)})
    world.timers.advance(RETENTION_MS)
    steps = world.coordinator.remove_expired(world.shard.now_ms())
    next(steps)
    world.commit("g", {"t": {1099: 2, 0: 2}})
    drain(steps)
    # What was committed in between is not expired, whether its turn had come or not.
    assert world.offsets("g") == {"t": {0: 2, 1099: 2}}


def test_a_refusal_of_the_log_leaves_the_rest_for_later(world: Coordinated) -> None:
    for group_id in ("a", "b"):
        world.commit(group_id, {"t": {0: 1}})
    world.journal.refuse(after=1)
    with pytest.raises(CoordinatorError):
        sweep(world, RETENTION_MS)
    world.journal.accept()
    assert world.offsets("b") == {"t": {0: 1}}
    sweep(world, RETENTION_MS)
    assert world.groups == {}


# --- with the topic ---


def test_offsets_go_with_their_topic(world: Coordinated) -> None:
    world.commit("a", {"t": {0: 1, 1: 1}, "u": {0: 1}})
    world.commit("b", {"t": {0: 1}})
    world.topics.remove("t")
    drain(world.coordinator.remove_orphans())
    assert (world.offsets("a"), world.offsets("b")) == ({"u": {0: 1}}, {})
    # The group itself waits for the sweep.
    assert "b" in world.groups


def test_a_new_topic_of_the_name_does_not_inherit(world: Coordinated) -> None:
    world.commit("g", {"t": {0: 1}})
    world.topics.remove("t")
    world.topics.add("t", 1)
    world.commit("h", {"t": {0: 2}})
    drain(world.coordinator.remove_orphans())
    assert (world.offsets("g"), world.offsets("h")) == ({}, {"t": {0: 2}})


def test_an_offset_that_knows_no_id_belongs_to_the_topic_of_its_name(world: Coordinated) -> None:
    world.commit("g", {"t": {0: 1}}, version=2, retention_ms=HOUR_MS)
    world.topics.remove("t")
    world.topics.add("t", 1)
    drain(world.coordinator.remove_orphans())
    assert world.offsets("g") == {"t": {0: 1}}


def test_nothing_is_written_when_nothing_is_to_go(world: Coordinated) -> None:
    world.commit("g", {"t": {0: 1}})
    drain(world.coordinator.remove_orphans())
    sweep(world)
    assert len(world.journal.batches) == 1


# --- on demand ---


def test_a_group_is_deleted_with_its_offsets_in_one_batch(world: Coordinated) -> None:
    world.commit("g", {"t": {0: 1, 1: 1}})
    drain(world.coordinator.delete("g"))
    assert world.groups == {}
    assert [len(batch) for batch in world.journal.batches] == [2, 3]
    world.restart()
    assert world.groups == {}


def test_who_can_not_be_deleted(world: Coordinated) -> None:
    world.become_member("g")
    for group_id, code in (
        ("g", ErrorCode.NON_EMPTY_GROUP),
        ("unknown", ErrorCode.GROUP_ID_NOT_FOUND),
    ):
        with pytest.raises(CoordinatorError) as caught:
            drain(world.coordinator.delete(group_id))
        assert caught.value.code is code


def test_a_group_with_very_many_offsets_is_deleted_in_pieces(world: Coordinated) -> None:
    world.commit("g", {"t": dict.fromkeys(range(1100), 1)})
    drain(world.coordinator.delete("g"))
    assert [len(batch) for batch in world.journal.batches] == [1100, 500, 500, 101]
    assert world.groups == {}


def test_who_joins_between_two_pieces_stays(world: Coordinated) -> None:
    world.commit("g", {"t": dict.fromkeys(range(1100), 1)})
    steps = world.coordinator.delete("g")
    next(steps)
    member_id = world.become_member("g")
    with pytest.raises(CoordinatorError) as caught:
        drain(steps)
    assert caught.value.code is ErrorCode.NON_EMPTY_GROUP
    response = world.commit("g", {"t": {0: 7}}, generation=1, member_id=member_id)
    assert codes(response) == {"t": {0: ErrorCode.NONE}}
