"""Heartbeat: what a member learns about its group in each of the group's states."""

from __future__ import annotations

import time
from typing import Any

import pytest

from compat_tests.twin.cases import all_cases
from compat_tests.twin.groups import Group

WRONG: list[dict[str, Any]] = [
    {},
    {"group_id": ""},
    {"group_id": "never heard of"},
    {"member_id": ""},
    {"member_id": "a stranger"},
    {"generation_id": 1},
    {"generation_id": 99},
    {"generation_id": -1},
    {"member_id": "a stranger", "generation_id": 99},
    {"group_instance_id": "an instance"},
    {"group_instance_id": "an instance", "member_id": "a stranger"},
]


@pytest.mark.every_version("heartbeat")
@pytest.mark.parametrize("state", ["PreparingRebalance", "CompletingRebalance", "Stable", "Empty"])
def test_in_every_state(group: Group, version: int, state: str) -> None:
    leader, second = group.stable("leader", "second")
    if state in ("PreparingRebalance", "CompletingRebalance"):
        leader.send("join_group", leader.joining())
        group.wait_for_state("PreparingRebalance")
    if state == "CompletingRebalance":
        second.send("join_group", second.joining())
        group.receive_joins(leader, second)
    if state == "Empty":
        leader.leave()
        second.leave()
    with all_cases() as cases:
        for fields in WRONG:
            if version >= 3 or "group_instance_id" not in fields:
                with cases.case(str(fields)):
                    second.heartbeat(version, **fields)
    assert group.describe()["group_state"] == state


@pytest.mark.every_version("heartbeat")
def test_no_group(group: Group, version: int) -> None:
    group.member().heartbeat(version)
    group.member().heartbeat(version, member_id="a stranger", generation_id=1)


@pytest.mark.every_version("heartbeat", since=3)
def test_a_static_member(group: Group, version: int) -> None:
    member = group.member(instance="instance")
    member.enter()
    member.sync({member: b"all"})
    for fields in (
        {},
        {"group_instance_id": None},
        {"group_instance_id": "another"},
        {"member_id": "a stranger"},
        {"member_id": ""},
        {"member_id": "a stranger", "group_instance_id": None},
        {"generation_id": 7},
    ):
        member.heartbeat(version, **fields)


def test_heartbeats_keep_a_session_alive(group: Group) -> None:
    member = group.member()
    member.enter(session_timeout=600)
    member.sync({member: b"all"})
    for _ in range(8):
        time.sleep(0.15)
        assert member.heartbeat().kafka["error_code"] == "none"
    group.wait_for_state("Empty")
    member.heartbeat()


def test_a_follower_whose_session_ends(group: Group) -> None:
    """The others learn it by their next heartbeat."""
    leader, second = group.member("leader"), group.member("second")
    leader.enter()
    group.gather(second, session_timeout=600)
    group.rejoin(leader, second)
    group.sync(leader, second)
    group.wait_for_state("PreparingRebalance")
    leader.heartbeat()
    second.heartbeat()
    leader.enter()
    group.describe()


def test_a_leader_whose_session_ends(group: Group) -> None:
    leader, second = group.member("leader"), group.member("second")
    leader.enter(session_timeout=600)
    group.gather(second)
    group.rejoin(leader, second, session_timeout=600)
    group.sync(leader, second)
    group.wait_for_state("PreparingRebalance")
    second.enter()
    second.sync({second: b"all"})
    leader.heartbeat()
    group.describe()
