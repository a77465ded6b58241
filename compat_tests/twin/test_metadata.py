"""Metadata: brokers, topics, partitions, and the creation of topics on the side."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from compat_tests.twin.codec import ZERO_UUID, Plain
from compat_tests.twin.conversation import Conversation, Side
from compat_tests.twin.topics import Twin

INVALID_NAMES = ["", ".", "..", "a/b", "a b", "a\\b", "ä", "x" * 250, "a\x00b", "a:b", "a,b"]


def ask_for(*names: str, create: bool = False, **fields: Any) -> Plain:
    topics = [{"name": name, "topic_id": None} for name in names]
    return {"topics": topics, "allow_auto_topic_creation": create, **fields}


@pytest.mark.every_version("metadata")
def test_a_topic_with_partitions(twin: Twin, talk: Conversation, version: int) -> None:
    topic = twin.create_topic(partitions=3)
    talk.ask("metadata", version, ask_for(topic))


@pytest.mark.every_version("metadata", since=8)
def test_authorized_operations(twin: Twin, talk: Conversation, version: int) -> None:
    topic = twin.create_topic()
    operations = {
        "include_cluster_authorized_operations": True,
        "include_topic_authorized_operations": True,
    }
    talk.ask("metadata", version, ask_for(topic, **operations))


@pytest.mark.every_version("metadata")
def test_all_topics(twin: Twin, talk: Conversation, version: int) -> None:
    """A null list asks for all topics; in version 0, which has no null, an empty one does."""
    twin.create_topic("listed", partitions=2)
    topics: list[Plain] | None = None if version > 0 else []
    talk.ask("metadata", version, {"topics": topics}, prepare=_without_other_tests)


def _without_other_tests(reply: Plain) -> Plain:
    """Topics of this file's making only: others may be about to appear or to go."""
    topics = [topic for topic in reply["topics"] if topic["name"].startswith("listed-")]
    return {**reply, "topics": topics}


@pytest.mark.every_version("metadata", since=1)
def test_no_topics(talk: Conversation, version: int) -> None:
    talk.ask("metadata", version, {"topics": []})


@pytest.mark.every_version("metadata", since=4)
def test_unknown_topic_without_creation(twin: Twin, talk: Conversation, version: int) -> None:
    known, unknown = twin.create_topic(), twin.unused_name("unknown")
    talk.ask("metadata", version, ask_for(unknown, known))
    talk.ask("metadata", version, ask_for(unknown))


@pytest.mark.every_version("metadata")
def test_auto_creation(twin: Twin, talk: Conversation, version: int) -> None:
    """Kafka says UNKNOWN_TOPIC_OR_PARTITION first and creates meanwhile; klamm answers ready."""
    name = twin.unused_name("created")
    talk.ask("metadata", version, ask_for(name, create=True), deviation="D-002")
    twin.wait_until_led(name)
    talk.ask("metadata", version, ask_for(name, create=True))


@pytest.mark.every_version("metadata")
@pytest.mark.parametrize("create", [False, True])
def test_invalid_names(talk: Conversation, version: int, create: bool) -> None:
    for name in INVALID_NAMES:
        talk.ask("metadata", version, ask_for(name, create=create))


@pytest.mark.every_version("metadata")
def test_names_asked_twice(twin: Twin, talk: Conversation, version: int) -> None:
    topic = twin.create_topic()
    talk.ask("metadata", version, ask_for(topic, topic))
    if version >= 4:
        unknown = twin.unused_name("unknown")
        talk.ask("metadata", version, ask_for(unknown, topic, unknown))


@pytest.mark.every_version("metadata")
def test_colliding_name_is_not_created(twin: Twin, talk: Conversation, version: int) -> None:
    """Names that differ only in dots and underscores share metric names, so Kafka refuses."""
    topic = twin.create_topic("a.b_c")
    talk.ask("metadata", version, ask_for(topic.replace(".", "_"), create=True))


@pytest.mark.every_version("metadata", since=10)
def test_by_id(twin: Twin, talk: Conversation, version: int) -> None:
    """Ids are on the wire from version 10, but Kafka takes them in questions from 12."""
    topic = twin.create_topic(partitions=2)

    def by_id(side: Side) -> Plain:
        return {"topics": [{"name": None, "topic_id": side.topic_id(topic)}]}

    def by_both(side: Side) -> Plain:
        return {"topics": [{"name": topic, "topic_id": side.topic_id(topic)}]}

    for body in (by_id, by_both):
        with twin.conversation() as fresh:
            fresh.ask("metadata", version, body)


@pytest.mark.every_version("metadata", since=10)
def test_unknown_ids(twin: Twin, talk: Conversation, version: int) -> None:
    unknown = uuid.UUID("11111111-2222-3333-4444-555555555555")
    topic = twin.create_topic()
    questions: list[list[Plain]] = [
        [{"name": None, "topic_id": unknown}],
        [{"name": None, "topic_id": unknown}, {"name": None, "topic_id": unknown}],
        [{"name": None, "topic_id": ZERO_UUID}],
        [{"name": topic, "topic_id": unknown}],
        [{"name": None, "topic_id": unknown}, {"name": topic, "topic_id": ZERO_UUID}],
    ]
    for topics in questions:
        with twin.conversation() as fresh:
            fresh.ask("metadata", version, {"topics": topics, "allow_auto_topic_creation": False})


@pytest.mark.every_version("metadata", since=4)
def test_a_deleted_topic_is_unknown(twin: Twin, talk: Conversation, version: int) -> None:
    """Versions before 4 would make it again."""
    topic = twin.create_topic()
    talk.ask("delete_topics", 5, {"topic_names": [topic], "timeout": 10_000})
    twin.wait_until_gone(topic)
    talk.ask("metadata", version, ask_for(topic))
