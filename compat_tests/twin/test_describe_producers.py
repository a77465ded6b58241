"""DescribeProducers: what a partition remembers of who wrote to it."""

from __future__ import annotations

import pytest

from compat_tests.twin.batches import R, batch
from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.logs import write
from compat_tests.twin.topics import Twin

VERSION = 0


def asked(*topics: tuple[str, list[int]]) -> Plain:
    return {"topics": [{"name": topic, "partition_indexes": held} for topic, held in topics]}


def written(producer: int, sequence: int, count: int = 1, epoch: int = 0) -> bytes:
    records = [R(b"x", timestamp_delta=10 * index) for index in range(count)]
    return batch(*records, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)


@pytest.mark.every_version("describe_producers")
def test_producers(twin: Twin, talk: Conversation, version: int) -> None:
    topic = twin.create_topic(partitions=2)
    for records in (
        batch(),
        written(5000, 0, 3),
        written(5000, 3),
        written(5001, 7),
        written(5000, 0, 2, epoch=4),
        written(5002, 2147483646, 3),
    ):
        write(talk, topic, records)
        talk.ask("describe_producers", version, asked((topic, [0, 1])))
    talk.ask("describe_producers", version, asked((topic, [0, 0]), (topic, [1])))


def test_a_duplicate_changes_nothing(twin: Twin, talk: Conversation) -> None:
    topic = twin.create_topic()
    for records in (written(5000, 0), written(5000, 1), written(5000, 0)):
        write(talk, topic, records)
    talk.ask("describe_producers", VERSION, asked((topic, [0])))


def test_what_is_not_there(twin: Twin, talk: Conversation) -> None:
    topic = twin.create_topic(partitions=2)
    unknown = twin.unused_name("unknown")
    for body in (
        asked(),
        asked((topic, [])),
        asked((topic, [0, 1, 7, -1])),
        asked((unknown, [0])),
        asked((unknown, [])),
        asked(("", [0])),
        asked(("a b", [0, 1])),
        asked(("x" * 250, [0])),
        asked(("..", [0])),
        asked(("__cluster_metadata", [0])),
        asked((unknown, [0]), (topic, [0, 9])),
    ):
        talk.ask("describe_producers", VERSION, body)
