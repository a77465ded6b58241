"""DeleteTopics, by name and by id."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from compat_tests.twin.codec import ZERO_UUID, Plain
from compat_tests.twin.conversation import Conversation, Side
from compat_tests.twin.topics import Twin

UNKNOWN_ID = uuid.UUID("11111111-2222-3333-4444-555555555555")


def delete(*names: str) -> Plain:
    """By name in the form of every version: a list of names, from 6 on a list of topics."""
    return {
        "topic_names": list(names),
        "topics": [{"name": name, "topic_id": ZERO_UUID} for name in names],
        "timeout": 10_000,
    }


@pytest.mark.every_version("delete_topics")
def test_by_name(twin: Twin, talk: Conversation, version: int) -> None:
    name, other = twin.create_topic(), twin.create_topic()
    talk.ask("delete_topics", version, delete(name))
    twin.wait_until_gone(name)
    talk.ask("delete_topics", version, delete(name, other))
    twin.wait_until_gone(other)


@pytest.mark.every_version("delete_topics")
def test_names_that_cannot_be(twin: Twin, talk: Conversation, version: int) -> None:
    name = twin.create_topic()
    for names in (
        [],
        [twin.unused_name("unknown")],
        [""],
        ["a b"],
        [name, name],
        ["unknown", "unknown"],
        ["__cluster_metadata"],
    ):
        with twin.conversation() as fresh:
            fresh.ask("delete_topics", version, delete(*names))


@pytest.mark.every_version("delete_topics")
def test_no_time(twin: Twin, talk: Conversation, version: int) -> None:
    """A negative time is over before anything could be done in it."""
    name = twin.create_topic()
    for names in ([name], [name, twin.unused_name("unknown")], []):
        talk.ask("delete_topics", version, {**delete(*names), "timeout": -1})
    talk.ask("metadata", 12, {"topics": [{"name": name}]})


def _by_id(*topics: str) -> Callable[[Side], Plain]:
    def body(side: Side) -> Plain:
        ids = [side.topic_id(name) for name in topics]
        return {"topics": [{"name": None, "topic_id": one} for one in ids], "timeout": 10_000}

    return body


@pytest.mark.every_version("delete_topics", since=6)
def test_by_id(twin: Twin, talk: Conversation, version: int) -> None:
    name = twin.create_topic()
    talk.ask("delete_topics", version, _by_id(name))
    twin.wait_until_gone(name)
    talk.ask("delete_topics", version, _by_id(name))


@pytest.mark.every_version("delete_topics", since=6)
def test_ids_that_cannot_be(twin: Twin, talk: Conversation, version: int) -> None:
    name, other = twin.create_topic(), twin.create_topic()

    def with_name(topic: str, topic_id: uuid.UUID | None) -> Callable[[Side], Plain]:
        def body(side: Side) -> Plain:
            chosen = side.topic_id(name) if topic_id is None else topic_id
            return {"topics": [{"name": topic, "topic_id": chosen}], "timeout": 10_000}

        return body

    def name_and_id_apart(side: Side) -> Plain:
        both = [
            {"name": name, "topic_id": ZERO_UUID},
            {"name": None, "topic_id": side.topic_id(name)},
        ]
        return {"topics": both, "timeout": 10_000}

    empty = {"topics": [{"name": None, "topic_id": ZERO_UUID}], "timeout": 10_000}
    unknown = {"topics": [{"name": None, "topic_id": UNKNOWN_ID}], "timeout": 10_000}
    bodies: list[Plain | Callable[[Side], Plain]] = [
        with_name(name, None),
        with_name(other, None),
        with_name(name, UNKNOWN_ID),
        name_and_id_apart,
        _by_id(name, name),
        {"topics": [{"name": None, "topic_id": UNKNOWN_ID}] * 2, "timeout": 10_000},
        empty,
        unknown,
    ]
    for body in bodies:
        with twin.conversation() as fresh:
            fresh.ask("delete_topics", version, body)
    talk.ask("metadata", 12, {"topics": [{"name": name}, {"name": other}]})


def test_made_again_under_the_same_name(twin: Twin, talk: Conversation) -> None:
    """The topic is another one: with another id, empty, and its epoch starts at zero again."""
    name = twin.create_topic(partitions=2)
    talk.ask("delete_topics", 6, delete(name))
    twin.wait_until_gone(name)
    again = {"name": name, "num_partitions": 1, "replication_factor": 1}
    talk.ask("create_topics", 7, {"topics": [again], "timeout": 10_000})
    twin.wait_until_led(name)
    talk.ask("metadata", 12, {"topics": [{"name": name}]})
