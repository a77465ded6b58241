"""DescribeTopicPartitions: topics page by page (KIP-966)."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.topics import Twin

API = "describe_topic_partitions"
# Behind all other topics of this session, so that a cursor here sees these alone.
STEM = "zz-paged"


def asked(*names: str, cursor: tuple[str, int] | None = None, **fields: Any) -> Plain:
    at = None if cursor is None else {"topic_name": cursor[0], "partition_index": cursor[1]}
    return {"topics": [{"name": name} for name in names], "cursor": at, **fields}


@pytest.fixture(scope="module")
def topics(twin: Twin) -> list[str]:
    """Topics with one, three and two partitions, in the order of their names."""
    return [twin.create_topic(STEM, partitions=count) for count in (1, 3, 2)]


@pytest.mark.every_version(API)
def test_topics(talk: Conversation, topics: list[str], version: int) -> None:
    for names in (topics, topics[::-1], topics[1:2], topics[:1] * 2):
        talk.ask(API, version, asked(*names))


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6, 7, 2000, 2001, 0, -1, -(1 << 31)])
def test_limits(talk: Conversation, topics: list[str], limit: int) -> None:
    talk.ask(API, 0, asked(*topics, response_partition_limit=limit))


@pytest.mark.parametrize("limit", [1, 2, 4])
def test_pages(talk: Conversation, topics: list[str], limit: int) -> None:
    """From cursor to cursor until there is none, and then everything was seen once."""
    seen: list[tuple[str, int]] = []
    cursor: tuple[str, int] | None = None
    for _ in range(10):
        body = asked(*topics, cursor=cursor, response_partition_limit=limit)
        reply = talk.ask(API, 0, body).kafka
        for topic in reply["topics"]:
            seen += [(topic["name"], one["partition_index"]) for one in topic["partitions"]]
        if reply["next_cursor"] is None:
            break
        cursor = (reply["next_cursor"]["topic_name"], reply["next_cursor"]["partition_index"])
    counts = zip(topics, (1, 3, 2), strict=True)
    assert seen == [(topic, index) for topic, count in counts for index in range(count)]


def test_all_topics_behind_a_cursor(talk: Conversation, topics: list[str]) -> None:
    for cursor in ((topics[0], 0), (topics[1], 1), (topics[1], 3), (STEM, 0), ("zzz", 0)):
        for limit in (2, 2000):
            talk.ask(API, 0, asked(cursor=cursor, response_partition_limit=limit))


@pytest.mark.parametrize("index", [0, 1, 2, 3, 100, -1, -(1 << 31)])
def test_cursors_in_a_topic(talk: Conversation, topics: list[str], index: int) -> None:
    talk.ask(API, 0, asked(*topics, cursor=(topics[1], index)))
    talk.ask(API, 0, asked(topics[1], cursor=(topics[1], index)))


def test_a_cursor_at_the_largest_number(talk: Conversation, topics: list[str]) -> None:
    """Kafka adds the limit to it and leaves the range of numbers."""
    body = asked(*topics, cursor=(topics[1], 2147483647))
    talk.ask(API, 0, body, deviation="D-004")


def test_cursors_elsewhere(twin: Twin, talk: Conversation, topics: list[str]) -> None:
    """On topics that were not asked for, that are not there, or that cannot be."""
    first, middle, last = topics
    for cursor in (("a", 0), ("zzz", 0), ("", 0), (STEM, 1), ("a b", 0)):
        talk.ask(API, 0, asked(*topics, cursor=cursor))
    talk.ask(API, 0, asked(first, last, cursor=(middle, 1)))
    talk.ask(API, 0, asked(first, cursor=(last, 0)))


def test_unknown_topics(twin: Twin, talk: Conversation, topics: list[str]) -> None:
    unknown = twin.unused_name("unknown")
    for names in (
        *([unknown], [*topics, unknown], [""], ["a b"], ["x" * 250], [".", topics[0]]),
        *([topics[0], ""], ["", unknown, "a b"]),
    ):
        talk.ask(API, 0, asked(*names))
        talk.ask(API, 0, asked(*names, response_partition_limit=1))
    talk.ask(API, 0, asked(unknown, cursor=(unknown, 0)))
    talk.ask(API, 0, asked("__consumer_offsets", "__cluster_metadata"))
