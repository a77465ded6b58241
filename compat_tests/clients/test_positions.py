"""Consumers choose where to read: by offset, by time, from both ends, from inside a batch."""

from __future__ import annotations

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, TopicPartition

from compat_tests.clients import kafka_python, librdkafka, raw
from compat_tests.clients.fixtures import Broker, ClientNamed, MakeTopic
from compat_tests.clients.java_client import JavaError
from compat_tests.clients.kcat import kcat
from compat_tests.clients.model import Client, Positions, ProducerMode, Record
from compat_tests.clients.test_round_trip import CODECS

FIRST_MS = 1_700_000_000_000
STEP_MS = 1_000


def timed(timestamps_ms: list[int]) -> list[Record]:
    """One record for each timestamp, long enough to be compressed."""
    return [
        Record(f"record {number} ".encode() * 10, timestamp_ms=timestamp_ms)
        for number, timestamp_ms in enumerate(timestamps_ms)
    ]


@pytest.mark.parametrize("codec", CODECS)
def test_reading_starts_inside_a_batch(
    broker: Broker, make_topic: MakeTopic, client_named: ClientNamed, client: Client, codec: str
) -> None:
    topic = make_topic()
    records = timed([FIRST_MS + number for number in range(30)])
    client_named("kafka-python").produce(
        broker.bootstrap, topic, records, mode=ProducerMode(codec=codec)
    )
    (batch,) = raw.stored_batches(broker.bootstrap, topic)
    assert (batch.record_count, batch.codec) == (30, codec)
    for start in (1, 17, 29):
        read = client.consume(broker.bootstrap, topic, 30 - start, start=start)
        assert [one.offset for one in read] == list(range(start, 30))
        assert [one.value for one in read] == [one.value for one in records[start:]]


def test_the_broker_answers_with_the_whole_batch_around_an_offset(
    broker: Broker, make_topic: MakeTopic, client_named: ClientNamed
) -> None:
    topic = make_topic()
    client_named("confluent-kafka").produce(
        broker.bootstrap, topic, timed([FIRST_MS + number for number in range(30)])
    )
    assert raw.stored_batches(broker.bootstrap, topic, offset=29)[0].base_offset == 0


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_offsets_by_time(
    broker: Broker, make_topic: MakeTopic, client_named: ClientNamed, client: Client, codec: str
) -> None:
    topic = make_topic()
    mode = ProducerMode(codec=codec)
    writer = client_named("confluent-kafka")
    # Three batches; inside the second one time runs backwards.
    batches = (
        [FIRST_MS + number * STEP_MS for number in range(10)],
        [FIRST_MS + number * STEP_MS for number in (19, 18, 17, 16, 15, 14, 13, 12, 11, 10)],
        [FIRST_MS + number * STEP_MS for number in range(20, 30)],
    )
    for timestamps_ms in batches:
        writer.produce(broker.bootstrap, topic, timed(timestamps_ms), mode=mode)
    assert len(raw.stored_batches(broker.bootstrap, topic)) == 3

    asked = {
        0: 0,
        FIRST_MS: 0,
        FIRST_MS + 1: 1,
        FIRST_MS + 4 * STEP_MS: 4,
        FIRST_MS + 4 * STEP_MS + 1: 5,
        FIRST_MS + 9 * STEP_MS + 1: 10,
        FIRST_MS + 15 * STEP_MS: 10,
        FIRST_MS + 19 * STEP_MS + 1: 20,
        FIRST_MS + 29 * STEP_MS: 29,
        FIRST_MS + 29 * STEP_MS + 1: None,
    }
    found = client.positions(broker.bootstrap, topic, list(asked))
    assert found == Positions(0, 30, list(asked.values()))


def test_an_empty_topic_begins_and_ends_at_zero(
    broker: Broker, make_topic: MakeTopic, client: Client
) -> None:
    topic = make_topic()
    assert client.positions(broker.bootstrap, topic, [0]) == Positions(0, 0, [None])


def test_confluent_seeks_while_it_reads(
    broker: Broker, make_topic: MakeTopic, client_named: ClientNamed
) -> None:
    topic = make_topic()
    records = timed([FIRST_MS + number for number in range(50)])
    client_named("confluent-kafka").produce(broker.bootstrap, topic, records)
    consumer = Consumer(librdkafka.consumer_settings(broker.bootstrap))
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        assert librdkafka.read_messages(consumer, 1)[0].offset() == 0
        for offset in (40, 3, 49):
            consumer.seek(TopicPartition(topic, 0, offset))
            assert librdkafka.read_messages(consumer, 1)[0].offset() == offset
        consumer.assign([TopicPartition(topic, 0, OFFSET_END)])
        assert consumer.poll(0.5) is None
    finally:
        consumer.close()


def test_kafka_python_seeks_while_it_reads(
    broker: Broker, make_topic: MakeTopic, client_named: ClientNamed
) -> None:
    topic = make_topic()
    records = timed([FIRST_MS + number for number in range(50)])
    client_named("kafka-python").produce(broker.bootstrap, topic, records)
    consumer = kafka_python.KafkaConsumer(**kafka_python.consumer_settings(broker.bootstrap))
    try:
        where = kafka_python.TopicPartition(topic, 0)
        consumer.assign([where])
        consumer.seek_to_beginning(where)
        assert kafka_python.read_messages(consumer, 1)[0].offset == 0
        for offset in (40, 3, 49):
            consumer.seek(where, offset)
            assert kafka_python.read_messages(consumer, 1)[0].offset == offset
        consumer.seek_to_end(where)
        assert consumer.position(where) == 50
    finally:
        consumer.close()


@pytest.mark.parametrize(
    ("position", "offsets"),
    [
        ("beginning", range(20)),
        ("-3", range(17, 20)),
        ("12", range(12, 20)),
        (f"s@{FIRST_MS + 5 * STEP_MS}", range(5, 20)),
    ],
    ids=["beginning", "last three", "offset", "time"],
)
def test_kcat_knows_many_ways_to_begin(
    broker: Broker,
    make_topic: MakeTopic,
    client_named: ClientNamed,
    position: str,
    offsets: range,
) -> None:
    topic = make_topic()
    records = timed([FIRST_MS + number * STEP_MS for number in range(20)])
    client_named("confluent-kafka").produce(broker.bootstrap, topic, records)
    where = ("-t", topic, "-p", "0", "-o", position)
    done = kcat("-C", "-b", broker.bootstrap, *where, "-e", "-q", "-f", "%o\n")
    assert done.stdout.decode().split() == [str(offset) for offset in offsets]


def test_confluent_learns_that_an_offset_is_out_of_range(
    broker: Broker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    consumer = Consumer(librdkafka.consumer_settings(broker.bootstrap))
    try:
        consumer.assign([TopicPartition(topic, 0, 5)])
        message = consumer.poll(30)
        assert message is not None
        error = message.error()
        assert error is not None
        assert error.code() == KafkaError._AUTO_OFFSET_RESET
        assert "Offset out of range" in error.str()
    finally:
        consumer.close()


@pytest.mark.parametrize(
    ("reader", "error"),
    [("kafka-python", "OffsetOutOfRange"), ("java", "OffsetOutOfRange")],
)
def test_an_offset_out_of_range_is_an_error(
    broker: Broker, make_topic: MakeTopic, client_named: ClientNamed, reader: str, error: str
) -> None:
    topic = make_topic()
    client = client_named(reader)
    client.produce(broker.bootstrap, topic, [Record(b"only")])
    with pytest.raises((kafka_python.KafkaError, JavaError)) as raised:
        client.consume(broker.bootstrap, topic, 1, start=2)
    assert error in getattr(raised.value, "name", "") + type(raised.value).__name__
