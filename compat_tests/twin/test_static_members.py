"""Static members (KIP-345): an instance comes back under its name, and the one before is fenced."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.twin.groups import Group, Member, subscription

OTHER_TOPIC = (("range", subscription("another-topic")),)


def static_group(group: Group) -> tuple[Member, Member]:
    """A stable group of a dynamic leader and a static follower."""
    leader, static = group.member("leader"), group.member("static", instance="one")
    leader.enter()
    group.gather(static)
    group.rejoin(leader, static)
    group.sync(leader, static)
    return leader, static


@pytest.mark.every_version("join_group", since=5)
def test_a_follower_comes_back(group: Group, version: int) -> None:
    """With the same topics nothing changes for the others: same generation, same assignment."""
    leader, before = static_group(group)
    after = group.member("after", instance="one")
    after.join(version)
    after.sync()
    leader.heartbeat()
    assert group.describe()["group_state"] == "Stable"
    for ask in (before.heartbeat, before.sync, before.leave, before.join):
        ask()
    leader.heartbeat()
    group.describe()


@pytest.mark.every_version("join_group", since=5)
def test_a_follower_comes_back_with_other_topics(group: Group, version: int) -> None:
    """Its topics are new, the protocol is not: the others do not join again."""
    leader, before = static_group(group)
    after = group.member("after", instance="one")
    after.join(version, protocols=OTHER_TOPIC)
    after.sync()
    before.heartbeat()
    leader.heartbeat()
    assert group.describe()["group_state"] == "Stable"


@pytest.mark.every_version("join_group", since=5)
def test_a_follower_comes_back_with_another_protocol(group: Group, version: int) -> None:
    """Together with it the group would choose otherwise, so it has to choose again."""
    both = (("a", subscription()), ("b", subscription()))
    leader, before = group.member("leader"), group.member("before", instance="one")
    leader.enter(protocols=both)
    group.gather(before, protocols=both)
    group.rejoin(leader, before, protocols=both)
    group.sync(leader, before)
    after = group.member("after", instance="one")
    after.send("join_group", after.joining(protocols=both[1:]), version)
    group.wait_for_state("PreparingRebalance")
    before.heartbeat()
    leader.heartbeat()
    leader.send("join_group", leader.joining(protocols=both), version)
    group.receive_joins(leader, after, version=version)
    assert leader.protocol == "b"
    group.sync(leader, after)
    group.describe()


@pytest.mark.every_version("join_group", since=5)
def test_a_leader_comes_back(group: Group, version: int) -> None:
    """From version 9 on it is told that it need not assign again (KIP-814)."""
    before = group.member("before", instance="one")
    before.enter(version)
    before.sync({before: b"all"})
    after = group.member("after", instance="one")
    after.join(version)
    after.sync({})
    group.describe()
    before.heartbeat()


def test_a_leader_comes_back_to_others(group: Group) -> None:
    leader = group.member("leader", instance="one")
    follower = group.member("follower")
    leader.enter()
    group.gather(follower)
    group.rejoin(leader, follower)
    group.sync(leader, follower)
    after = group.member("after", instance="one")
    after.join()
    after.sync({})
    follower.heartbeat()
    group.describe()
    after.send("join_group", after.joining())
    group.wait_for_state("PreparingRebalance")
    follower.send("join_group", follower.joining())
    group.receive_joins(after, follower)
    group.sync(after, follower)
    group.describe()


def test_two_with_one_name_wait_to_join(group: Group) -> None:
    """The one that was parked first is fenced at once."""
    (leader,) = group.stable("leader")
    before = group.member("before", instance="one")
    group.gather(before)
    after = group.member("after", instance="one")
    after.send("join_group", after.joining())
    before.receive("join_group")
    leader.send("join_group", leader.joining())
    group.receive_joins(leader, after)
    group.sync(leader, after)
    group.describe()


def test_two_with_one_name_wait_for_an_assignment(group: Group) -> None:
    leader, before = group.member("leader"), group.member("before", instance="one")
    leader.enter()
    group.gather(before)
    group.rejoin(leader, before)
    before.send("sync_group")
    assert before.is_silent()
    after = group.member("after", instance="one")
    after.send("join_group", after.joining())
    before.receive("sync_group")
    group.wait_for_state("PreparingRebalance")
    leader.send("join_group", leader.joining())
    group.receive_joins(leader, after)
    group.sync(leader, after)
    group.describe()


def test_a_known_instance_with_a_wrong_member_id(group: Group) -> None:
    _, static = static_group(group)
    wrong: list[dict[str, Any]] = [
        {"member_id": "a stranger"},
        {"member_id": "a stranger", "group_instance_id": "two"},
        {"group_instance_id": "two"},
        {"group_instance_id": None, "member_id": "a stranger"},
    ]
    for fields in wrong:
        static.join(**fields)
        static.sync(**fields)
        static.heartbeat(**fields)
    assert group.describe()["group_state"] == "Stable"


def test_a_static_member_that_leaves_as_consumers_do(group: Group) -> None:
    """They do not leave: the place is kept until the session ends."""
    member = group.member("before", instance="one")
    member.enter(session_timeout=600)
    member.sync({member: b"all"})
    group.wait_for_state("Empty")
    member.heartbeat()
    after = group.member("after", instance="one")
    after.enter()
    assert after.generation == 3


@pytest.mark.parametrize("instance", ["", ".", "a b", "ä", "x" * 249, "x" * 250])
def test_names_of_instances(group: Group, instance: str) -> None:
    """They follow the rules for names of topics; some are checked by clients alone."""
    member = group.member(instance=instance)
    member.join()
    group.describe()
