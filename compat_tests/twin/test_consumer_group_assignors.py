"""The broker's assignors (KIP-848): who gets what, and which assignor decides."""

from __future__ import annotations

import pytest

from compat_tests.twin.codec import Plain
from compat_tests.twin.consumer_groups import ConsumerGroup


def test_partitions_go_back_when_somebody_leaves(consumer_group: ConsumerGroup) -> None:
    topic = consumer_group.create_topic(partitions=3)
    first, second = consumer_group.member("first"), consumer_group.member("second")
    for member in (first, second):
        member.join([topic])
    first.settle(3, second)
    second.leave()
    consumer_group.describe()
    first.settle(2)
    assert first.assigned == {topic: [0, 1, 2]}
    assert consumer_group.describe()["group_state"] == "Stable"


def test_the_range_assignor(consumer_group: ConsumerGroup) -> None:
    topics = [consumer_group.create_topic(partitions=5), consumer_group.create_topic(partitions=2)]
    first, *others = (consumer_group.member(name) for name in "abc")
    for member in (first, *others):
        member.join(topics, server_assignor="range")
    first.settle(3, *others)
    consumer_group.describe()
    first.beat(subscribed_topic_names=topics[:1])
    first.settle(3, *others)
    assert consumer_group.describe()["group_state"] == "Stable"


@pytest.mark.parametrize("assignor", ["uniform", None])
def test_the_uniform_assignor(consumer_group: ConsumerGroup, assignor: str | None) -> None:
    topic = consumer_group.create_topic(partitions=7)
    first, *others = (consumer_group.member(name) for name in "abcd")
    for member in (first, *others):
        member.join([topic], server_assignor=assignor)
    first.settle(4, *others)
    consumer_group.describe()
    others[0].leave()
    first.settle(4, *others[1:])
    assert consumer_group.describe()["group_state"] == "Stable"


def test_the_uniform_assignor_with_several_topics(consumer_group: ConsumerGroup) -> None:
    """Its order is that of the topic ids, which are chance: what is equal is how many each has."""
    topics = [consumer_group.create_topic(partitions=5), consumer_group.create_topic(partitions=2)]
    members = [consumer_group.member(name) for name in "abc"]
    for member in members:
        member.join(topics, prepare=counted)
    for _ in range(4):
        for member in members:
            member.own(prepare=counted)
    consumer_group.describe(prepare=counted)


def counted(reply: Plain) -> Plain:
    """A reply with the number of partitions instead of the partitions."""
    changed: Plain = {}
    for key, value in reply.items():
        if key == "topic_partitions":
            changed[key] = sum(len(entry["partitions"]) for entry in value)
        elif isinstance(value, dict):
            changed[key] = counted(value)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            changed[key] = [counted(item) for item in value]
        else:
            changed[key] = value
    return changed


def test_the_assignor_is_voted_on(consumer_group: ConsumerGroup) -> None:
    topic = consumer_group.create_topic(partitions=4)
    wishes = {"a": "range", "b": "uniform", "c": "range", "d": None}
    members = {name: consumer_group.member(name) for name in wishes}
    for name, wish in wishes.items():
        members[name].join([topic], server_assignor=wish)
        consumer_group.describe()
    members["c"].leave()
    members["a"].beat(server_assignor="uniform")
    assert consumer_group.describe()["assignor_name"] == "uniform"
