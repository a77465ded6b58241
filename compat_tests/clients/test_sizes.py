"""Messages from one byte to one MiB, and the exact size at which the broker says no."""

from __future__ import annotations

import pytest

from compat_tests.clients.fixtures import Broker, MakeTopic
from compat_tests.clients.model import Client, ProduceError, ProducerMode, Record

KIB = 1024
MIB = 1024 * KIB

# The broker limits a batch, not a message: message.max.bytes is 1 MiB and 12 bytes by default.
# A batch of one record without key and headers has 61 bytes of batch header and, at this size,
# 11 bytes around the value.
VALUE_BYTES_MAX = MIB + 12 - 61 - 11

# The client must not refuse what the test wants the broker to refuse.
PATIENT = ProducerMode(request_bytes_max=8 * MIB)

# kcat has no names of errors, only a sentence.
TOO_LARGE = {
    "confluent-kafka": "MSG_SIZE_TOO_LARGE",
    "kafka-python": "MessageSizeTooLargeError",
    "aiokafka": "MessageSizeTooLargeError",
    "kcat": "Message size too large",
    "java": "RecordTooLargeException",
}


@pytest.mark.parametrize("idempotence", [True, False], ids=["idempotent", "plain"])
def test_messages_of_all_sizes(
    broker: Broker, make_topic: MakeTopic, client: Client, idempotence: bool
) -> None:
    topic = make_topic(config={"max.message.bytes": str(2 * MIB)})
    sizes = (1, 2, 63, 64, 1000, 8191, 8192, 65_535, 65_536, 300_000, MIB - 1, MIB)
    records = [Record(bytes([97 + index]) * size) for index, size in enumerate(sizes)]
    mode = ProducerMode(idempotence=idempotence, request_bytes_max=8 * MIB)
    client.produce(broker.bootstrap, topic, records, mode=mode)
    read = client.consume(broker.bootstrap, topic, len(records))
    assert [len(one.value or b"") for one in read] == list(sizes)
    assert [one.value for one in read] == [record.value for record in records]


def test_the_broker_limit_is_exact(broker: Broker, make_topic: MakeTopic, client: Client) -> None:
    topic = make_topic()
    with pytest.raises(ProduceError, match=TOO_LARGE[client.name]):
        client.produce(
            broker.bootstrap, topic, [Record(b"x" * (VALUE_BYTES_MAX + 1))], mode=PATIENT
        )
    client.produce(broker.bootstrap, topic, [Record(b"y" * VALUE_BYTES_MAX)], mode=PATIENT)
    (read,) = client.consume(broker.bootstrap, topic, 1)
    assert read.offset == 0
    assert read.value == b"y" * VALUE_BYTES_MAX


def test_a_topic_has_its_own_limit(broker: Broker, make_topic: MakeTopic, client: Client) -> None:
    topic = make_topic(config={"max.message.bytes": "10000"})
    with pytest.raises(ProduceError, match=TOO_LARGE[client.name]):
        client.produce(broker.bootstrap, topic, [Record(b"x" * 10_000)])
    client.produce(broker.bootstrap, topic, [Record(b"y" * 9_900)])
    (read,) = client.consume(broker.bootstrap, topic, 1)
    assert (read.offset, len(read.value or b"")) == (0, 9_900)


def test_the_limit_counts_compressed_bytes(
    broker: Broker, make_topic: MakeTopic, client: Client
) -> None:
    topic = make_topic(config={"max.message.bytes": "10000"})
    client.produce(
        broker.bootstrap, topic, [Record(b"x" * 100_000)], mode=ProducerMode(codec="gzip")
    )
    (read,) = client.consume(broker.bootstrap, topic, 1)
    assert len(read.value or b"") == 100_000
