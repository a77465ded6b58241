"""OffsetDelete: of topics that nobody in the group reads."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.groups import Group, subscription
from compat_tests.twin.requests import offset_commit, offset_fetch
from compat_tests.twin.topics import Twin


def delete(group: str, *topics: tuple[str, list[int]]) -> Plain:
    return {
        "group_id": group,
        "topics": [
            {"name": name, "partitions": [{"partition_index": index} for index in indexes]}
            for name, indexes in topics
        ],
    }


@pytest.fixture
def topics(twin: Twin, talk: Conversation, group: Group) -> tuple[str, str]:
    """Two topics of two partitions with committed offsets."""
    first, second = twin.create_topic(partitions=2), twin.create_topic(partitions=2)
    every = {0: 1, 1: 2}
    talk.ask("offset_commit", 9, offset_commit(group.id, (first, every), (second, every)))
    return first, second


def fetch_all(talk: Conversation, group: Group) -> None:
    talk.ask("offset_fetch", 9, offset_fetch((group.id, None)))


def test_offsets_of_an_empty_group(
    twin: Twin, talk: Conversation, group: Group, topics: tuple[str, str]
) -> None:
    first, second = topics
    unknown = twin.unused_name("unknown")
    requests: list[list[tuple[str, list[int]]]] = [
        [(first, [0])],
        [(first, [0])],
        [(first, [1, 7, -1]), (unknown, [0, 1])],
        [(second, [])],
        [("", [0])],
        [],
        [(second, [0, 0]), (second, [1])],
    ]
    for one in requests:
        talk.ask("offset_delete", 0, delete(group.id, *one))
        fetch_all(talk, group)
    group.describe()


@pytest.mark.every_version("offset_delete")
def test_groups_that_are_not_there(
    twin: Twin, talk: Conversation, coordinated: Twin, version: int
) -> None:
    topic = twin.create_topic()
    for name in ("", "never heard of"):
        talk.ask("offset_delete", version, delete(name, (topic, [0])))
        talk.ask("offset_delete", version, delete(name))


def test_what_members_subscribe_to_stays(
    talk: Conversation, group: Group, topics: tuple[str, str]
) -> None:
    first, second = topics
    (member,) = group.stable("member", protocols=(("range", subscription(first)),))
    talk.ask("offset_delete", 0, delete(group.id, (first, [0, 1]), (second, [0])))
    fetch_all(talk, group)
    member.leave()
    talk.ask("offset_delete", 0, delete(group.id, (first, [0])))
    fetch_all(talk, group)


@pytest.mark.parametrize(
    "fields",
    [
        {"protocol_type": "connect", "protocols": (("default", b"x"),)},
        {"protocols": (("range", b"x"),)},
    ],
    ids=["not consumers", "consumers who say nothing"],
)
def test_nobody_knows_what_members_read(
    talk: Conversation, group: Group, topics: tuple[str, str], fields: dict[str, Any]
) -> None:
    member = group.member()
    member.enter(**fields)
    kind = {"protocol_type": fields.get("protocol_type", "consumer")}
    talk.ask("offset_delete", 0, delete(group.id, (topics[0], [0])))
    member.sync({member: b"all"}, **kind)
    talk.ask("offset_delete", 0, delete(group.id, (topics[0], [0])))
    fetch_all(talk, group)


def test_while_members_join(talk: Conversation, group: Group, topics: tuple[str, str]) -> None:
    first, second = topics
    leader, follower = group.stable(
        "leader", "follower", protocols=(("range", subscription(first)),)
    )
    leader.send("join_group", leader.joining())
    group.wait_for_state("PreparingRebalance")
    talk.ask("offset_delete", 0, delete(group.id, (first, [0]), (second, [0])))
    follower.send("join_group", follower.joining())
    group.receive_joins(leader, follower)
    talk.ask("offset_delete", 0, delete(group.id, (first, [1]), (second, [1])))
    fetch_all(talk, group)


def test_the_last_offset(talk: Conversation, twin: Twin, group: Group) -> None:
    """A group without members and without offsets is no more."""
    topic = twin.create_topic()
    talk.ask("offset_commit", 9, offset_commit(group.id, (topic, {0: 1})))
    talk.ask("offset_delete", 0, delete(group.id, (topic, [0])))
    fetch_all(talk, group)
    group.describe()
