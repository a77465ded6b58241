"""Producers that send and consumers that read until they are stopped, whatever happens meanwhile.

They report what they do into a history. Each client retries as its library does by itself; nothing
is sent again by the test.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from compat_tests.clients import (
    java_client,
    kafka_python,
    librdkafka,
    streaming_aio,
    streaming_kcat,
)
from compat_tests.clients.java_client import JavaError, JavaProcess
from compat_tests.clients.model import OUTAGE_TIMEOUT_MS, ProducerMode
from compat_tests.history.recorder import History, Kind

# Clients whose producers and consumers live on while the broker is away.
STREAMING_CLIENTS = ("confluent-kafka", "kafka-python", "aiokafka", "kcat", "java")

PAUSE_S = 0.002
"""Between two sends; a few records share a batch, and many batches are under way in a second."""

STOP_TIMEOUT_S = 60.0


class _Thread:
    """Runs a client until it is told to stop; its failure becomes the history's."""

    def __init__(self, history: History, run: Callable[[threading.Event], None]) -> None:
        self._stopping = threading.Event()
        self._history = history
        self._run = run
        self._thread = threading.Thread(target=self._guarded, daemon=True)
        self._thread.start()

    def _guarded(self) -> None:
        try:
            self._run(self._stopping)
        except BaseException as failure:
            self._history.fail(failure)

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(STOP_TIMEOUT_S)
        if self._thread.is_alive():
            raise TimeoutError("a client does not stop")


@contextmanager
def producing(
    client: str,
    bootstrap: str,
    topic: str,
    history: History,
    *,
    mode: ProducerMode,
    java: Callable[[], JavaProcess],
    prefix: str = "",
    pause_s: float = PAUSE_S,
    settings: dict[str, Any] | None = None,
) -> Iterator[None]:
    """Send `<prefix>0`, `<prefix>1` … to partition 0; at the end everything sent is settled.

    Args:
        settings: further settings of the producer, by the client's own names.
    """
    running: _Thread | _JavaCommand
    if client == "java":
        running = _JavaCommand(
            java(),
            history,
            op="stream",
            config=java_client.producer_settings(bootstrap, mode)
            | {"linger.ms": "2", "delivery.timeout.ms": str(OUTAGE_TIMEOUT_MS)}
            | (settings or {}),
            topic=topic,
            partition=0,
            prefix=prefix,
            pause_us=int(pause_s * 1_000_000),
        )
    else:
        send = _SENDERS[client]
        running = _Thread(
            history,
            lambda stopping: send(
                bootstrap, topic, history, mode, prefix, pause_s, settings or {}, stopping
            ),
        )
    try:
        yield
    finally:
        running.stop()


@contextmanager
def following(
    client: str,
    bootstrap: str,
    topic: str,
    history: History,
    *,
    java: Callable[[], JavaProcess],
    settings: dict[str, Any] | None = None,
) -> Iterator[None]:
    """Read partition 0 from its beginning, without a group.

    Args:
        settings: further settings of the consumer, by the client's own names.
    """
    running: _Thread | _JavaCommand
    more = settings or {}
    history.add_start(0)
    if client == "java":
        config = java_client.consumer_settings(bootstrap) | more
        running = _JavaCommand(
            java(), history, op="follow", config=config, topic=topic, partition=0, start=0
        )
    else:
        follow = _FOLLOWERS[client]
        running = _Thread(
            history, lambda stopping: follow(bootstrap, topic, history, more, stopping)
        )
    try:
        yield
    finally:
        running.stop()


def _stream_librdkafka(
    bootstrap: str,
    topic: str,
    history: History,
    mode: ProducerMode,
    prefix: str,
    pause_s: float,
    more: dict[str, Any],
    stopping: threading.Event,
) -> None:
    producer = Producer(
        librdkafka.producer_settings(bootstrap, mode)
        | {"linger.ms": 2, "message.timeout.ms": OUTAGE_TIMEOUT_MS}
        | more
    )

    def report(error: KafkaError | None, message: Message) -> None:
        value = message.value()
        assert value is not None
        if error is None:
            history.add("ok", value.decode(), message.offset() or 0)
        else:
            history.add("unknown", value.decode())

    number = 0
    while not stopping.is_set():
        value = f"{prefix}{number}"
        history.add("invoke", value)
        producer.produce(topic, value.encode(), partition=0, on_delivery=report)
        producer.poll(0)
        number += 1
        time.sleep(pause_s)
    if producer.flush(STOP_TIMEOUT_S):
        raise TimeoutError("confluent-kafka could not settle what it sent")


def _stream_kafka_python(
    bootstrap: str,
    topic: str,
    history: History,
    mode: ProducerMode,
    prefix: str,
    pause_s: float,
    more: dict[str, Any],
    stopping: threading.Event,
) -> None:
    settings = kafka_python.producer_settings(bootstrap, mode) | more
    settings |= {"linger_ms": 2, "delivery_timeout_ms": OUTAGE_TIMEOUT_MS}
    # While the broker is away, send() itself waits for metadata or room.
    settings |= {"max_block_ms": OUTAGE_TIMEOUT_MS}
    producer = kafka_python.KafkaProducer(**settings)
    number = 0
    while not stopping.is_set():
        value = f"{prefix}{number}"
        history.add("invoke", value)
        future = producer.send(topic, value.encode(), partition=0)
        future.add_callback(lambda sent, value=value: history.add("ok", value, sent.offset))
        future.add_errback(lambda _, value=value: history.add("unknown", value))
        number += 1
        time.sleep(pause_s)
    producer.flush(timeout=STOP_TIMEOUT_S)
    producer.close(timeout=STOP_TIMEOUT_S)


def _follow_librdkafka(
    bootstrap: str,
    topic: str,
    history: History,
    settings: dict[str, Any],
    stopping: threading.Event,
) -> None:
    consumer = Consumer(librdkafka.consumer_settings(bootstrap) | settings)
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while not stopping.is_set():
            for message in consumer.consume(500, timeout=0.1):
                error = message.error()
                if error is not None and not error.retriable() and error.code() not in _AWAY:
                    raise KafkaException(error)
                if error is None:
                    value = message.value()
                    assert value is not None
                    epoch = message.leader_epoch()
                    history.add(
                        "poll",
                        value.decode(),
                        message.offset() or 0,
                        leader_epoch=-1 if epoch is None else epoch,
                    )
    finally:
        consumer.close()


# What librdkafka tells the application while the broker is away; it goes on trying.
_AWAY = (
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
)


def _follow_kafka_python(
    bootstrap: str,
    topic: str,
    history: History,
    settings: dict[str, Any],
    stopping: threading.Event,
) -> None:
    consumer = kafka_python.KafkaConsumer(**(kafka_python.consumer_settings(bootstrap) | settings))
    try:
        where = kafka_python.TopicPartition(topic, 0)
        consumer.assign([where])
        consumer.seek(where, 0)
        while not stopping.is_set():
            for messages in consumer.poll(timeout_ms=100, max_records=500).values():
                for message in messages:
                    history.add("poll", message.value.decode(), message.offset)
    finally:
        consumer.close()


_SENDERS = {
    "confluent-kafka": _stream_librdkafka,
    "kafka-python": _stream_kafka_python,
    "aiokafka": streaming_aio.stream,
    "kcat": streaming_kcat.stream,
}
_FOLLOWERS = {
    "confluent-kafka": _follow_librdkafka,
    "kafka-python": _follow_kafka_python,
    "aiokafka": streaming_aio.follow,
    "kcat": streaming_kcat.follow,
}


class _JavaCommand:
    """A command of the Java driver that reports events until it is stopped."""

    def __init__(self, process: JavaProcess, history: History, op: str, **arguments: Any) -> None:
        self._process = process
        self._history = history
        self._id = process.send(op, **arguments)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while True:
            reply = self._process.next_reply(self._id, timeout_s=None)
            if "event" in reply:
                kind = cast(Kind, reply["event"])
                self._history.add(kind, reply["value"], reply["offset"])
                continue
            if "error" in reply:
                self._history.fail(JavaError(reply["error"], reply["detail"]))
            return

    def stop(self) -> None:
        self._process.call("stop", target=self._id)
        self._thread.join(STOP_TIMEOUT_S)
        if self._thread.is_alive():
            raise TimeoutError("the Java client does not stop")
