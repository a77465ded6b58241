"""OffsetFetch: of partitions, of all topics, of several groups, and of what is not there."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.twin.cases import all_cases
from compat_tests.twin.codec import ZERO_UUID, Plain
from compat_tests.twin.conversation import Conversation, Side
from compat_tests.twin.groups import Group
from compat_tests.twin.requests import Committed, offset_commit, offset_fetch
from compat_tests.twin.topics import Twin


@pytest.fixture
def committed(twin: Twin, talk: Conversation, group: Group) -> tuple[str, str]:
    """Two topics; of the first one, partitions 0 and 2 of 3 have a committed offset."""
    topic, other = twin.create_topic(partitions=3), twin.create_topic()
    partitions = {0: Committed(5, "metadata", 3), 2: Committed(6, None)}
    talk.ask("offset_commit", 9, offset_commit(group.id, (topic, partitions)))
    return topic, other


@pytest.mark.every_version("offset_fetch")
def test_partitions(
    talk: Conversation, group: Group, committed: tuple[str, str], version: int
) -> None:
    topic, other = committed
    questions: list[dict[str, list[int]]] = [
        {topic: [0]},
        {topic: [2, 1, 0], other: [0]},
        {topic: [0, 0]},
        {topic: [3, -1, 7]},
        {topic: []},
        {},
    ]
    for asked in questions:
        talk.ask("offset_fetch", version, offset_fetch((group.id, asked)))


@pytest.mark.every_version("offset_fetch", since=2)
def test_all_topics(
    talk: Conversation, group: Group, committed: tuple[str, str], version: int
) -> None:
    talk.ask("offset_fetch", version, offset_fetch((group.id, None)))


@pytest.mark.every_version("offset_fetch")
def test_topics_that_are_not_there(
    twin: Twin, talk: Conversation, group: Group, committed: tuple[str, str], version: int
) -> None:
    """Kafka looks only at what was committed; by id it has to know the topic."""
    unknown = twin.unused_name("unknown")
    for asked in ({unknown: [0]}, {unknown: [0, 1], committed[0]: [0]}, {"": [0]}, {"a b": [0]}):
        talk.ask("offset_fetch", version, offset_fetch((group.id, asked)))


@pytest.mark.every_version("offset_fetch")
def test_groups_that_are_not_there(
    twin: Twin, talk: Conversation, group: Group, version: int
) -> None:
    topic = twin.create_topic()
    for name in (group.id, "", "never heard of"):
        talk.ask("offset_fetch", version, offset_fetch((name, {topic: [0]})))
        if version >= 2:
            talk.ask("offset_fetch", version, offset_fetch((name, None)))


@pytest.mark.every_version("offset_fetch", since=7)
def test_stable_offsets(
    talk: Conversation, group: Group, committed: tuple[str, str], version: int
) -> None:
    """No transaction is open, so all offsets are stable."""
    for asked in ({committed[0]: [0, 1, 2]}, None):
        body = offset_fetch((group.id, asked), require_stable=True)
        talk.ask("offset_fetch", version, body)


@pytest.mark.every_version("offset_fetch", since=8)
def test_several_groups(
    twin: Twin, talk: Conversation, group: Group, committed: tuple[str, str], version: int
) -> None:
    topic, other = committed
    second = twin.unused_name("group")
    talk.ask("offset_commit", 9, offset_commit(second, (topic, {1: 11}), (other, {0: 12})))
    for groups in (
        [(group.id, {topic: [0]}), (second, {topic: [1], other: [0]})],
        [(second, None), (group.id, None)],
        [(group.id, None), ("never heard of", {topic: [0]}), ("", {topic: [0]})],
        [(group.id, {topic: [0]}), (group.id, {topic: [1]}), (group.id, None)],
        [],
    ):
        with twin.conversation() as fresh:
            fresh.ask("offset_fetch", version, offset_fetch(*groups))


@pytest.mark.every_version("offset_fetch", since=10)
def test_ids_that_are_not_there(
    talk: Conversation, group: Group, committed: tuple[str, str], version: int
) -> None:
    def body(side: Side) -> Plain:
        ids = [side.topic_id("never created"), side.topic_id(committed[0]), ZERO_UUID]
        topics = [{"topic_id": one, "partition_indexes": [0, 1]} for one in ids]
        return {"groups": [{"group_id": group.id, "topics": topics}]}

    talk.ask("offset_fetch", version, body)


@pytest.mark.every_version("offset_fetch", since=9)
def test_members_of_a_classic_group(
    talk: Conversation, group: Group, committed: tuple[str, str], version: int
) -> None:
    """Only the consumer protocol looks at who asks."""
    group.stable("member")
    asked = (group.id, {committed[0]: [0]})
    fields: list[dict[str, Any]] = [
        {"member_id": "a stranger"},
        {"member_id": "a stranger", "member_epoch": 5},
        {"member_id": "", "member_epoch": 0},
        {"member_epoch": 7},
    ]
    with all_cases() as cases:
        for one in fields:
            with cases.case(str(one)):
                talk.ask("offset_fetch", version, offset_fetch(asked, **one))


def test_a_group_with_members(talk: Conversation, group: Group, committed: tuple[str, str]) -> None:
    """Anybody may ask, whatever the state of the group is."""
    (member,) = group.stable("member")
    body = offset_fetch((group.id, None))
    talk.ask("offset_fetch", 9, body)
    member.leave()
    talk.ask("offset_fetch", 9, body)
