"""kafka-python: the client written in Python alone."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

from compat_tests.clients.model import (
    DEFAULT_MODE,
    DELIVERY_TIMEOUT_S,
    READ_UNCOMMITTED,
    Delivery,
    Positions,
    ProduceError,
    ProducerMode,
    Received,
    Record,
    TimestampType,
)

# kafka-python reads its schemas with a function that Python 3.11 calls deprecated, while it is
# imported; with warnings as errors it could not be imported at all.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.coordinator.assignors.cooperative_sticky import (
        CooperativeStickyAssignor,
    )
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from kafka.errors import KafkaError
    from kafka.structs import OffsetAndMetadata

__all__ = ["KafkaConsumer", "KafkaError", "KafkaProducer", "KafkaPython", "TopicPartition"]
__all__ += ["ConsumerRebalanceListener", "OffsetAndMetadata"]
__all__ += ["ASSIGNORS", "consumer_settings", "producer_settings", "read_messages", "received"]

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}

TIMESTAMP_TYPES = {0: TimestampType.CREATE, 1: TimestampType.LOG_APPEND}


def producer_settings(bootstrap: str, mode: ProducerMode) -> dict[str, Any]:
    """A producer that gathers what it is given into few batches, until it is flushed."""
    return {
        "bootstrap_servers": bootstrap,
        "compression_type": None if mode.codec == "none" else mode.codec,
        "acks": "all" if mode.acks == "all" else int(mode.acks),
        "enable_idempotence": mode.idempotence,
        "linger_ms": 1000,
        "max_request_size": mode.request_bytes_max,
        "reconnect_backoff_max_ms": 500,
        "metrics_enabled": False,
    }


def consumer_settings(bootstrap: str) -> dict[str, Any]:
    """A consumer without a group."""
    return {
        "bootstrap_servers": bootstrap,
        "group_id": None,
        "enable_auto_commit": False,
        "auto_offset_reset": "none",
        "reconnect_backoff_max_ms": 500,
        "metrics_enabled": False,
    }


def received(message: Any) -> Received:
    """A consumed message in the common form."""
    return Received(
        partition=message.partition,
        offset=message.offset,
        key=message.key,
        value=message.value,
        headers=tuple(message.headers),
        timestamp_ms=message.timestamp,
        timestamp_type=TIMESTAMP_TYPES[message.timestamp_type],
    )


def read_messages(consumer: Any, count: int) -> list[Any]:
    """Exactly ``count`` messages of an assigned consumer."""
    messages: list[Any] = []
    deadline = time.monotonic() + DELIVERY_TIMEOUT_S
    while len(messages) < count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(messages)} of {count} messages came")
        polled = consumer.poll(timeout_ms=200, max_records=count - len(messages))
        for batch in polled.values():
            messages.extend(batch)
    return messages


class KafkaPython:
    """Drives kafka-python."""

    name = "kafka-python"

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
        producer = KafkaProducer(**producer_settings(bootstrap, mode))
        try:
            futures = [
                producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=partition,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            producer.flush(timeout=DELIVERY_TIMEOUT_S)
            sent = [future.get(timeout=DELIVERY_TIMEOUT_S) for future in futures]
        except KafkaError as error:
            raise ProduceError(type(error).__name__, str(error)) from error
        finally:
            producer.close(timeout=DELIVERY_TIMEOUT_S)
        known = mode.acks != "0"
        return [Delivery(one.partition, one.offset if known else None) for one in sent]

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
        waiting = {
            "fetch_max_wait_ms": fetch_wait_ms,
            "fetch_min_bytes": fetch_bytes_min,
            "request_timeout_ms": 2 * fetch_wait_ms + 30_000,
            "isolation_level": isolation,
        }
        consumer = KafkaConsumer(**(consumer_settings(bootstrap) | waiting))
        try:
            assigned = [TopicPartition(topic, number) for number in partitions]
            consumer.assign(assigned)
            for where in assigned:
                consumer.seek(where, start)
            return [received(message) for message in read_messages(consumer, count)]
        finally:
            consumer.close()

    def positions(self, bootstrap: str, topic: str, timestamps: Sequence[int] = ()) -> Positions:
        """Beginning and end, and offsets by timestamp."""
        consumer = KafkaConsumer(**consumer_settings(bootstrap))
        try:
            where = TopicPartition(topic, 0)
            found: list[int | None] = []
            for timestamp_ms in timestamps:
                answer = consumer.offsets_for_times({where: timestamp_ms})[where]
                found.append(None if answer is None else answer.offset)
            earliest = consumer.beginning_offsets([where])[where]
            latest = consumer.end_offsets([where])[where]
            return Positions(earliest, latest, found)
        finally:
            consumer.close()
