"""What only batch queries have: an end of the offsets, and their own way to make tasks."""

from __future__ import annotations

import pytest

from compat_tests.clients.fixtures import MakeTopic
from compat_tests.clients.model import Record
from compat_tests.spark.connector import DAY_0_MS, FAILURES, Connector, numbered, texts

HOUR_MS = 3_600_000


def test_offsets_by_json(kafka: Connector, make_topic: MakeTopic) -> None:
    """-2 is the earliest offset, -1 the latest, in both directions."""
    topic = make_topic(2)
    kafka.produce(topic, texts("a", 6), 0)
    kafka.produce(topic, texts("b", 6), 1)
    between = kafka.values(
        subscribe=topic,
        startingOffsets={topic: {"0": 2, "1": -2}},
        endingOffsets={topic: {"0": -1, "1": 3}},
    )
    assert between == numbered(texts("a", 6), 0)[2:] + numbered(texts("b", 6), 1)[:3]
    assert kafka.values(
        subscribe=topic, startingOffsets="earliest", endingOffsets="latest"
    ) == numbered(texts("a", 6), 0) + numbered(texts("b", 6), 1)


def test_offsets_by_timestamp(kafka: Connector, make_topic: MakeTopic) -> None:
    """From the first record that is not older; the end is exclusive."""
    topic = make_topic(2)
    for partition, name in enumerate("ab"):
        stamped = [
            Record(f"{name}{hour}".encode(), timestamp_ms=DAY_0_MS + hour * HOUR_MS)
            for hour in range(5)
        ]
        kafka.produce(topic, stamped, partition)
    a, b = numbered(texts("a", 5), 0), numbered(texts("b", 5), 1)
    assert (
        kafka.values(
            subscribe=topic,
            startingTimestamp=DAY_0_MS + HOUR_MS - 1,
            endingTimestamp=DAY_0_MS + 3 * HOUR_MS,
        )
        == a[1:3] + b[1:3]
    )
    assert (
        kafka.values(
            subscribe=topic,
            startingOffsetsByTimestamp={topic: {"0": DAY_0_MS + 4 * HOUR_MS, "1": DAY_0_MS}},
            endingOffsetsByTimestamp={topic: {"0": DAY_0_MS + 99 * HOUR_MS, "1": DAY_0_MS + 1}},
        )
        == a[4:] + b[:1]
    )


def test_one_partition_becomes_many_tasks(kafka: Connector, make_topic: MakeTopic) -> None:
    """In a batch query of Spark 4.2 maxRecordsPerPartition needs minPartitions beside it."""
    topic = make_topic()
    kafka.produce(topic, texts("a", 100))
    for options, tasks in (
        ({"minPartitions": 4}, 4),
        ({"minPartitions": 2, "maxRecordsPerPartition": 10}, 10),
    ):
        split = kafka.load(subscribe=topic, **options)
        assert split.rdd.getNumPartitions() == tasks
        assert split.count() == 100


def test_a_missing_topic_is_an_error_and_is_not_made(kafka: Connector) -> None:
    for _ in range(2):
        with pytest.raises(FAILURES, match="UnknownTopicOrPartition"):
            kafka.read(subscribe="no-such-topic")
