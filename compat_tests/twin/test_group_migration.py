"""A group changes between the classic and the consumer protocol while it has members."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest

from compat_tests.twin.consumer_groups import ConsumerGroup
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.groups import Group, Member, subscription
from compat_tests.twin.requests import commit_topics, offset_fetch

SESSION = {"session_timeout": 45_000}


def assignment(topic: str, *partitions: int) -> bytes:
    """What a leader gives a consumer, as Kafka's own encode it (version 0)."""
    numbers = struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)
    name = struct.pack(">h", len(topic)) + topic.encode()
    topics = struct.pack(">i", 1) + name + numbers if partitions else struct.pack(">i", 0)
    return struct.pack(">h", 0) + topics + struct.pack(">i", -1)


@pytest.fixture
def consumer_group(group: Group) -> Iterator[ConsumerGroup]:
    """The same group, for members of the other protocol."""
    made = ConsumerGroup(group.twin, group.id)
    yield made
    made.close()


def joined(group: Group, topic: str, *partitions: int) -> Member:
    """A classic member that has the whole topic."""
    member = group.member("classic")
    member.enter(protocols=(("range", subscription(topic)),), **SESSION)
    member.sync({member: assignment(topic, *partitions)})
    return member


def described(talk: Conversation, group: Group) -> None:
    talk.ask("consumer_group_describe", 1, {"group_ids": [group.id]})
    talk.ask("describe_groups", 6, {"groups": [group.id]})


def test_a_consumer_joins_a_classic_group(
    talk: Conversation, group: Group, consumer_group: ConsumerGroup
) -> None:
    """The group is converted, and the classic member is asked to join again by its heartbeat."""
    topic = consumer_group.create_topic(partitions=2)
    classic = joined(group, topic, 0, 1)
    classic.commit(commit_topics((topic, {0: 5, 1: 6})))
    modern = consumer_group.member("modern")
    modern.join([topic])
    described(talk, group)
    classic.heartbeat()
    classic.commit(commit_topics((topic, {0: 7})))
    classic.join(protocols=(("range", owned(topic, 0)),), **SESSION)
    classic.sync()
    described(talk, group)
    modern.beat()
    classic.heartbeat()
    modern.own()
    described(talk, group)
    talk.ask("offset_fetch", 9, offset_fetch((group.id, None)))
    classic.leave()
    described(talk, group)
    modern.beat()
    modern.own()
    modern.beat()
    described(talk, group)
    modern.leave()
    described(talk, group)


def owned(topic: str, *partitions: int) -> bytes:
    """A subscription that says what its member owns, as cooperative consumers do (version 1)."""
    head = subscription(topic)[2:]
    numbers = struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)
    name = struct.pack(">h", len(topic)) + topic.encode()
    return struct.pack(">h", 1) + head + struct.pack(">i", 1) + name + numbers


def test_a_classic_member_joins_a_consumer_group(
    talk: Conversation, group: Group, consumer_group: ConsumerGroup
) -> None:
    topic = consumer_group.create_topic(partitions=2)
    modern = consumer_group.member("modern")
    modern.join([topic])
    modern.own()
    classic = group.member("classic")
    protocols = (("range", owned(topic)),)
    for _ in range(2):
        classic.join(protocols=protocols, **SESSION)
    classic.sync()
    described(talk, group)
    modern.beat()
    modern.own()
    classic.heartbeat()
    classic.join(protocols=protocols, **SESSION)
    classic.sync()
    described(talk, group)
    classic.commit(commit_topics((topic, {1: 3})))
    modern.commit(commit_topics((topic, {0: 4})))
    talk.ask("offset_fetch", 9, offset_fetch((group.id, None)))


def test_the_last_consumer_leaves(
    talk: Conversation, group: Group, consumer_group: ConsumerGroup
) -> None:
    """What is left are classic members, so the group is classic again."""
    topic = consumer_group.create_topic(partitions=2)
    modern = consumer_group.member("modern")
    modern.join([topic])
    modern.own()
    classic = group.member("classic")
    for _ in range(2):
        classic.join(protocols=(("range", owned(topic)),), **SESSION)
    classic.sync()
    modern.leave()
    described(talk, group)
    classic.heartbeat()
    classic.join(protocols=(("range", owned(topic)),), **SESSION)
    classic.sync({classic: assignment(topic, 0, 1)})
    described(talk, group)


def test_an_empty_classic_group_becomes_a_consumer_group(
    talk: Conversation, group: Group, consumer_group: ConsumerGroup
) -> None:
    """Its offsets stay."""
    topic = consumer_group.create_topic(partitions=2)
    classic = joined(group, topic, 0, 1)
    classic.commit(commit_topics((topic, {0: 5, 1: 6})))
    classic.leave()
    modern = consumer_group.member("modern")
    modern.join([topic])
    described(talk, group)
    talk.ask("offset_fetch", 9, offset_fetch((group.id, None)))
    modern.leave()
    described(talk, group)
    joined(group, topic, 0, 1)
    described(talk, group)
    talk.ask("offset_fetch", 9, offset_fetch((group.id, None)))


@pytest.mark.parametrize(
    "fields",
    [
        {"protocol_type": "connect", "protocols": (("default", b"x"),)},
        {"protocol_type": "connect", "protocols": (("range", subscription("a")),)},
    ],
    ids=["another assignor", "the same assignor"],
)
def test_groups_that_cannot_be_converted(
    talk: Conversation,
    group: Group,
    consumer_group: ConsumerGroup,
    fields: dict[str, Any],
) -> None:
    topic = consumer_group.create_topic()
    classic = group.member("classic")
    classic.enter(**fields)
    kind = {"protocol_type": fields.get("protocol_type", "consumer")}
    classic.sync({classic: b"not an assignment"}, **kind)
    modern = consumer_group.member("modern")
    modern.join([topic])
    described(talk, group)
    classic.heartbeat()


@pytest.mark.parametrize("metadata", [b"x", subscription()], ids=["both", "the assignment"])
def test_what_a_member_said_cannot_be_read(
    talk: Conversation, group: Group, consumer_group: ConsumerGroup, metadata: bytes
) -> None:
    """Kafka has an error for that, but looks in the wrong place when it happens."""
    topic = consumer_group.create_topic()
    classic = group.member("classic")
    classic.enter(protocols=(("range", metadata),))
    classic.sync({classic: b"not an assignment"})
    consumer_group.member("modern").join([topic], deviation="D-018")
    described(talk, group)
    classic.heartbeat()


def test_members_that_do_not_fit_into_a_consumer_group(
    talk: Conversation, group: Group, consumer_group: ConsumerGroup
) -> None:
    topic = consumer_group.create_topic()
    modern = consumer_group.member("modern")
    modern.join([topic])
    modern.own()
    unlike: list[dict[str, Any]] = [
        {"protocol_type": "connect", "protocols": (("default", b"x"),)},
        {"protocols": (("range", b"x"),)},
        {"protocols": ()},
        {"session_timeout": 1},
    ]
    for number, fields in enumerate(unlike):
        member = group.member(f"classic {number}")
        for _ in range(2):
            member.join(**fields)
    described(talk, group)


def test_requests_of_the_wrong_protocol(
    talk: Conversation, group: Group, consumer_group: ConsumerGroup
) -> None:
    """A member of one protocol is unknown, or not allowed, in the other one."""
    topic = consumer_group.create_topic()
    modern = consumer_group.member("modern")
    modern.join([topic])
    stranger = group.member("stranger")
    stranger.heartbeat(member_id="modern", generation_id=modern.epoch)
    stranger.sync({}, member_id="modern", generation_id=modern.epoch)
    stranger.leave(members=[{"member_id": "a stranger"}])
    stranger.leave(members=[{"member_id": "modern"}])
    described(talk, group)
    modern.beat()
