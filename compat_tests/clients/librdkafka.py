"""confluent-kafka: the Python face of librdkafka."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from compat_tests.clients.model import (
    DEFAULT_MODE,
    DELIVERY_TIMEOUT_S,
    READ_UNCOMMITTED,
    Delivery,
    Headers,
    Positions,
    ProduceError,
    ProducerMode,
    Received,
    Record,
    TimestampType,
)

TIMESTAMP_TYPES = {
    TIMESTAMP_CREATE_TIME: TimestampType.CREATE,
    TIMESTAMP_LOG_APPEND_TIME: TimestampType.LOG_APPEND,
}


def producer_settings(bootstrap: str, mode: ProducerMode) -> dict[str, Any]:
    """A producer that gathers what it is given into few batches, until it is flushed."""
    return {
        "bootstrap.servers": bootstrap,
        "compression.type": mode.codec,
        "acks": mode.acks,
        "enable.idempotence": mode.idempotence,
        "linger.ms": 1000,
        "message.max.bytes": mode.request_bytes_max,
        "reconnect.backoff.max.ms": 500,
        "topic.metadata.refresh.fast.interval.ms": 50,
    }


def consumer_settings(bootstrap: str) -> dict[str, Any]:
    """A consumer that only assigns: the group id is demanded by the library and never used."""
    return {
        "bootstrap.servers": bootstrap,
        "group.id": "unused",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "reconnect.backoff.max.ms": 500,
        "topic.metadata.refresh.fast.interval.ms": 50,
    }


def received(message: Message) -> Received:
    """A consumed message in the common form."""
    kind, timestamp_ms = message.timestamp()
    offset = message.offset()
    partition = message.partition()
    assert offset is not None
    assert partition is not None
    return Received(
        partition=partition,
        offset=offset,
        key=message.key(),
        value=message.value(),
        headers=_headers(message),
        timestamp_ms=timestamp_ms,
        timestamp_type=TIMESTAMP_TYPES[kind],
    )


def _headers(message: Message) -> Headers:
    headers = message.headers() or []
    assert isinstance(headers, list)
    return tuple(
        (name, value.encode() if isinstance(value, str) else value) for name, value in headers
    )


def read_messages(consumer: Consumer, count: int) -> list[Message]:
    """Exactly ``count`` messages of an assigned consumer; errors are raised."""
    messages: list[Message] = []
    deadline = time.monotonic() + DELIVERY_TIMEOUT_S
    while len(messages) < count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(messages)} of {count} messages came")
        for message in consumer.consume(count - len(messages), timeout=0.2):
            error = message.error()
            if error is not None:
                raise KafkaException(error)
            messages.append(message)
    return messages


class ConfluentKafka:
    """Drives confluent-kafka."""

    name = "confluent-kafka"

    def produce(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[Record],
        *,
        partition: int | None = 0,
        mode: ProducerMode = DEFAULT_MODE,
    ) -> list[Delivery]:
        """Send all records and wait for all of them."""
        producer = Producer(producer_settings(bootstrap, mode))
        deliveries: dict[int, Delivery] = {}
        errors: list[KafkaError] = []

        def report_to(index: int) -> Callable[[KafkaError | None, Message], None]:
            def report(error: KafkaError | None, message: Message) -> None:
                if error is not None:
                    errors.append(error)
                    return
                where = message.partition()
                assert where is not None
                deliveries[index] = Delivery(where, None if mode.acks == "0" else message.offset())

            return report

        try:
            for index, record in enumerate(records):
                producer.produce(
                    topic,
                    value=record.value,
                    key=record.key,
                    partition=-1 if partition is None else partition,
                    timestamp=record.timestamp_ms or 0,
                    headers=list(record.headers),
                    on_delivery=report_to(index),
                )
                producer.poll(0)
        except KafkaException as error:
            raise ProduceError(error.args[0].name(), error.args[0].str()) from error
        left = producer.flush(DELIVERY_TIMEOUT_S)
        if errors:
            raise ProduceError(errors[0].name(), errors[0].str())
        if left:
            raise TimeoutError(f"{left} messages were not acknowledged")
        return [deliveries[index] for index in range(len(records))]

    def consume(
        self,
        bootstrap: str,
        topic: str,
        count: int,
        *,
        partitions: Sequence[int] = (0,),
        start: int = 0,
        fetch_wait_ms: int = 50,
        fetch_bytes_min: int = 1,
        isolation: str = READ_UNCOMMITTED,
    ) -> list[Received]:
        """Read ``count`` messages from offset ``start`` on."""
        waiting = {"fetch.wait.max.ms": fetch_wait_ms, "fetch.min.bytes": fetch_bytes_min}
        consumer = Consumer(consumer_settings(bootstrap) | waiting | {"isolation.level": isolation})
        try:
            consumer.assign([TopicPartition(topic, number, start) for number in partitions])
            return [received(message) for message in read_messages(consumer, count)]
        finally:
            consumer.close()

    def positions(self, bootstrap: str, topic: str, timestamps: Sequence[int] = ()) -> Positions:
        """Watermarks, and offsets by timestamp; -1 is this library's "none"."""
        consumer = Consumer(consumer_settings(bootstrap))
        try:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
            found: list[int | None] = []
            for timestamp_ms in timestamps:
                asked = TopicPartition(topic, 0, timestamp_ms)
                (answer,) = consumer.offsets_for_times([asked], timeout=30)
                if answer.error is not None:
                    raise KafkaException(answer.error)
                found.append(None if answer.offset == -1 else answer.offset)
            return Positions(low, high, found)
        finally:
            consumer.close()
