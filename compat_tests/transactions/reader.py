"""Reads a topic from its beginning, and tells what it is handed of committed records.

python -m compat_tests.transactions.reader BOOTSTRAP TOPIC PARTITIONS LIBRARY
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from confluent_kafka import Consumer, TopicPartition
from kafka import KafkaConsumer
from kafka import TopicPartition as PythonPartition

from compat_tests.clients import kafka_python, librdkafka
from compat_tests.clients.model import READ_COMMITTED
from compat_tests.history.events import Event
from compat_tests.transactions.copier import is_record
from compat_tests.transactions.telling import stop_when_asked, stopping, tell, tell_ready


def main(bootstrap: str, topic: str, partitions: str, library: str) -> None:
    stop_when_asked()
    read = {"confluent-kafka": read_confluent, "kafka-python": read_python}[library]
    for partition, offset, value in read(bootstrap, topic, int(partitions)):
        tell(
            Event(
                "ok",
                "poll",
                f"reader {library}",
                topic=topic,
                partition=partition,
                offset=offset,
                value=value.decode(),
                isolation="committed",
            )
        )


def read_confluent(bootstrap: str, topic: str, partitions: int) -> Iterator[tuple[int, int, bytes]]:
    consumer = Consumer(
        librdkafka.consumer_settings(bootstrap) | {"isolation.level": READ_COMMITTED}
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    tell_ready()
    while not stopping.is_set():
        for message in consumer.consume(500, timeout=0.2):
            if is_record(message):
                number, offset, value = message.partition(), message.offset(), message.value()
                assert number is not None
                assert offset is not None
                assert isinstance(value, bytes)
                yield number, offset, value
    consumer.close()


def read_python(bootstrap: str, topic: str, partitions: int) -> Iterator[tuple[int, int, bytes]]:
    consumer = KafkaConsumer(
        **kafka_python.consumer_settings(bootstrap), isolation_level=READ_COMMITTED
    )
    consumer.assign([PythonPartition(topic, number) for number in range(partitions)])
    consumer.seek_to_beginning()
    tell_ready()
    while not stopping.is_set():
        for batch in consumer.poll(timeout_ms=200, max_records=500).values():
            for message in batch:
                yield message.partition, message.offset, message.value
    consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
