"""One, three and ten members join, leave and are killed: every partition has one owner."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.clients.fixtures import Broker
from compat_tests.groups.crew import Member
from compat_tests.groups.group import Group
from compat_tests.groups.kinds import CONFLUENT, KINDS, Kind

every_kind = pytest.mark.parametrize("kind", KINDS, ids=str)


@every_kind
def test_one_member_reads_everything_and_goes_on_where_it_was(group: Group, kind: Kind) -> None:
    topic = group.create_topic(3)
    before = group.send(topic, 3, 20)
    first = group.start(kind, "first", [topic])
    group.wait_until_shared([first], topic, 3)
    group.crew.wait_until_polled(before)
    group.crew.stop(first)
    group.crew.polled.clear()
    after = group.send(topic, 3, 5)
    group.start(kind, "second", [topic])
    group.crew.wait_until_polled(after)
    assert group.crew.values() == set(after)


@every_kind
def test_three_members_share_and_one_leaves(group: Group, kind: Kind) -> None:
    topic = group.create_topic(6)
    members = [group.start(kind, "first", [topic])]
    group.wait_until_shared(members, topic, 6)
    members += [group.start(kind, name, [topic]) for name in ("second", "third")]
    group.wait_until_each_has(members, 2)
    group.wait_until_shared(members, topic, 6)
    group.crew.wait_until_polled(group.send(topic, 6, 5))
    group.crew.stop(members[0])
    group.wait_until_shared(members[1:], topic, 6)
    group.crew.wait_until_polled(group.send(topic, 6, 5))


def test_members_that_are_killed_are_missed(
    short_sessions: Broker, new_group: Callable[[Broker], Group]
) -> None:
    """One in three of a group of each kind; all die together, so that sessions end together."""
    groups = [new_group(short_sessions) for _ in KINDS]
    topics = [group.create_topic(6) for group in groups]
    left = [
        [group.start(kind, f"{kind} {number}", [topic]) for number in range(2)]
        for group, kind, topic in zip(groups, KINDS, topics, strict=True)
    ]
    victims: list[Member] = []
    for group, kind, topic in zip(groups, KINDS, topics, strict=True):
        # Both protocols of a library run in one process: another Java one is dear.
        beside = next((one for one in victims if one.library == kind.library), None)
        named = f"{kind} victim"
        victims.append(group.start(kind, named, [topic], alone=True, beside=beside))
    for group, topic, others, victim in zip(groups, topics, left, victims, strict=True):
        group.wait_until_each_has([*others, victim], 2)
        group.wait_until_shared([*others, victim], topic, 6)
    for group, victim in zip(groups, victims, strict=True):
        group.kill(victim)
    for group, topic, others in zip(groups, topics, left, strict=True):
        group.crew.wait_until_polled(group.send(topic, 6, 5))
        group.wait_until_shared(others, topic, 6)


@every_kind
def test_ten_members(group: Group, kind: Kind) -> None:
    topic = group.create_topic(12)
    members = [group.start(kind, f"member {number}", [topic]) for number in range(10)]
    group.crew.wait(
        lambda: sorted(len(member.partitions or ()) for member in members) == [1] * 8 + [2] * 2,
        "one or two for each of ten",
    )
    group.wait_until_shared(members, topic, 12)
    group.crew.wait_until_polled(group.send(topic, 12, 3))
    group.crew.stop(*members[:5])
    group.wait_until_shared(members[5:], topic, 12)
    group.crew.wait_until_polled(group.send(topic, 12, 3))


def test_more_members_than_partitions(group: Group) -> None:
    topic = group.create_topic(2)
    members = [group.start(CONFLUENT, f"member {number}", [topic]) for number in range(4)]
    group.crew.wait(
        lambda: (
            sorted(len(member.partitions or ()) for member in members) == [0, 0, 1, 1]
            and all(member.partitions is not None for member in members)
        ),
        "two that have nothing",
    )
    group.crew.wait_until_polled(group.send(topic, 2, 5))
