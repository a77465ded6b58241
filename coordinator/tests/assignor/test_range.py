"""The range assignor."""

from __future__ import annotations

from klamm.coordinator.assignor import ASSIGNORS
from klamm.coordinator.tests.assignor.support import Members, member, numbered, topics_of


def assign(members: Members, *partition_counts: int) -> dict[str, dict[int, set[int]]]:
    return numbered(ASSIGNORS["range"].assign(members, topics_of(*partition_counts)))


def test_topics_are_co_partitioned() -> None:
    members = {"a": member(0, 1), "b": member(0, 1)}
    assert assign(members, 3, 3) == {"a": {0: {0, 1}, 1: {0, 1}}, "b": {0: {2}, 1: {2}}}


def test_more_members_than_partitions() -> None:
    members = {"a": member(0), "b": member(0), "c": member(0)}
    assert assign(members, 2) == {"a": {0: {0}}, "b": {0: {1}}, "c": {}}


def test_each_topic_is_divided_among_its_own_subscribers() -> None:
    members = {"a": member(0), "b": member(0, 1), "c": member(1)}
    assert assign(members, 4, 3) == {
        "a": {0: {0, 1}},
        "b": {0: {2, 3}, 1: {0, 1}},
        "c": {1: {2}},
    }


def test_static_members_come_first_by_instance_id() -> None:
    members = {
        "a": member(0),
        "b": member(0, instance_id="y"),
        "c": member(0, instance_id="x"),
    }
    assert assign(members, 3) == {"c": {0: {0}}, "b": {0: {1}}, "a": {0: {2}}}


def test_a_static_member_keeps_its_range_under_another_member_id() -> None:
    others = {"k": member(0), "m": member(0, instance_id="y")}
    before = assign({**others, "z": member(0, instance_id="x")}, 7)
    returned = assign({**others, "a": member(0, instance_id="x")}, 7)
    assert returned == {"k": before["k"], "m": before["m"], "a": before["z"]}


def test_ids_are_compared_as_java_does() -> None:
    """U+FF5E is less than U+1F600, but not than the surrogates that this one is in UTF-16."""
    members = {"\uff5e": member(0), "\U0001f600": member(0)}
    assert assign(members, 2) == {"\U0001f600": {0: {0}}, "\uff5e": {0: {1}}}


def test_what_members_had_has_no_say() -> None:
    members = {"a": member(0, assigned={0: {1}}), "b": member(0, assigned={0: {0}})}
    assert assign(members, 2) == {"a": {0: {0}}, "b": {0: {1}}}
