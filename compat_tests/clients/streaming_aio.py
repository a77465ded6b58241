"""aiokafka as a producer and a consumer that live on while the broker is away."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from compat_tests.clients import aio
from compat_tests.clients.model import OUTAGE_TIMEOUT_MS, ProducerMode
from compat_tests.history.recorder import History


def stream(
    bootstrap: str,
    topic: str,
    history: History,
    mode: ProducerMode,
    prefix: str,
    pause_s: float,
    more: dict[str, Any],
    stopping: threading.Event,
) -> None:
    """Send counted values until stopped."""
    # The time for a request is also the time for which a record is tried again.
    own = {"linger_ms": 2, "request_timeout_ms": OUTAGE_TIMEOUT_MS}
    settings = aio.producer_settings(bootstrap, mode) | own | more
    asyncio.run(_stream(settings, topic, history, prefix, pause_s, stopping))


async def _stream(
    settings: dict[str, Any],
    topic: str,
    history: History,
    prefix: str,
    pause_s: float,
    stopping: threading.Event,
) -> None:
    producer = AIOKafkaProducer(**settings)
    await producer.start()

    def settled(value: str, sent: asyncio.Future[Any]) -> None:
        if sent.cancelled() or sent.exception() is not None:
            history.add("unknown", value)
        else:
            history.add("ok", value, sent.result().offset)

    number = 0
    try:
        while not stopping.is_set():
            value = f"{prefix}{number}"
            history.add("invoke", value)
            sent = await producer.send(topic, value.encode(), partition=0)
            sent.add_done_callback(lambda sent, value=value: settled(value, sent))
            number += 1
            await asyncio.sleep(pause_s)
    finally:
        await producer.stop()


def follow(
    bootstrap: str,
    topic: str,
    history: History,
    settings: dict[str, Any],
    stopping: threading.Event,
) -> None:
    """Read partition 0 from its beginning until stopped."""
    asyncio.run(_follow(aio.consumer_settings(bootstrap) | settings, topic, history, stopping))


async def _follow(
    settings: dict[str, Any], topic: str, history: History, stopping: threading.Event
) -> None:
    consumer = AIOKafkaConsumer(**settings)
    await consumer.start()
    try:
        where = TopicPartition(topic, 0)
        consumer.assign([where])
        consumer.seek(where, 0)
        while not stopping.is_set():
            for messages in (await consumer.getmany(timeout_ms=100)).values():
                for message in messages:
                    history.add("poll", message.value.decode(), message.offset)
    finally:
        await consumer.stop()
