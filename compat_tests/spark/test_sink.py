"""The sink: what reaches the log, by whatever column or option; in batch queries and in streams."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.clients.fixtures import MakeTopic
from compat_tests.clients.librdkafka import ConfluentKafka
from compat_tests.clients.model import Record
from compat_tests.clients.raw import CODECS, stored_batches
from compat_tests.spark.connector import (
    AVAILABLE_NOW,
    FAILURES,
    Connector,
    Write,
    ended,
    numbered,
    texts,
)


def test_every_column_is_written(kafka: Connector, make_topic: MakeTopic, write: Write) -> None:
    """The topic column wins where there is no option; the partition column decides the rest."""
    one, two = make_topic(2), make_topic(2)
    headers = "array<struct<key:string,value:binary>>"
    rows = [
        (one, 1, b"k", b"v", [("h", b"1"), ("h", None)]),
        (two, 0, None, b"", None),
        (two, 1, b"deleted", None, []),
    ]
    schema = f"topic string, partition int, key binary, value binary, headers {headers}"
    write(kafka.spark.createDataFrame(rows, schema), includeHeaders=True)
    client = ConfluentKafka()
    (first,) = client.consume(kafka.bootstrap, one, 1, partitions=(1,))
    assert first.content == (b"k", b"v", (("h", b"1"), ("h", None)))
    second, third = sorted(
        client.consume(kafka.bootstrap, two, 2, partitions=(0, 1)), key=lambda r: r.partition
    )
    assert (second.content, third.content) == ((None, b"", ()), (b"deleted", None, ()))


def test_the_option_wins_over_the_column(
    kafka: Connector, make_topic: MakeTopic, write: Write
) -> None:
    named, chosen = make_topic(), make_topic()
    write(kafka.spark.createDataFrame([(named, "x")], "topic string, value string"), topic=chosen)
    assert [row.topic for row in kafka.read(subscribe=f"{named},{chosen}")] == [chosen]


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_is_written(
    kafka: Connector, make_topic: MakeTopic, write: Write, codec: str
) -> None:
    topic = make_topic()
    frame = kafka.spark.createDataFrame([(text,) for text in texts("a", 200)], "value string")
    write(frame.coalesce(1), topic=topic, kafka__compression__type=codec)
    assert {batch.codec for batch in stored_batches(kafka.bootstrap, topic)} == {codec}
    assert kafka.values(subscribe=topic) == numbered(texts("a", 200))


@pytest.mark.parametrize(("acks", "idempotence"), [("all", "true"), ("1", "false"), ("0", "false")])
def test_producer_settings_reach_the_client(
    kafka: Connector, make_topic: MakeTopic, write: Write, acks: str, idempotence: str
) -> None:
    topic = make_topic()
    frame = kafka.spark.createDataFrame([(text,) for text in texts("a", 20)], "value string")
    write(
        frame.coalesce(1),
        topic=topic,
        kafka__acks=acks,
        kafka__enable__idempotence=idempotence,
        kafka__linger__ms=5,
        kafka__batch__size=200,
    )
    batches = stored_batches(kafka.bootstrap, topic)
    assert all((batch.producer_id >= 0) == (idempotence == "true") for batch in batches)
    assert kafka.values(subscribe=topic) == numbered(texts("a", 20))


def test_a_topic_is_made_by_the_first_write(
    kafka: Connector, topic_names: Iterator[str], write: Write
) -> None:
    topic = next(topic_names)
    write(kafka.spark.createDataFrame([("x",)], "value string"), topic=topic)
    assert kafka.values(subscribe=topic) == [(0, 0, "x")]


def test_a_record_that_is_too_large_fails_the_query(
    kafka: Connector, make_topic: MakeTopic, write: Write
) -> None:
    topic = make_topic(config={"max.message.bytes": "1000"})
    frame = kafka.spark.createDataFrame([("x" * 2000,)], "value string")
    with pytest.raises(FAILURES, match="RecordTooLarge"):
        write(frame, topic=topic)


def test_sums_of_a_stream_are_written(kafka: Connector, make_topic: MakeTopic) -> None:
    """In the mode `complete`: every batch writes all sums again."""
    source, target = make_topic(), make_topic()
    for key in (b"a", b"b"):
        kafka.produce(source, [Record(b"", key)])
        counted = kafka.stream(subscribe=source, startingOffsets="earliest").groupBy("key").count()
        sums = counted.selectExpr("key", "cast(count as string) value")
        ended(kafka.copy(sums, trigger=AVAILABLE_NOW, output_mode="complete", topic=target))
    rows = [(bytes(row.key), bytes(row.value)) for row in kafka.read(subscribe=target)]
    assert rows[0] == (b"a", b"1")
    assert sorted(rows[1:]) == [(b"a", b"1"), (b"b", b"1")]
