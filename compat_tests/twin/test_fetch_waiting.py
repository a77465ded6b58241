"""Fetches that wait: until there is enough, something changes, or their time is up."""

from __future__ import annotations

import pytest

from compat_tests.twin.batches import R, batch
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.logs import write
from compat_tests.twin.requests import fetch, fetch_partition
from compat_tests.twin.topics import Twin

LONG_MS = 20_000
SHORT_MS = 300
# What is left of it, at the least, when the requests have been sent.
SHORT_S = 0.2
NEWEST = 18


def is_waiting(talk: Conversation) -> bool:
    """Neither broker answers for a while."""
    return all(talk.connection(side).is_silent(0.1) for side in talk.sides)


@pytest.mark.parametrize("version", [4, 7, 12, 13, NEWEST])
def test_woken_by_a_batch(twin: Twin, talk: Conversation, version: int) -> None:
    topic = twin.create_topic()
    talk.send(
        *("fetch", version),
        fetch({topic: [fetch_partition()]}, max_wait=LONG_MS, min_bytes=1),
    )
    assert is_waiting(talk)
    with twin.conversation() as producer:
        write(producer, topic, batch(R(b"first")))
    talk.receive("fetch", version)


@pytest.mark.parametrize("version", [4, NEWEST])
def test_woken_when_there_is_enough(twin: Twin, talk: Conversation, version: int) -> None:
    """Bytes count together over all partitions of the request."""
    topic = twin.create_topic(partitions=2)
    piece = batch(R(bytes(100)))
    asked = [fetch_partition(0), fetch_partition(1)]
    with twin.conversation() as producer:
        write(producer, topic, piece)
        body = fetch({topic: asked}, max_wait=LONG_MS, min_bytes=2 * len(piece) + 1)
        talk.send("fetch", version, body)
        assert is_waiting(talk)
        write(producer, topic, piece, partition=1)
        assert is_waiting(talk)
        write(producer, topic, piece)
    talk.receive("fetch", version)


@pytest.mark.parametrize("version", [4, 7, 12, 13, NEWEST])
def test_time_is_up(twin: Twin, talk: Conversation, version: int) -> None:
    """What is there by then comes, even when it is less than the minimum."""
    topic = twin.create_topic(partitions=2)
    with twin.conversation() as producer:
        write(producer, topic, batch(R(b"little")))
    asked = [fetch_partition(0), fetch_partition(1)]
    talk.send("fetch", version, fetch({topic: asked}, max_wait=SHORT_MS, min_bytes=10_000))
    assert talk.first_reply_s() >= SHORT_S
    talk.receive("fetch", version)


def test_a_minimum_above_the_partition_limit(twin: Twin, talk: Conversation) -> None:
    """The first batch comes whole and may be enough. (Kafka waits for its time to be up when the
    batch came later, because it then counts no more than the limit; the answer is the same.)"""
    topic = twin.create_topic()
    with twin.conversation() as producer:
        write(producer, topic, batch(R(bytes(500))))
        asked = fetch_partition(partition_max_bytes=100)
        body = fetch({topic: [asked]}, max_wait=LONG_MS, min_bytes=300)
        talk.ask("fetch", NEWEST, body)
        end = fetch_partition(0, 1, partition_max_bytes=100)
        talk.send("fetch", NEWEST, fetch({topic: [end]}, max_wait=1_000, min_bytes=150))
        write(producer, topic, batch(R(bytes(500))))
    talk.receive("fetch", NEWEST)


@pytest.mark.parametrize("isolation_level", [0, 1])
def test_read_committed_waits_as_well(twin: Twin, talk: Conversation, isolation_level: int) -> None:
    topic = twin.create_topic()
    talk.send(
        *("fetch", NEWEST),
        fetch(
            {topic: [fetch_partition()]},
            max_wait=LONG_MS,
            min_bytes=1,
            isolation_level=isolation_level,
        ),
    )
    assert is_waiting(talk)
    with twin.conversation() as producer:
        write(producer, topic, batch())
    talk.receive("fetch", NEWEST)


@pytest.mark.parametrize("version", [12, 13, NEWEST])
def test_errors_do_not_wait(twin: Twin, talk: Conversation, version: int) -> None:
    topic, unknown = twin.create_topic(), twin.unused_name("unknown")
    for topics in (
        {topic: [fetch_partition(0, 5)]},
        {topic: [fetch_partition(1)], unknown: [fetch_partition(0)]},
        {topic: [fetch_partition(0, current_leader_epoch=3)]},
        {topic: [fetch_partition(0, last_fetched_epoch=3)]},
    ):
        talk.ask("fetch", version, fetch(topics, max_wait=LONG_MS, min_bytes=1))


@pytest.mark.parametrize("version", [12, 13, NEWEST])
def test_unknown_partitions_wait_with_the_others(
    twin: Twin, talk: Conversation, version: int
) -> None:
    topic, unknown = twin.create_topic(), twin.unused_name("unknown")
    for topics in (
        {topic: [fetch_partition(0), fetch_partition(1)]},
        {unknown: [fetch_partition(0)], topic: [fetch_partition(0)]},
    ):
        talk.send("fetch", version, fetch(topics, max_wait=SHORT_MS, min_bytes=1))
        assert talk.first_reply_s() >= SHORT_S
        talk.receive("fetch", version)


@pytest.mark.parametrize("version", [12, 13, NEWEST])
def test_a_topic_deleted_meanwhile(twin: Twin, talk: Conversation, version: int) -> None:
    topic = twin.create_topic()
    body = fetch({topic: [fetch_partition()]}, max_wait=LONG_MS, min_bytes=1)
    talk.send("fetch", version, body)
    assert is_waiting(talk)
    with twin.conversation() as other:
        other.ask("delete_topics", 5, {"topic_names": [topic], "timeout": 10_000})
    talk.receive("fetch", version)


def test_requests_behind_a_waiting_fetch(twin: Twin, talk: Conversation) -> None:
    """Replies keep the order of requests: the second comes when the first has been answered."""
    topic = twin.create_topic()
    body = fetch({topic: [fetch_partition()]}, max_wait=SHORT_MS, min_bytes=1)
    talk.send("fetch", NEWEST, body)
    talk.send("metadata", 12, {"topics": []})
    assert talk.first_reply_s() >= SHORT_S
    talk.receive("fetch", NEWEST, correlation_id=1)
    talk.receive("metadata", 12, correlation_id=2)
