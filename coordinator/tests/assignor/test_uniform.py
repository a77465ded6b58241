"""The uniform assignor, and what all assignors have in common."""

from __future__ import annotations

import pytest

from klamm.coordinator.assignor import ASSIGNORS, MemberSpec
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.tests.assignor.support import (
    Members,
    after,
    check,
    member,
    numbered,
    owners,
    sizes,
    topics_of,
)
from klamm.wire.errors import ErrorCode

UNIFORM = ASSIGNORS["uniform"]


def assign(members: Members, *partition_counts: int) -> dict[str, dict[int, set[int]]]:
    return numbered(UNIFORM.assign(members, topics_of(*partition_counts)))


def test_names() -> None:
    assert list(ASSIGNORS) == ["uniform", "range"]
    assert [assignor.name for assignor in ASSIGNORS.values()] == ["uniform", "range"]


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
def test_nobody_and_nothing(name: str) -> None:
    assignor = ASSIGNORS[name]
    assert assignor.assign({}, topics_of(3)) == {}
    assert assignor.assign({"a": member(), "b": member()}, topics_of(3)) == {"a": {}, "b": {}}


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
@pytest.mark.parametrize("other", [member(0), member(0, 7)])
def test_a_topic_that_does_not_exist(name: str, other: MemberSpec) -> None:
    with pytest.raises(CoordinatorError) as refused:
        ASSIGNORS[name].assign({"a": member(0, 7), "b": other}, topics_of(3))
    assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert refused.value.message == (
        "Members are subscribed to topic AAAAAAAAAAAAAAAAAAAABw which doesn't exist in the topic "
        "metadata."
    )


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
def test_racks_have_no_say(name: str) -> None:
    plain = {"a": member(0), "b": member(0)}
    racked = {"a": member(0, rack_id="r1"), "b": member(0, rack_id="r2")}
    topics = topics_of(5)
    assert ASSIGNORS[name].assign(racked, topics) == ASSIGNORS[name].assign(plain, topics)


def test_new_partitions_go_to_members_in_order() -> None:
    assert assign({"a": member(0, 1), "b": member(0, 1)}, 3, 1) == {
        "a": {0: {0, 1}},
        "b": {0: {2}, 1: {0}},
    }


def test_the_odd_partition_stays_where_it_is() -> None:
    members = {"a": member(0, assigned={0: {0}}), "b": member(0, assigned={0: {1, 2}})}
    assert assign(members, 3) == {"a": {0: {0}}, "b": {0: {1, 2}}}


def test_topics_that_are_no_longer_subscribed_are_dropped() -> None:
    members = {"a": member(0, assigned={0: {0}, 1: {0, 1}}), "b": member(0)}
    assert assign(members, 2, 2) == {"a": {0: {0}}, "b": {0: {1}}}


@pytest.mark.parametrize("topics", [(0,), (0, 1)])
def test_claims_that_cannot_be_true(topics: tuple[int, ...]) -> None:
    """Two members with the same partition, and partitions that the topic lacks."""
    members = {
        "a": member(0, assigned={0: {0, 1, 2}}),
        "b": member(*topics, assigned={0: {0, 1, 2, 3}}),
        "c": member(0, assigned={0: {9}}),
    }
    target = UNIFORM.assign(members, topics_of(6, 6))
    check(members, topics_of(6, 6), target)


def test_partitions_go_to_the_least_loaded_subscriber() -> None:
    members = {"a": member(0, 1), "b": member(0), "c": member(1)}
    assert sizes(UNIFORM.assign(members, topics_of(4, 2))) == {"a": 2, "b": 2, "c": 2}


def test_different_topics_move_only_what_balances() -> None:
    members = {"a": member(0, 1), "b": member(0, 1), "c": member(2)}
    topics = topics_of(5, 3, 4)
    before = UNIFORM.assign(members, topics)
    assert sizes(before) == {"a": 4, "b": 4, "c": 4}
    target = UNIFORM.assign({**after(members, before), "d": member(0, 1)}, topics)
    assert sizes(target) == {"a": 3, "b": 3, "c": 4, "d": 2}
    had = owners(before)
    moved = [owner for partition, owner in owners(target).items() if owner != had[partition]]
    assert moved == ["d", "d"]
