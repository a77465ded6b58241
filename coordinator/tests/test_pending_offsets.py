"""Offsets in transactions: pending until the marker, then in force or gone; and what keeps them."""

from __future__ import annotations

import pytest

from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.settings import GroupSettings
from klamm.coordinator.tests.groups import Coordinated, codes, drain
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.offset_fetch import OffsetFetchResponseGroup
from klamm.wire.messages.stored.classic_group import OffsetCommitKey

RETENTION_MS = 1000
PRODUCER = 7
OTHER = 8
UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT


@pytest.fixture
def world() -> Coordinated:
    coordinated = Coordinated(GroupSettings(offsets_retention_ms=RETENTION_MS))
    coordinated.topics.add("t", 4)
    coordinated.topics.add("u", 2)
    return coordinated


def end(world: Coordinated, producer_id: int = PRODUCER, *, is_commit: bool = True) -> None:
    world.journal.end_transaction(producer_id, is_commit=is_commit)


def stability(response: OffsetFetchResponseGroup) -> dict[tuple[str, int], int | ErrorCode]:
    """The offset of each partition, or why there is none."""
    return {
        (topic.name, partition.partition_index): (
            ErrorCode(partition.error_code) if partition.error_code else partition.committed_offset
        )
        for topic in response.topics
        for partition in topic.partitions
    }


# --- until the marker ---


def test_a_pending_offset_is_not_fetched_until_its_transaction_is_committed(
    world: Coordinated,
) -> None:
    world.commit("g", {"t": {0: 1}})
    response = world.commit("g", {"t": {0: 5, 1: 6}}, producer_id=PRODUCER)
    assert codes(response) == {"t": {0: ErrorCode.NONE, 1: ErrorCode.NONE}}
    assert world.offsets("g") == {"t": {0: 1}}
    end(world)
    assert world.offsets("g") == {"t": {0: 5, 1: 6}}


def test_what_was_aborted_has_never_been(world: Coordinated) -> None:
    world.commit("g", {"t": {0: 1}})
    world.commit("g", {"t": {0: 5, 1: 6}}, producer_id=PRODUCER)
    end(world, is_commit=False)
    assert world.offsets("g") == {"t": {0: 1}}
    assert stability(world.fetch("g", require_stable=True)) == {("t", 0): 1}


def test_whoever_wants_stable_offsets_has_to_wait(world: Coordinated) -> None:
    world.commit("g", {"t": {0: 1, 1: 2}})
    world.commit("g", {"t": {0: 5, 3: 6}}, producer_id=PRODUCER)
    asked = {"t": [0, 1, 2, 3]}
    assert stability(world.fetch("g", asked, require_stable=True)) == {
        ("t", 0): UNSTABLE,
        ("t", 1): 2,
        ("t", 2): -1,
        ("t", 3): UNSTABLE,
    }
    assert stability(world.fetch("g", asked)) == {
        ("t", 0): 1,
        ("t", 1): 2,
        ("t", 2): -1,
        ("t", 3): -1,
    }


def test_a_fetch_of_everything_lists_what_is_committed_only(world: Coordinated) -> None:
    world.commit("g", {"t": {0: 1}})
    world.commit("g", {"t": {0: 5}, "u": {0: 6}}, producer_id=PRODUCER)
    assert stability(world.fetch("g", require_stable=True)) == {("t", 0): UNSTABLE}


def test_another_group_is_not_unstable(world: Coordinated) -> None:
    world.commit("other", {"t": {0: 1}})
    world.commit("g", {"t": {0: 5}}, producer_id=PRODUCER)
    assert stability(world.fetch("other", require_stable=True)) == {("t", 0): 1}


def test_one_transaction_commits_for_several_groups(world: Coordinated) -> None:
    world.commit("g", {"t": {0: 5}}, producer_id=PRODUCER)
    world.commit("h", {"t": {0: 6}}, producer_id=PRODUCER)
    end(world)
    assert (world.offsets("g"), world.offsets("h")) == ({"t": {0: 5}}, {"t": {0: 6}})


def test_the_last_commit_of_a_transaction_counts(world: Coordinated) -> None:
    world.commit("g", {"t": {0: 5}}, producer_id=PRODUCER)
    world.commit("g", {"t": {0: 4}}, producer_id=PRODUCER)
    end(world)
    assert world.offsets("g") == {"t": {0: 4}}


def test_the_last_record_wins_and_not_the_last_marker(world: Coordinated) -> None:
    world.commit("g", {"t": {0: 5}}, producer_id=PRODUCER)
    world.commit("g", {"t": {0: 6}}, producer_id=OTHER)
    end(world, OTHER)
    assert stability(world.fetch("g", require_stable=True)) == {("t", 0): UNSTABLE}
    end(world, PRODUCER)
    assert world.offsets("g") == {"t": {0: 6}}
    assert stability(world.fetch("g", require_stable=True)) == {("t", 0): 6}


def test_a_later_commit_without_a_transaction_wins_too(world: Coordinated) -> None:
    world.commit("g", {"t": {0: 5}}, producer_id=PRODUCER)
    world.commit("g", {"t": {0: 3}})
    end(world)
    assert world.offsets("g") == {"t": {0: 3}}


def test_a_marker_of_a_transaction_without_offsets_changes_nothing(world: Coordinated) -> None:
    world.commit("g", {"t": {0: 5}}, producer_id=PRODUCER)
    end(world, OTHER)
    assert world.offsets("g") == {}


# --- who may commit ---


def test_a_producer_that_knows_no_group_metadata_commits_for_a_group_with_members(
    world: Coordinated,
) -> None:
    world.become_member("g")
    assert codes(world.commit("g", {"t": {0: 5}}, producer_id=PRODUCER, version=0)) == {
        "t": {0: ErrorCode.NONE}
    }


@pytest.mark.parametrize(
    ("generation", "member_id", "code"),
    [
        (1, "", ErrorCode.UNKNOWN_MEMBER_ID),
        (1, "stranger", ErrorCode.UNKNOWN_MEMBER_ID),
        (2, None, ErrorCode.ILLEGAL_GENERATION),
        (0, None, ErrorCode.ILLEGAL_GENERATION),
        (1, None, ErrorCode.NONE),
    ],
)
def test_group_metadata_is_checked(
    world: Coordinated, generation: int, member_id: str | None, code: ErrorCode
) -> None:
    member = world.become_member("g")
    response = world.commit(
        "g",
        {"t": {0: 5}},
        producer_id=PRODUCER,
        generation=generation,
        member_id=member if member_id is None else member_id,
    )
    assert codes(response) == {"t": {0: code}}
    end(world)
    assert world.offsets("g") == ({"t": {0: 5}} if code is ErrorCode.NONE else {})


@pytest.mark.parametrize("version", [3, 5])
def test_a_generation_of_no_group_is_illegal(world: Coordinated, version: int) -> None:
    response = world.commit(
        "g", {"t": {0: 5}}, producer_id=PRODUCER, generation=1, member_id="m", version=version
    )
    assert codes(response) == {"t": {0: ErrorCode.ILLEGAL_GENERATION}}
    assert world.groups == {}


def test_it_keeps_no_member_alive(world: Coordinated) -> None:
    member = world.become_member("g")
    world.timers.advance(9_000)
    world.commit("g", {"t": {0: 5}}, producer_id=PRODUCER, generation=1, member_id=member)
    world.timers.advance(1_000)
    assert world.groups["g"].state_name == "Empty"


def test_a_refused_append_leaves_no_trace(world: Coordinated) -> None:
    world.journal.refuse(ErrorCode.INVALID_TXN_STATE)
    response = world.commit("g", {"t": {0: 5}}, producer_id=PRODUCER)
    assert codes(response) == {"t": {0: ErrorCode.INVALID_TXN_STATE}}
    assert world.groups == {}
    end(world)
    assert world.groups == {}


# --- what removes them, and what does not ---


def test_a_deleted_offset_takes_its_pending_one_with_it(world: Coordinated) -> None:
    world.commit("g", {"t": {0: 1, 1: 2}})
    world.commit("g", {"t": {0: 5, 2: 6}}, producer_id=PRODUCER)
    world.delete_offsets("g", {"t": [0, 2, 3]})
    assert world.journal.batches[-1] == world.journal.records[-2:]
    assert [record.key for record in world.journal.records[-2:]] == [
        OffsetCommitKey(group="g", topic="t", partition=0),
        OffsetCommitKey(group="g", topic="t", partition=2),
    ]
    end(world)
    assert world.offsets("g") == {"t": {1: 2}}


def test_a_deleted_group_takes_its_pending_offsets_with_it(world: Coordinated) -> None:
    world.commit("g", {"t": {0: 1}})
    world.commit("g", {"t": {0: 5, 2: 6}}, producer_id=PRODUCER)
    world.commit("h", {"t": {0: 9}}, producer_id=PRODUCER)
    drain(world.coordinator.delete("g"))
    assert set(world.groups) == {"h"}
    end(world)
    assert set(world.groups) == {"h"}
    assert world.offsets("h") == {"t": {0: 9}}


def test_nothing_expires_under_an_open_transaction(world: Coordinated) -> None:
    world.commit("g", {"t": {0: 1, 1: 2}})
    world.commit("g", {"t": {0: 5}}, producer_id=PRODUCER)
    world.commit("only pending", {"t": {0: 5}}, producer_id=PRODUCER)
    drain(world.coordinator.remove_expired(world.shard.now_ms() + RETENTION_MS))
    assert world.offsets("g") == {"t": {0: 1}}
    assert set(world.groups) == {"g", "only pending"}
    end(world, is_commit=False)
    drain(world.coordinator.remove_expired(world.shard.now_ms() + RETENTION_MS))
    assert world.groups == {}


def test_pending_offsets_go_with_their_topic(world: Coordinated) -> None:
    world.commit("g", {"t": {0: 1}, "u": {0: 2}})
    world.commit("g", {"t": {1: 5}, "u": {1: 6}}, producer_id=PRODUCER)
    world.topics.remove("t")
    drain(world.coordinator.remove_orphans())
    end(world)
    assert world.offsets("g") == {"u": {0: 2, 1: 6}}


def test_a_pending_offset_of_the_new_topic_survives_the_old_one(world: Coordinated) -> None:
    world.commit("g", {"t": {0: 1}})
    world.topics.remove("t")
    world.topics.add("t", 4)
    world.commit("g", {"t": {0: 5}}, producer_id=PRODUCER)
    drain(world.coordinator.remove_orphans())
    end(world)
    assert world.offsets("g") == {"t": {0: 5}}


# --- restarts ---


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_restart_in_the_middle_changes_nothing(world: Coordinated, is_commit: bool) -> None:
    world.commit("g", {"t": {0: 1}})
    world.commit("g", {"t": {0: 5}}, producer_id=PRODUCER)
    world.restart()
    assert stability(world.fetch("g", require_stable=True)) == {("t", 0): UNSTABLE}
    end(world, is_commit=is_commit)
    world.restart()
    assert world.offsets("g") == {"t": {0: 5 if is_commit else 1}}
    assert stability(world.fetch("g", require_stable=True)) == {("t", 0): 5 if is_commit else 1}


def test_a_deleted_group_does_not_come_back_by_a_restart(world: Coordinated) -> None:
    world.commit("g", {"t": {0: 5}}, producer_id=PRODUCER)
    drain(world.coordinator.delete("g"))
    world.restart()
    assert world.groups == {}
    with pytest.raises(CoordinatorError):
        world.delete_offsets("g", {"t": [0]})
