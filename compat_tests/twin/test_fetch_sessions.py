"""Incremental fetch sessions (KIP-227): what a broker remembers, and what it leaves out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from compat_tests.twin.batches import R, batch
from compat_tests.twin.cases import all_cases
from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation, Pair
from compat_tests.twin.logs import write
from compat_tests.twin.requests import fetch, fetch_partition
from compat_tests.twin.topics import Twin

BY_NAME, BY_ID = 12, 13
FIRST_WITH_SESSIONS = 7

Topics = Mapping[str, Sequence[Plain]]


class Session:
    """A session on both brokers; its id differs, its epochs are the same."""

    def __init__(self, talk: Conversation, version: int, topics: Topics) -> None:
        self.talk = talk
        self.version = version
        self.epoch = 0
        self.opened = self._ask(topics, session_id=0)
        self.epoch = 1

    def ask(self, topics: Topics | None = None, **fields: Any) -> Pair:
        """The next request of the session; without topics nothing has changed."""
        pair = self._ask(topics or {}, **fields)
        self.epoch += 1
        return pair

    def ask_with_epoch(self, epoch: int, topics: Topics | None = None, **fields: Any) -> Pair:
        return self._ask(topics or {}, session_epoch=epoch, **fields)

    def _ask(
        self,
        topics: Topics,
        *,
        session_id: int | None = None,
        forgotten: Mapping[str, Sequence[int]] | None = None,
        version: int | None = None,
        **fields: Any,
    ) -> Pair:
        body = fetch(
            topics,
            forgotten=forgotten,
            session=(lambda side: self.opened[side]["session_id"])
            if session_id is None
            else session_id,
            **{"session_epoch": self.epoch, **fields},
        )
        return self.talk.ask("fetch", self.version if version is None else version, body)


def filled_topic(twin: Twin, talk: Conversation) -> str:
    """Three partitions: a batch in the first and second, nothing in the third."""
    topic = twin.create_topic(partitions=3)
    write(talk, topic, batch(R(b"a"), R(b"b")))
    write(talk, topic, batch(R(b"c")), partition=1)
    return topic


def all_three(offsets: Sequence[int] = (0, 0, 0)) -> list[Plain]:
    return [fetch_partition(index, offset) for index, offset in enumerate(offsets)]


@pytest.mark.every_version("fetch", since=FIRST_WITH_SESSIONS)
def test_only_what_is_new(twin: Twin, talk: Conversation, version: int) -> None:
    topic = filled_topic(twin, talk)
    session = Session(talk, version, {topic: all_three()})
    session.ask()
    session.ask({topic: [fetch_partition(0, 2), fetch_partition(1, 1)]})
    session.ask()
    write(talk, topic, batch(R(b"d")), partition=2)
    session.ask()
    session.ask()
    session.ask({topic: [fetch_partition(2, 1)]})
    write(talk, topic, batch(R(b"e")))
    write(talk, topic, batch(R(b"f")), partition=2)
    session.ask()


@pytest.mark.parametrize("version", [BY_NAME, BY_ID])
def test_partitions_come_and_go(twin: Twin, talk: Conversation, version: int) -> None:
    first, second = filled_topic(twin, talk), filled_topic(twin, talk)
    session = Session(talk, version, {first: [fetch_partition(0)]})
    session.ask({second: [fetch_partition(0)]})
    session.ask({first: [fetch_partition(1)]})
    session.ask(forgotten={first: [0]})
    session.ask()
    session.ask({first: [fetch_partition(0, 1)]}, forgotten={second: [0]})
    session.ask(forgotten={second: [0, 1, 2]})
    session.ask({first: [fetch_partition(0)]}, forgotten={first: [0]})
    session.ask()


@pytest.mark.parametrize("version", [BY_NAME, BY_ID])
def test_everything_forgotten(twin: Twin, talk: Conversation, version: int) -> None:
    """A session without partitions ends."""
    topic = filled_topic(twin, talk)
    session = Session(talk, version, {topic: [fetch_partition(0)]})
    session.ask(forgotten={topic: [0]})
    session.ask({topic: [fetch_partition(0)]})


@pytest.mark.parametrize("version", [BY_NAME, BY_ID])
def test_a_session_of_nothing(talk: Conversation, version: int) -> None:
    session = Session(talk, version, {})
    session.ask()


@pytest.mark.every_version("fetch", since=FIRST_WITH_SESSIONS)
def test_wrong_epochs(twin: Twin, talk: Conversation, version: int) -> None:
    topic = filled_topic(twin, talk)
    session = Session(talk, version, {topic: all_three()})
    session.ask()
    with all_cases() as cases:
        for epoch in (1, 3, 100, 2147483647, -2, -2147483648):
            with cases.case(f"epoch {epoch}"):
                session.ask_with_epoch(epoch)
                session.ask_with_epoch(epoch, {topic: [fetch_partition(0)]})
    session.ask()


@pytest.mark.every_version("fetch", since=FIRST_WITH_SESSIONS)
def test_unknown_sessions(twin: Twin, talk: Conversation, version: int) -> None:
    topic = filled_topic(twin, talk)
    for session in (0, 1, -1, 123456789, 2147000000):
        for epoch in (1, 2, 0, -1, -2):
            body = fetch({topic: [fetch_partition(0)]}, session=session, session_epoch=epoch)
            talk.ask("fetch", version, body)
    talk.ask("fetch", version, fetch({}, session=0, session_epoch=1))


@pytest.mark.parametrize("version", [BY_NAME, BY_ID])
def test_the_largest_session_id(twin: Twin, talk: Conversation, version: int) -> None:
    """Kafka looks for it behind the last part of its cache, and fails."""
    topic = filled_topic(twin, talk)
    body = fetch({topic: [fetch_partition(0)]}, session=2147483647, session_epoch=1)
    talk.ask("fetch", version, body, deviation="D-005")


@pytest.mark.every_version("fetch", since=FIRST_WITH_SESSIONS)
def test_closed_and_opened_anew(twin: Twin, talk: Conversation, version: int) -> None:
    """A full request that names a session ends it: -1 for good, 0 for a new one."""
    topic = filled_topic(twin, talk)
    session = Session(talk, version, {topic: all_three()})
    session.ask_with_epoch(-1, {topic: [fetch_partition(0)]})
    session.ask()
    session = Session(talk, version, {topic: all_three()})
    session.ask_with_epoch(0, {topic: [fetch_partition(1)]})
    session.ask()
    session = Session(talk, version, {topic: all_three()})
    session.ask_with_epoch(-1)
    session.ask()


def test_names_and_ids_do_not_mix(twin: Twin, talk: Conversation) -> None:
    """A session belongs to one kind of versions; the other gets an error of its own."""
    topic = filled_topic(twin, talk)
    for opened, asked in ((BY_NAME, BY_ID), (BY_ID, BY_NAME)):
        session = Session(talk, opened, {topic: [fetch_partition(0)]})
        for topics in ({topic: [fetch_partition(1)]}, {}):
            session.ask_with_epoch(1, topics, version=asked)
            session.ask_with_epoch(2, topics, version=asked)
        session.ask()
        session.ask()


@pytest.mark.parametrize("version", [BY_NAME, BY_ID, 18])
def test_errors_in_a_session(twin: Twin, talk: Conversation, version: int) -> None:
    """A partition with an error is told every time, and once more when the error has gone."""
    topic, unknown = filled_topic(twin, talk), twin.unused_name("unknown")
    asked = {topic: [fetch_partition(0, 99), fetch_partition(7)], unknown: [fetch_partition(0)]}
    session = Session(talk, version, asked)
    session.ask()
    session.ask({topic: [fetch_partition(0, 2)]})
    session.ask()
    session.ask({topic: [fetch_partition(1, current_leader_epoch=5)]})
    session.ask()
    session.ask({topic: [fetch_partition(1, 1, last_fetched_epoch=5)]})
    session.ask({topic: [fetch_partition(1, 1)]})
    session.ask()


@pytest.mark.parametrize("version", [BY_NAME, BY_ID])
def test_limits_in_a_session(twin: Twin, talk: Conversation, version: int) -> None:
    """Partitions that gave data go behind the others, so that none of them starves."""
    topic = twin.create_topic(partitions=3)
    for partition in range(3):
        write(talk, topic, batch(R(bytes(300))), partition=partition)
    session = Session(talk, version, {topic: all_three()})
    for _ in range(5):
        session.ask(max_bytes=100)
    for _ in range(3):
        session.ask(max_bytes=500)


@pytest.mark.parametrize("version", [BY_NAME, BY_ID])
def test_waiting_in_a_session(twin: Twin, talk: Conversation, version: int) -> None:
    topic = twin.create_topic(partitions=3)
    session = Session(talk, version, {topic: all_three()})
    body = fetch(
        {},
        session=lambda side: session.opened[side]["session_id"],
        session_epoch=1,
        max_wait=20_000,
        min_bytes=1,
    )
    talk.send("fetch", version, body)
    with twin.conversation() as producer:
        write(producer, topic, batch(R(b"late")), partition=1)
    talk.receive("fetch", version)
    session.epoch = 2
    session.ask(max_wait=200, min_bytes=10_000)
    session.ask({topic: [fetch_partition(1, 1)]}, max_wait=200, min_bytes=1)


@pytest.mark.parametrize("version", [BY_NAME, BY_ID])
def test_from_two_connections(twin: Twin, talk: Conversation, version: int) -> None:
    """A session belongs to its id, not to a connection."""
    topic = filled_topic(twin, talk)
    session = Session(talk, version, {topic: all_three()})
    with twin.conversation() as another:
        session.talk = another
        session.ask()
    session.talk = talk
    session.ask()


@pytest.mark.parametrize("version", [BY_NAME, BY_ID])
def test_a_topic_deleted_in_a_session(twin: Twin, talk: Conversation, version: int) -> None:
    """And made again: by name it is the new one, by id it stays unknown."""
    topic, other = filled_topic(twin, talk), filled_topic(twin, talk)
    session = Session(talk, version, {topic: all_three(), other: [fetch_partition(0)]})
    talk.ask("delete_topics", 5, {"topic_names": [topic], "timeout": 10_000})
    twin.wait_until_gone(topic)
    session.ask()
    again = {"name": topic, "num_partitions": 3, "replication_factor": 1}
    old_ids = {side.name: side.topic_id(topic) for side in twin.sides}
    talk.ask("create_topics", 7, {"topics": [again], "timeout": 10_000})
    twin.wait_until_led(topic, 3)
    assert all(side.topic_id(topic) != old_ids[side.name] for side in twin.sides)
    session.ask()
    session.ask({topic: [fetch_partition(0)]})
    session.ask()
