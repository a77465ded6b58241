"""Create time is the producer's, log-append time is the broker's, and the future is refused."""

from __future__ import annotations

import time

import pytest

from compat_tests.clients import raw
from compat_tests.clients.fixtures import CLIENT_NAMES, Broker, ClientNamed, MakeTopic
from compat_tests.clients.model import (
    Client,
    ProduceError,
    ProducerMode,
    Record,
    TimestampType,
    contents,
)

LONG_AGO_MS = 1_000_000_000_000

# The clients that can set a timestamp, and what each calls a timestamp that is refused.
INVALID_TIMESTAMP = {
    "confluent-kafka": "INVALID_TIMESTAMP",
    "kafka-python": "InvalidTimestampError",
    "aiokafka": "InvalidTimestampError",
    "java": "InvalidTimestampException",
}


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_log_append_time_replaces_what_the_producer_set(
    broker: Broker, make_topic: MakeTopic, client: Client, codec: str
) -> None:
    topic = make_topic(config={"message.timestamp.type": "LogAppendTime"})
    records = [Record(b"value " * 50, timestamp_ms=LONG_AGO_MS + number) for number in range(20)]
    before_ms = now_ms()
    client.produce(broker.bootstrap, topic, records, mode=ProducerMode(codec=codec))
    after_ms = now_ms()
    read = client.consume(broker.bootstrap, topic, len(records))
    assert [one.content for one in read] == contents(records)
    assert {one.timestamp_type for one in read} == {TimestampType.LOG_APPEND}
    assert all(before_ms <= one.timestamp_ms <= after_ms for one in read)
    batches = raw.stored_batches(broker.bootstrap, topic)
    assert all(batch.log_append_time for batch in batches)
    assert {batch.codec for batch in batches} == {codec}


@pytest.mark.parametrize("consumer", CLIENT_NAMES)
def test_every_consumer_tells_log_append_time(
    broker: Broker, make_topic: MakeTopic, client_named: ClientNamed, consumer: str
) -> None:
    topic = make_topic(config={"message.timestamp.type": "LogAppendTime"})
    client_named("confluent-kafka").produce(
        broker.bootstrap, topic, [Record(b"value", timestamp_ms=LONG_AGO_MS)]
    )
    (read,) = client_named(consumer).consume(broker.bootstrap, topic, 1)
    assert read.timestamp_type is TimestampType.LOG_APPEND
    assert read.timestamp_ms > LONG_AGO_MS


def test_without_a_timestamp_the_client_takes_its_clock(
    broker: Broker, make_topic: MakeTopic, client: Client
) -> None:
    topic = make_topic()
    before_ms = now_ms()
    client.produce(broker.bootstrap, topic, [Record(b"value")])
    (read,) = client.consume(broker.bootstrap, topic, 1)
    assert read.timestamp_type is TimestampType.CREATE
    assert before_ms <= read.timestamp_ms <= now_ms()


@pytest.mark.parametrize("producer", INVALID_TIMESTAMP)
def test_a_timestamp_too_far_ahead_is_refused(
    broker: Broker, make_topic: MakeTopic, client_named: ClientNamed, producer: str
) -> None:
    """message.timestamp.after.max.ms is one hour by default (KIP-937)."""
    topic = make_topic()
    client = client_named(producer)
    ahead = Record(b"ahead", timestamp_ms=now_ms() + 2 * 3_600_000)
    with pytest.raises(ProduceError) as refused:
        client.produce(broker.bootstrap, topic, [ahead])
    assert refused.value.name == INVALID_TIMESTAMP[producer]
    soon = Record(b"soon", timestamp_ms=now_ms() + 1_800_000)
    client.produce(broker.bootstrap, topic, [soon])
    (read,) = client.consume(broker.bootstrap, topic, 1)
    assert (read.offset, read.value) == (0, b"soon")
