"""A producer that writes until it is stopped, and what is stored and committed afterwards."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from compat_tests.clients import librdkafka
from compat_tests.groups.history import Partition

SETTLE_TIMEOUT_S = 60


class Stream:
    """What was sent to a topic: values that are all different, and those that are stored."""

    def __init__(self) -> None:
        self.sent = 0
        self.acknowledged: list[str] = []
        self.failed: list[str] = []


@contextmanager
def writing(bootstrap: str, topic: str, partitions: int, *, per_second: float) -> Iterator[Stream]:
    """Send to one partition after the other; when this ends, everything sent is settled."""
    stream, stopping = Stream(), threading.Event()
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 5,
            "reconnect.backoff.max.ms": 500,
            "message.timeout.ms": SETTLE_TIMEOUT_S * 1000,
            "log_level": 0,
        }
    )

    def report(error: KafkaError | None, message: Message) -> None:
        value = (message.value() or b"").decode()
        (stream.acknowledged if error is None else stream.failed).append(value)

    def run() -> None:
        while not stopping.is_set():
            value = f"value {stream.sent}"
            producer.produce(topic, value, partition=stream.sent % partitions, on_delivery=report)
            stream.sent += 1
            producer.poll(0)
            time.sleep(1 / per_second)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield stream
    finally:
        stopping.set()
        thread.join()
        assert producer.flush(SETTLE_TIMEOUT_S) == 0, "the producer could not settle what it sent"


def read_all(bootstrap: str, topic: str, partitions: int) -> dict[Partition, list[str]]:
    """The values of each partition by offset."""
    consumer = Consumer(librdkafka.consumer_settings(bootstrap))
    try:
        wanted = 0
        for number in range(partitions):
            _, high = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=30)
            wanted += high
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        stored: dict[Partition, list[str]] = {(topic, number): [] for number in range(partitions)}
        for message in librdkafka.read_messages(consumer, wanted):
            where = (topic, message.partition() or 0)
            assert message.offset() == len(stored[where])
            stored[where].append((message.value() or b"").decode())
        return stored
    finally:
        consumer.close()


def committed_offsets(
    bootstrap: str, group: str, partitions: Sequence[Partition]
) -> dict[Partition, int]:
    """What the broker says is committed; -1 for nothing."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    asked = [ConsumerGroupTopicPartitions(group, [TopicPartition(*one) for one in partitions])]
    answer = admin.list_consumer_group_offsets(asked)[group].result(30)
    return {(one.topic, one.partition): max(one.offset, -1) for one in answer.topic_partitions}
