"""SyncGroup: the leader hands out assignments, everybody else waits for its own."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.twin.cases import all_cases
from compat_tests.twin.groups import Group, Member, subscription

OTHER_TOPIC = (("range", subscription("another-topic")),)


def completing(group: Group, *names: str) -> list[Member]:
    """Members who have all joined, of whom none has synced yet; the first is the leader."""
    members = [group.member(name) for name in names]
    members[0].enter()
    if len(members) > 1:
        group.gather(*members[1:])
        group.rejoin(*members)
    return members


@pytest.mark.every_version("sync_group")
def test_assignments_are_handed_out(group: Group, version: int) -> None:
    """Followers wait for the leader, and get exactly the bytes that it gave for them."""
    leader, second, third = completing(group, "leader", "second", "third")
    second.send("sync_group", version=version)
    third.send("sync_group", version=version)
    assert second.is_silent()
    assignments = {leader: b"", second: bytes(range(256)), third: b"third"}
    leader.sync(assignments, version)
    for member in (second, third):
        member.receive("sync_group", version)
    group.describe()
    for member in (leader, second, third):
        member.sync(None, version)


@pytest.mark.every_version("sync_group")
def test_a_late_follower_gets_its_assignment(group: Group, version: int) -> None:
    leader, second = completing(group, "leader", "second")
    leader.sync({leader: b"1", second: b"2"}, version)
    second.sync(None, version)


@pytest.mark.every_version("sync_group")
def test_assignments_that_do_not_fit(group: Group, version: int) -> None:
    """For somebody who is not there, for nobody, twice for one: no harm is done."""
    leader, second = completing(group, "leader", "second")
    leader.sync({"a stranger": b"x", "": b"y", leader: b"1"}, version)
    second.sync(None, version)
    group.describe()


def test_the_same_member_twice(group: Group) -> None:
    (leader,) = completing(group, "leader")

    def twice(side: Any) -> Any:
        return [{"member_id": leader.id(side), "assignment": data} for data in (b"1", b"2")]

    leader.ask("sync_group", {"assignments": twice})
    group.describe()


@pytest.mark.every_version("sync_group")
def test_nobody_gets_anything(group: Group, version: int) -> None:
    leader, second = completing(group, "leader", "second")
    leader.sync({}, version)
    second.sync(None, version)
    group.describe()


@pytest.mark.every_version("sync_group")
def test_what_a_follower_says_does_not_count(group: Group, version: int) -> None:
    leader, second = completing(group, "leader", "second")
    fields = second.assigning({leader: b"mine", second: b"all"})
    second.send("sync_group", fields, version)
    assert second.is_silent()
    leader.sync({leader: b"1", second: b"2"}, version)
    second.receive("sync_group", version)
    second.sync({second: b"all"}, version)
    leader.sync({leader: b"changed", second: b"changed"}, version)
    group.describe()


@pytest.mark.every_version("sync_group")
@pytest.mark.parametrize("state", ["CompletingRebalance", "Stable"])
def test_wrong_requests(group: Group, version: int, state: str) -> None:
    leader, second = completing(group, "leader", "second")
    if state == "Stable":
        group.sync(leader, second)
    wrong: list[dict[str, Any]] = [
        {"group_id": ""},
        {"group_id": "never heard of"},
        {"member_id": ""},
        {"member_id": "a stranger"},
        {"generation_id": 1},
        {"generation_id": 3},
        {"generation_id": -1},
        {"generation_id": 0},
        {"member_id": "a stranger", "generation_id": 7},
        {"group_instance_id": "an instance"},
        {"group_instance_id": "an instance", "generation_id": 7},
        {"protocol_type": "connect"},
        {"protocol_name": "roundrobin"},
        {"protocol_name": ""},
        {"protocol_type": ""},
        {"protocol_type": "connect", "generation_id": 7},
    ]
    with all_cases() as cases:
        for fields in wrong:
            # Before version 5 nobody says which protocol is meant, before 3 no instance.
            only_later = {"protocol_type", "protocol_name"} if version < 5 else set()
            only_later |= {"group_instance_id"} if version < 3 else set()
            if not only_later.intersection(fields):
                with cases.case(str(fields)):
                    leader.sync({leader: b"1"}, version, **fields)
    assert group.describe()["group_state"] == state


@pytest.mark.every_version("sync_group", since=5)
def test_protocols_need_not_be_named(group: Group, version: int) -> None:
    leader, second = completing(group, "leader", "second")
    leader.sync({leader: b"1", second: b"2"}, version, protocol_type=None, protocol_name=None)
    second.sync(None, version, protocol_type=None)
    second.sync(None, version, protocol_name=None)


@pytest.mark.every_version("sync_group")
def test_an_empty_group(group: Group, version: int) -> None:
    (leader,) = group.stable("leader")
    leader.leave()
    leader.sync({leader: b"1"}, version)
    leader.sync({}, version, generation_id=0)


@pytest.mark.every_version("sync_group")
def test_while_a_rebalance_is_prepared(group: Group, version: int) -> None:
    """Whoever waits for an assignment learns that there will be another one."""
    leader, second, third = completing(group, "leader", "second", "third")
    second.send("sync_group", version=version)
    assert second.is_silent()
    third.send("join_group", third.joining(protocols=OTHER_TOPIC))
    second.receive("sync_group", version)
    for member in (leader, second):
        member.sync({leader: b"1"}, version)
    assert group.describe()["group_state"] == "PreparingRebalance"


def test_a_follower_that_does_not_sync_is_put_out(group: Group) -> None:
    """It has the rebalance timeout for that; the others begin again without it."""
    leader, second = group.member("leader"), group.member("second")
    timeouts = {"rebalance_timeout": 600}
    leader.enter(**timeouts)
    group.gather(second, **timeouts)
    group.rejoin(leader, second, **timeouts)
    leader.sync({leader: b"1", second: b"2"})
    group.wait_for_state("PreparingRebalance")
    leader.heartbeat()
    second.heartbeat()
    leader.enter(**timeouts)
    group.describe()


def test_a_leader_that_does_not_sync_is_put_out(group: Group) -> None:
    leader, second = group.member("leader"), group.member("second")
    timeouts = {"rebalance_timeout": 600}
    leader.enter(**timeouts)
    group.gather(second, **timeouts)
    group.rejoin(leader, second, **timeouts)
    second.send("sync_group")
    second.receive("sync_group")
    leader.sync({leader: b"1"})
    second.enter(**timeouts)
    group.describe()
