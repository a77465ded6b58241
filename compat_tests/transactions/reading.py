"""Reading a topic as it is now, by a consumer of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from compat_tests.clients.librdkafka import consumer_settings

TIMEOUT_S = 60.0


def read_topic(
    bootstrap: str, topic: str, partitions: Sequence[int], isolation: str
) -> Iterator[tuple[int, int, str]]:
    """Partition, offset and value of everything below the high watermarks of now.

    Whoever sees committed records only waits until the transactions in between have ended.
    """
    consumer = Consumer(
        consumer_settings(bootstrap) | {"isolation.level": isolation, "enable.partition.eof": True}
    )
    try:
        ends = {
            number: consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=TIMEOUT_S)
            for number in partitions
        }
        left = {number: end for number, (_, end) in ends.items() if end > 0}
        consumer.assign([TopicPartition(topic, number, 0) for number in left])
        deadline = time.monotonic() + TIMEOUT_S
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
                    if offset < ends[number][1]:
                        yield number, offset, value.decode()
                    # Markers behind the last record are passed over in silence, up to the end.
                    if offset + 1 >= ends[number][1]:
                        left.pop(number, None)
                elif error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                elif offset >= ends[number][1]:
                    left.pop(number, None)
    finally:
        consumer.close()
