"""Who gets what is decided by the clients' assignors, or by the broker's in the new protocol."""

from __future__ import annotations

import pytest

from compat_tests.groups.crew import Member
from compat_tests.groups.group import Group
from compat_tests.groups.kinds import Kind

ASSIGNORS = [
    *(Kind("confluent-kafka", assignor=one) for one in ("roundrobin", "cooperative-sticky")),
    *(Kind("kafka-python", assignor=one) for one in ("roundrobin", "sticky")),
    Kind("kafka-python", assignor="cooperative-sticky"),
    *(Kind("java", assignor=one) for one in ("roundrobin", "sticky", "cooperative-sticky")),
    Kind("confluent-kafka", "consumer", "uniform"),
    Kind("java", "consumer", "uniform"),
]
RANGES = [
    Kind("confluent-kafka"),
    Kind("kafka-python"),
    Kind("java"),
    Kind("confluent-kafka", "consumer"),
    Kind("java", "consumer"),
]


def sizes(*members: Member) -> list[int]:
    return sorted(len(member.partitions or ()) for member in members)


@pytest.mark.parametrize("kind", RANGES, ids=str)
def test_ranges_are_taken_topic_by_topic(group: Group, kind: Kind) -> None:
    """The first member gets the larger half of each topic, so it has more in all."""
    topics = [group.create_topic(3), group.create_topic(3)]
    first, second = (group.start(kind, name, topics) for name in ("first", "second"))
    group.crew.wait(lambda: sizes(first, second) == [2, 4], "ranges of two topics")
    for member in (first, second):
        assert member.partitions is not None
        halves = [
            {number for name, number in member.partitions if name == topic} for topic in topics
        ]
        assert halves[0] == halves[1]


@pytest.mark.parametrize("kind", ASSIGNORS, ids=str)
def test_shares_are_equal(group: Group, kind: Kind) -> None:
    topics = [group.create_topic(3), group.create_topic(3)]
    first, second = (group.start(kind, name, topics) for name in ("first", "second"))
    group.crew.wait(lambda: sizes(first, second) == [3, 3], "halves")
    before = {member.name: member.partitions or frozenset() for member in (first, second)}
    seen = {member.name: len(member.seen) for member in (first, second)}

    third = group.start(kind, "third", topics)
    group.crew.wait(lambda: sizes(first, second, third) == [2, 2, 2], "thirds")
    if kind.assignor == "roundrobin":
        return
    for member in (first, second):
        kept = member.partitions or frozenset()
        assert kept < before[member.name], "a sticky assignor leaves what need not move"
        if kind.assignor != "sticky":
            later = member.seen[seen[member.name] :]
            assert all(kept <= one for one in later), "what stays is never given away meanwhile"
