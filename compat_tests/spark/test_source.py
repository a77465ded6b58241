"""The source, for what it does alike in batch queries and in streams: each test runs both ways."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from compat_tests.clients.fixtures import MakeTopic
from compat_tests.clients.model import ProducerMode, Record
from compat_tests.clients.raw import CODECS
from compat_tests.spark.connector import (
    DAY_0_MS,
    FAILURES,
    Connector,
    Read,
    cells,
    numbered,
    texts,
)

OLD_OFFSETS = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
"""With this setting the driver is a consumer in a group of its own, not an admin client."""


def test_every_column_comes_back(kafka: Connector, make_topic: MakeTopic, read: Read) -> None:
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
    rows = read(subscribe=topic, includeHeaders=True)
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


def test_every_codec_is_read(kafka: Connector, make_topic: MakeTopic, read: Read) -> None:
    topic = make_topic(len(CODECS))
    for partition, codec in enumerate(CODECS):
        kafka.produce(topic, texts(codec, 100), partition, ProducerMode(codec=codec))
    expected = [cell for p, codec in enumerate(CODECS) for cell in numbered(texts(codec, 100), p)]
    assert cells(read(subscribe=topic)) == expected


def test_topics_are_chosen_by_name_pattern_or_partition(
    kafka: Connector, make_topic: MakeTopic, read: Read
) -> None:
    one, two = make_topic(), make_topic(2)
    kafka.produce(one, ["a"])
    kafka.produce(two, ["b"], 0)
    kafka.produce(two, ["c"], 1)
    stem = one.rpartition("-")[0]
    chosen = [
        read(subscribe=f"{one},{two}"),
        read(subscribePattern=f"{stem}-.*"),
        read(assign={two: [1]}),
    ]
    assert [[bytes(row.value) for row in rows] for rows in chosen] == [
        [b"a", b"b", b"c"],
        [b"a", b"b", b"c"],
        [b"c"],
    ]


def test_where_a_read_starts(kafka: Connector, make_topic: MakeTopic, read: Read) -> None:
    """By offset, where -2 is the earliest and -1 the latest, or at the first that is not older."""
    topic = make_topic(2)
    for partition, name in enumerate("ab"):
        stamped = [Record(f"{name}{n}".encode(), timestamp_ms=DAY_0_MS + 10 * n) for n in range(5)]
        kafka.produce(topic, stamped, partition)
    a, b = numbered(texts("a", 5), 0), numbered(texts("b", 5), 1)
    starts: list[tuple[dict[str, object], int, int]] = [
        ({"startingOffsets": "earliest"}, 0, 0),
        ({"startingOffsets": {topic: {"0": 2, "1": -2}}}, 2, 0),
        ({"startingTimestamp": DAY_0_MS + 9}, 1, 1),
        ({"startingOffsetsByTimestamp": {topic: {"0": DAY_0_MS + 40, "1": DAY_0_MS}}}, 4, 0),
    ]
    for options, first_a, first_b in starts:
        assert cells(read(subscribe=topic, **options)) == a[first_a:] + b[first_b:], options
    assert read(assign={topic: [0]}, startingOffsets={topic: {"0": 5}}) == []


def test_a_timestamp_behind_the_last_record(
    kafka: Connector, make_topic: MakeTopic, read: Read
) -> None:
    """Nothing is that new: an error, or, by the strategy `latest`, the end of the log."""
    topic = make_topic()
    kafka.produce(topic, [Record(b"old", timestamp_ms=DAY_0_MS)])
    later = {"subscribe": topic, "startingTimestamp": DAY_0_MS + 1}
    with pytest.raises(FAILURES, match=r"(?i)no offset"):
        read(**later)
    assert read(**later, startingOffsetsByTimestampStrategy="latest") == []


def test_consumer_settings_reach_the_client(
    kafka: Connector, make_topic: MakeTopic, read: Read
) -> None:
    topic = make_topic()
    kafka.produce(topic, texts("a", 50))
    rows = read(
        subscribe=topic,
        kafka__max__poll__records=7,
        kafka__fetch__max__bytes=200,
        kafka__max__partition__fetch__bytes=100,
        kafkaConsumer__pollTimeoutMs=30_000,
        fetchOffset__numRetries=5,
        fetchOffset__retryIntervalMs=50,
    )
    assert cells(rows) == numbered(texts("a", 50))


def test_group_names_reach_the_broker(
    kafka: Connector, make_topic: MakeTopic, topic_names: Iterator[str], read: Read
) -> None:
    """Spark's tasks assign partitions themselves; a driver of the old way joins its group."""
    topic = make_topic(2)
    for partition in (0, 1):
        kafka.produce(topic, texts("a", 10), partition)
    everything = [cell for p in (0, 1) for cell in numbered(texts("a", 10), p)]
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for option in ("kafka__group__id", "groupIdPrefix"):
        name = next(topic_names)
        named = {"subscribe": topic, option: name}
        assert cells(read(**named)) == everything
        with kafka.setting(OLD_OFFSETS, "true"):
            assert cells(read(**named)) == everything
        groups = [one.group_id for one in admin.list_consumer_groups().result(30).valid]
        (seen,) = [group for group in groups if group.startswith(name)]
        assert (seen == name) == (option == "kafka__group__id")
