"""Reading a topic as it is now, by a consumer of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from compat_tests.clients.librdkafka import consumer_settings
from compat_tests.clients.model import READ_UNCOMMITTED

TIMEOUT_S = 60.0
# What Apache Kafka says for a while after its start.
LEADERLESS = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
)


def read_topic(
    bootstrap: str, topic: str, partitions: Sequence[int], isolation: str
) -> Iterator[tuple[int, int, str]]:
    """Partition, offset and value of everything below the high watermarks of now.

    Whoever sees committed records only waits until the transactions in between have ended.
    """
    consumer = Consumer(
        consumer_settings(bootstrap) | {"isolation.level": isolation, "enable.partition.eof": True}
    )
    deadline = time.monotonic() + TIMEOUT_S
    ends = _ends(bootstrap, topic, partitions, deadline)
    try:
        left = {number: end for number, end in ends.items() if end > 0}
        consumer.assign([TopicPartition(topic, number, 0) for number in left])
        while left:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{topic}: {left} is not reached")
            for message in consumer.consume(1000, timeout=0.5):
                number, offset = message.partition(), message.offset()
                assert number is not None
                assert offset is not None
                error = message.error()
                if error is None:
                    value = message.value()
                    assert isinstance(value, bytes)
                    if offset < ends[number]:
                        yield number, offset, value.decode()
                    # Markers behind the last record are passed over in silence, up to the end.
                    if offset + 1 >= ends[number]:
                        left.pop(number, None)
                elif error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                elif offset >= ends[number]:
                    left.pop(number, None)
    finally:
        consumer.close()


def _ends(bootstrap: str, topic: str, partitions: Sequence[int], deadline: float) -> dict[int, int]:
    """The high watermarks. One who sees committed records only is told the last stable offset
    instead, behind which may be what is committed already."""
    consumer = Consumer(consumer_settings(bootstrap) | {"isolation.level": READ_UNCOMMITTED})
    try:
        return {number: _end(consumer, topic, number, deadline) for number in partitions}
    finally:
        consumer.close()


def _end(consumer: Consumer, topic: str, partition: int, deadline: float) -> int:
    """The end of a partition, once somebody leads it again."""
    while True:
        try:
            _, end = consumer.get_watermark_offsets(
                TopicPartition(topic, partition), timeout=TIMEOUT_S
            )
            return end
        except KafkaException as error:
            if not error.args[0].retriable() and error.args[0].code() not in LEADERLESS:
                raise
            if time.monotonic() > deadline:
                raise
        time.sleep(0.2)
