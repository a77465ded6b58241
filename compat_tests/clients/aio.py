"""aiokafka: the client for asyncio. Each call runs an event loop of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError

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

TIMESTAMP_TYPES = {0: TimestampType.CREATE, 1: TimestampType.LOG_APPEND}


def producer_settings(bootstrap: str, mode: ProducerMode) -> dict[str, Any]:
    """A producer that gathers what it is given into few batches."""
    return {
        "bootstrap_servers": bootstrap,
        "compression_type": None if mode.codec == "none" else mode.codec,
        "acks": "all" if mode.acks == "all" else int(mode.acks),
        "enable_idempotence": mode.idempotence,
        "linger_ms": 20,
        "max_request_size": mode.request_bytes_max,
    }


def consumer_settings(bootstrap: str) -> dict[str, Any]:
    """A consumer without a group."""
    return {
        "bootstrap_servers": bootstrap,
        "group_id": None,
        "enable_auto_commit": False,
        "auto_offset_reset": "none",
    }


def received(message: ConsumerRecord[bytes, bytes]) -> Received:
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


async def read_messages(
    consumer: AIOKafkaConsumer, count: int
) -> list[ConsumerRecord[bytes, bytes]]:
    """Exactly ``count`` messages of a consumer that has started."""
    messages: list[ConsumerRecord[bytes, bytes]] = []
    deadline = time.monotonic() + DELIVERY_TIMEOUT_S
    while len(messages) < count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(messages)} of {count} messages came")
        fetched = await consumer.getmany(timeout_ms=200, max_records=count - len(messages))
        for batch in fetched.values():
            messages.extend(batch)
    return messages


class AioKafka:
    """Drives aiokafka."""

    name = "aiokafka"

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
        try:
            return asyncio.run(_produce(bootstrap, topic, records, partition, mode))
        except KafkaError as error:
            raise ProduceError(type(error).__name__, str(error)) from error

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
        settings = consumer_settings(bootstrap) | waiting
        assigned = [TopicPartition(topic, number) for number in partitions]
        return asyncio.run(_consume(settings, assigned, start, count))

    def positions(self, bootstrap: str, topic: str, timestamps: Sequence[int] = ()) -> Positions:
        """Beginning and end, and offsets by timestamp."""
        settings = consumer_settings(bootstrap)
        return asyncio.run(_positions(settings, TopicPartition(topic, 0), timestamps))


async def _produce(
    bootstrap: str,
    topic: str,
    records: Sequence[Record],
    partition: int | None,
    mode: ProducerMode,
) -> list[Delivery]:
    producer = AIOKafkaProducer(**producer_settings(bootstrap, mode))
    await producer.start()
    try:
        futures = [
            await producer.send(
                topic,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
                partition=partition,
                timestamp_ms=record.timestamp_ms,
            )
            for record in records
        ]
        async with asyncio.timeout(DELIVERY_TIMEOUT_S):
            sent = await asyncio.gather(*futures)
    finally:
        await producer.stop()
    if mode.acks == "0":
        # Nothing is told, not even the partition.
        assert partition is not None
        return [Delivery(partition, None) for _ in sent]
    return [Delivery(one.partition, one.offset) for one in sent]


async def _consume(
    settings: dict[str, Any], assigned: Sequence[TopicPartition], start: int, count: int
) -> list[Received]:
    consumer = AIOKafkaConsumer(**settings)
    await consumer.start()
    try:
        consumer.assign(assigned)
        for where in assigned:
            consumer.seek(where, start)
        return [received(message) for message in await read_messages(consumer, count)]
    finally:
        await consumer.stop()


async def _positions(
    settings: dict[str, Any], where: TopicPartition, timestamps: Sequence[int]
) -> Positions:
    consumer = AIOKafkaConsumer(**settings)
    await consumer.start()
    try:
        consumer.assign([where])
        found: list[int | None] = []
        for timestamp_ms in timestamps:
            answer = (await consumer.offsets_for_times({where: timestamp_ms}))[where]
            found.append(None if answer is None else answer.offset)
        earliest = (await consumer.beginning_offsets([where]))[where]
        latest = (await consumer.end_offsets([where]))[where]
        return Positions(earliest, latest, found)
    finally:
        await consumer.stop()
