"""The source in batch queries: which topics, which offsets, which columns, how many tasks."""

from __future__ import annotations

import pytest

from compat_tests.clients.fixtures import MakeTopic
from compat_tests.clients.model import ProducerMode, Record
from compat_tests.clients.raw import CODECS
from compat_tests.spark.connector import FAILURES, Connector, numbered, texts

HOUR_MS = 3_600_000
DAY_0_MS = 1_767_225_600_000
"""2026-01-01 in UTC."""


def test_every_column_comes_back(kafka: Connector, make_topic: MakeTopic) -> None:
    """Headers keep order, doubles and nulls; null keys and tombstones stay null."""
    topic = make_topic(2)
    kafka.produce(
        topic,
        [
            Record(b"v", b"k", (("h", b"1"), ("h", None), ("a", b"")), DAY_0_MS),
            Record(None, b"deleted", (), DAY_0_MS + 1),
            Record(b"", None, (), DAY_0_MS + 2),
        ],
        partition=1,
    )
    rows = kafka.read(subscribe=topic, includeHeaders=True)
    seen = [
        (
            *(row.topic, row.partition, row.offset, row.timestampType),
            *(row.timestamp.timestamp() * 1000, row.key, row.value),
            None if row.headers is None else [(one.key, one.value) for one in row.headers],
        )
        for row in rows
    ]
    headers = [("h", b"1"), ("h", None), ("a", b"")]
    assert seen == [
        (topic, 1, 0, 0, DAY_0_MS, b"k", b"v", headers),
        (topic, 1, 1, 0, DAY_0_MS + 1, b"deleted", None, None),
        (topic, 1, 2, 0, DAY_0_MS + 2, None, b"", None),
    ]
    assert "headers" not in kafka.load(subscribe=topic).columns


def test_every_codec_is_read(kafka: Connector, make_topic: MakeTopic) -> None:
    topic = make_topic(len(CODECS))
    for partition, codec in enumerate(CODECS):
        kafka.produce(topic, texts(codec, 100), partition, ProducerMode(codec=codec))
    expected = [cell for p, codec in enumerate(CODECS) for cell in numbered(texts(codec, 100), p)]
    assert kafka.values(subscribe=topic) == expected


def test_topics_are_chosen_by_name_pattern_or_partition(
    kafka: Connector, make_topic: MakeTopic
) -> None:
    one, two = make_topic(), make_topic(2)
    kafka.produce(one, ["a"])
    kafka.produce(two, ["b"], 0)
    kafka.produce(two, ["c"], 1)
    stem = one.rpartition("-")[0]
    chosen = [
        kafka.read(subscribe=f"{one},{two}"),
        kafka.read(subscribePattern=f"{stem}-.*"),
        kafka.read(assign={two: [1]}),
    ]
    assert [[bytes(row.value) for row in rows] for rows in chosen] == [
        [b"a", b"b", b"c"],
        [b"a", b"b", b"c"],
        [b"c"],
    ]


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
    assert kafka.values(assign={topic: [0]}, startingOffsets={topic: {"0": 6}}) == []
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


def test_a_timestamp_behind_the_last_record(kafka: Connector, make_topic: MakeTopic) -> None:
    """Nothing is that new: an error, or, by the strategy `latest`, the end of the log."""
    topic = make_topic()
    kafka.produce(topic, [Record(b"old", timestamp_ms=DAY_0_MS)])
    later = {"subscribe": topic, "startingTimestamp": DAY_0_MS + 1}
    with pytest.raises(FAILURES, match=r"(?i)no offset"):
        kafka.read(**later)
    assert kafka.read(**later, startingOffsetsByTimestampStrategy="latest") == []


def test_min_partitions_make_more_tasks(kafka: Connector, make_topic: MakeTopic) -> None:
    """maxRecordsPerPartition does nothing in a batch query of Spark 4.2; in streams it does."""
    topic = make_topic()
    kafka.produce(topic, texts("a", 100))
    split = kafka.load(subscribe=topic, minPartitions=4)
    assert split.rdd.getNumPartitions() == 4
    assert split.count() == 100


def test_consumer_settings_and_group_names_reach_the_client(
    kafka: Connector, make_topic: MakeTopic
) -> None:
    """Spark's tasks assign partitions themselves, whatever the group is called."""
    topic = make_topic()
    kafka.produce(topic, texts("a", 50))
    everything = numbered(texts("a", 50))
    assert kafka.values(subscribe=topic, kafka__group__id="mine") == everything
    assert kafka.values(subscribe=topic, groupIdPrefix="ours") == everything
    assert (
        kafka.values(
            subscribe=topic,
            kafka__max__poll__records=7,
            kafka__fetch__max__bytes=200,
            kafka__max__partition__fetch__bytes=100,
            kafkaConsumer__pollTimeoutMs=30_000,
            fetchOffset__numRetries=5,
            fetchOffset__retryIntervalMs=50,
        )
        == everything
    )


def test_a_missing_topic_is_an_error_and_is_not_made(kafka: Connector) -> None:
    for _ in range(2):
        with pytest.raises(FAILURES, match="UnknownTopicOrPartition"):
            kafka.read(subscribe="no-such-topic")
