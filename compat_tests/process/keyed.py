"""A producer of records with keys, for a compacted topic, and what compaction has left of them."""

from __future__ import annotations

import contextlib
import functools
import random
import threading
import time
from collections.abc import Iterator
from typing import Any

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from compat_tests.clients import librdkafka
from compat_tests.clients.model import OUTAGE_TIMEOUT_MS
from compat_tests.clients.streaming import STOP_TIMEOUT_S
from compat_tests.history.events import Event
from compat_tests.history.reads import TOMBSTONE
from compat_tests.history.recorder import History
from compat_tests.process.beside import beside
from compat_tests.process.clients import IDEMPOTENT

KEYS = 10
# Every so manieth record takes its key back.
TOMBSTONE_EVERY = 7
PAUSE_S = 0.02
# A null has no value to be known by, so a header has the name of every record.
NAME = "name"
READ_TIMEOUT_S = 30.0


@contextlib.contextmanager
def producing_keyed(
    bootstrap: str, topic: str, history: History, settings: dict[str, Any]
) -> Iterator[None]:
    """Send records with a few keys to partition 0 until the block ends."""
    history.record(Event("ok", "topic", compacted=True))
    work = functools.partial(_produce, bootstrap, topic, history, settings)
    with beside("the producer with keys", history, work):
        yield


def _produce(
    bootstrap: str,
    topic: str,
    history: History,
    settings: dict[str, Any],
    stopping: threading.Event,
) -> None:
    producer = Producer(
        librdkafka.producer_settings(bootstrap, IDEMPOTENT)
        | {"linger.ms": 2, "message.timeout.ms": OUTAGE_TIMEOUT_MS}
        | settings
    )

    def report(name: str, error: KafkaError | None, message: Message) -> None:
        if error is None:
            history.add("ok", name, message.offset() or 0)
        else:
            history.add("unknown", name)

    chance = random.Random(topic)
    number = 0
    while not stopping.is_set():
        number += 1
        is_null = number % TOMBSTONE_EVERY == 0
        name = f"{TOMBSTONE if is_null else ''}{topic} {number}"
        key = f"key {chance.randrange(KEYS)}"
        history.add("invoke", name, key=key)
        producer.produce(
            topic,
            None if is_null else name,
            key,
            partition=0,
            headers={NAME: name},
            on_delivery=functools.partial(report, name),
        )
        producer.poll(0)
        time.sleep(PAUSE_S)
    if producer.flush(STOP_TIMEOUT_S):
        raise TimeoutError("the producer with keys could not settle what it sent")


def read_keyed(bootstrap: str, topic: str) -> list[tuple[int, str]]:
    """Offset and name of every record that is left in partition 0."""
    consumer = Consumer(librdkafka.consumer_settings(bootstrap) | {"enable.partition.eof": True})
    found: list[tuple[int, str]] = []
    gives_up_at = time.monotonic() + READ_TIMEOUT_S
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while time.monotonic() < gives_up_at:
            for message in consumer.consume(500, timeout=0.2):
                error = message.error()
                if error is None:
                    found.append((message.offset() or 0, _name(message)))
                elif error.code() == KafkaError._PARTITION_EOF:
                    return found
                else:
                    raise KafkaException(error)
    finally:
        consumer.close()
    raise TimeoutError(f"{len(found)} records came, and no end")


def _name(message: Message) -> str:
    ((_, name),) = librdkafka.received(message).headers
    assert name is not None
    return name.decode()
