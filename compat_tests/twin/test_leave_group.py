"""LeaveGroup: one member or several, by member id or by instance id."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.twin.cases import all_cases
from compat_tests.twin.conversation import Side
from compat_tests.twin.groups import Group


@pytest.mark.every_version("leave_group")
def test_the_last_member_leaves(group: Group, version: int) -> None:
    (member,) = group.stable("member")
    member.leave(version)
    assert group.describe()["group_state"] == "Empty"
    member.heartbeat()
    member.leave(version)


@pytest.mark.every_version("leave_group")
def test_a_follower_leaves(group: Group, version: int) -> None:
    leader, second = group.stable("leader", "second")
    second.leave(version)
    leader.heartbeat()
    leader.enter()
    leader.sync({leader: b"all"})
    group.describe()


@pytest.mark.every_version("leave_group")
def test_the_leader_leaves(group: Group, version: int) -> None:
    leader, second = group.stable("leader", "second")
    leader.leave(version)
    second.heartbeat()
    second.enter()
    second.sync({second: b"all"})
    group.describe()


@pytest.mark.every_version("leave_group")
def test_wrong_requests(group: Group, version: int) -> None:
    (member,) = group.stable("member")
    wrong: list[dict[str, Any]] = [
        {"group_id": ""},
        {"group_id": "never heard of"},
        {"member_id": "", "members": [{"member_id": ""}]},
        {"member_id": "a stranger", "members": [{"member_id": "a stranger"}]},
        {"member_id": "x", "members": []},
    ]
    with all_cases() as cases:
        for fields in wrong:
            with cases.case(str(fields)):
                member.leave(version, **fields)
    assert group.describe()["group_state"] == "Stable"


@pytest.mark.every_version("leave_group", since=3)
def test_several_at_once(group: Group, version: int) -> None:
    leader, second, third = group.stable("leader", "second", "third")

    def members(side: Side) -> list[dict[str, Any]]:
        return [
            {"member_id": second.id(side)},
            {"member_id": "a stranger"},
            {"member_id": third.id(side)},
            {"member_id": second.id(side)},
            {"member_id": "", "group_instance_id": "an instance"},
            {"member_id": leader.id(side), "group_instance_id": "an instance"},
        ]

    leader.leave(version, members=members)
    assert group.size() == 1


@pytest.mark.every_version("leave_group", since=3)
def test_by_instance(group: Group, version: int) -> None:
    """Whoever looks after the instances needs no member id (KIP-345)."""
    member = group.member(instance="one")
    member.enter()
    member.sync({member: b"all"})
    wrong = [
        {"member_id": "a stranger", "group_instance_id": "one"},
        {"member_id": "", "group_instance_id": "two"},
        {"member_id": "a stranger", "group_instance_id": "two"},
    ]
    member.leave(version, members=wrong)
    assert group.describe()["group_state"] == "Stable"
    member.leave(version, members=[{"member_id": "", "group_instance_id": "one"}])
    assert group.describe()["group_state"] == "Empty"
    member.heartbeat()


@pytest.mark.every_version("leave_group", since=3)
def test_by_both_ids(group: Group, version: int) -> None:
    member = group.member(instance="one")
    member.enter()
    member.leave(version)
    group.describe()


def test_a_static_member_by_its_member_id_alone(group: Group) -> None:
    member = group.member(instance="one")
    member.enter()
    member.sync({member: b"all"})
    member.leave(2)
    group.describe()


@pytest.mark.every_version("leave_group")
def test_an_id_that_was_not_used(group: Group, version: int) -> None:
    """The others stop waiting for it."""
    (first,) = group.stable("first")
    pending = group.member("pending")
    pending.join()
    first.send("join_group", first.joining())
    assert first.is_silent()
    pending.leave(version)
    first.receive("join_group")
    pending.leave(version)
    pending.join()


@pytest.mark.every_version("leave_group")
def test_while_others_wait_to_join(group: Group, version: int) -> None:
    """The one they waited for goes: they need not wait any longer."""
    leader, second = group.stable("leader", "second")
    second.send("join_group", second.joining(protocols=(("range", b""),)))
    group.wait_for_state("PreparingRebalance")
    leader.leave(version)
    second.receive("join_group")
    second.sync({second: b"all"})
    group.describe()


def test_while_it_waits_itself(group: Group) -> None:
    """Its own parked request is answered: it is no longer a member."""
    leader, second = group.stable("leader", "second")
    second.send("join_group", second.joining(protocols=(("range", b""),)))
    group.wait_for_state("PreparingRebalance")
    other = group.member("other")
    other.leave(members=lambda side: [{"member_id": second.id(side)}])
    second.receive("join_group", patience_s=0.5)
    leader.enter()
    group.describe()


@pytest.mark.every_version("leave_group", since=5)
def test_reasons(group: Group, version: int) -> None:
    leader, *others = group.stable("leader", "a", "b", "c")
    for member, reason in zip(others, (None, "", "x" * 10_000), strict=True):

        def body(side: Side, member: Any = member, reason: Any = reason) -> list[dict[str, Any]]:
            return [{"member_id": member.id(side), "reason": reason}]

        leader.leave(version, members=body)
    group.describe()
