"""JoinGroup of those who are in the group already, and of those who do not come back in time."""

from __future__ import annotations

import time

import pytest

from compat_tests.twin.groups import Group, subscription


@pytest.mark.every_version("join_group")
def test_the_leader_joins_again(group: Group, version: int) -> None:
    """That means a new generation: the leader may have seen new partitions."""
    first, second = group.stable("first", "second")
    first.send("join_group", first.joining(), version)
    group.wait_for_state("PreparingRebalance")
    second.heartbeat()
    second.send("join_group", second.joining(), version)
    group.receive_joins(first, second, version=version)
    group.sync(first, second)
    assert first.generation == 3


@pytest.mark.every_version("join_group")
def test_a_follower_joins_again_as_it_was(group: Group, version: int) -> None:
    """Nothing is new, so it is told what holds."""
    first, second = group.stable("first", "second")
    second.join(version)
    second.sync()
    first.heartbeat()
    assert group.describe()["group_state"] == "Stable"


@pytest.mark.every_version("join_group")
def test_a_follower_joins_again_with_other_topics(group: Group, version: int) -> None:
    first, second = group.stable("first", "second")
    changed = (("range", subscription("another-topic")),)
    second.send("join_group", second.joining(protocols=changed), version)
    group.wait_for_state("PreparingRebalance")
    first.heartbeat()
    first.send("join_group", first.joining(), version)
    group.receive_joins(first, second, version=version)
    group.sync(first, second)
    group.describe()


@pytest.mark.every_version("join_group")
def test_joining_while_assignments_are_awaited(group: Group, version: int) -> None:
    """As before: the reply was lost, and comes again. With other topics: from the beginning."""
    first, second = group.member("first"), group.member("second")
    first.enter()
    group.gather(second)
    group.rejoin(first, second)
    for member in (second, first):
        member.join(version)
    assert group.describe()["group_state"] == "CompletingRebalance"
    changed = (("range", subscription("another-topic")),)
    second.send("join_group", second.joining(protocols=changed), version)
    group.wait_for_state("PreparingRebalance")
    first.sync({first: b"1", second: b"2"})
    first.send("join_group", first.joining(), version)
    group.receive_joins(first, second, version=version)
    group.sync(first, second)
    assert first.generation == 3


def test_joining_twice_while_the_others_are_awaited(group: Group) -> None:
    """The client gave up its connection and came back: only its last request is answered."""
    (first,) = group.stable("first")
    second = group.member("second")
    group.gather(second)
    again = group.member("second")
    changed = (("range", subscription("another-topic")),)
    again.send("join_group", {**second.joining(protocols=changed), "member_id": second.id})
    assert again.is_silent(0.2)
    first.join()
    again.receive("join_group")
    second.receive("join_group", patience_s=0.3, deviation="D-014")


def test_a_member_that_does_not_come_back_is_left_behind(group: Group) -> None:
    """Its rebalance timeout counts, which ends long before its session does."""
    first, second = group.stable("first", "second", rebalance_timeout=600)
    changed = (("range", subscription("other")),)
    second.join(protocols=changed, rebalance_timeout=600)
    second.sync({second: b"all"})
    first.heartbeat()
    first.join()
    assert group.describe()["group_state"] == "Stable"


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_that_is_silent_is_put_out(group: Group, version: int) -> None:
    """In version 0 the session timeout counts for rebalances as well."""
    first, second = group.member("first"), group.member("second")
    first.enter(version, session_timeout=800, rebalance_timeout=60_000)
    first.sync({first: b"all"})
    first.heartbeat()
    group.wait_for_state("Empty")
    first.heartbeat()
    first.join(version)
    second.enter(version)
    assert second.generation == 3


def test_an_id_that_is_not_used(group: Group) -> None:
    """It holds a place in the group for as long as a session would last."""
    pending = group.member("pending")
    pending.join(session_timeout=600)
    for ask in (pending.heartbeat, pending.sync):
        ask()
    pending.heartbeat(generation_id=0)
    time.sleep(0.7)
    pending.join()


def test_others_wait_for_an_id_that_was_given(group: Group) -> None:
    """The group does not go on without a member that is about to come."""
    first, second = group.stable("first", "second")
    pending = group.member("pending")
    pending.join(session_timeout=1_000)
    second.send("join_group", second.joining(protocols=(("range", subscription("other")),)))
    group.wait_for_state("PreparingRebalance")
    first.send("join_group", first.joining())
    assert first.is_silent(0.1)
    for member in (first, second):
        member.receive("join_group")
    pending.join()
    group.sync(first, second)
    assert group.size() == 2


@pytest.mark.parametrize("rebalance_timeout", [0, -1, -(1 << 31)])
def test_no_time_for_a_rebalance(group: Group, rebalance_timeout: int) -> None:
    """Nobody checks it: whoever joins is too late to sync, and is put out."""
    member = group.member()
    for _ in range(2):
        member.join(rebalance_timeout=rebalance_timeout)
    group.wait_for_state("Empty")
    member.sync({member: b"all"})
    member.heartbeat()


def test_all_the_time_for_a_rebalance(group: Group) -> None:
    (member,) = group.stable("member", rebalance_timeout=(1 << 31) - 1)
    group.describe()
    member.leave()
