"""aiokafka: asyncio, and version 0 of every request of a transaction.

A producer's event loop runs while one of its methods does. In between it stands still, as that of
an application does that is busy with something else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError, ProducerFenced

from compat_tests.clients.aio import read_messages
from compat_tests.transactions.libraries.model import (
    TIMEOUT_MS,
    TIMEOUT_S,
    FencedError,
    TransactionError,
    Transform,
    end,
)

T = TypeVar("T")


class AioProducer:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._runner = asyncio.Runner()
        self._sent: list[asyncio.Future[Any]] = []
        self.producer = self.run(self._open(bootstrap, transactional_id, timeout_ms))

    async def _open(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> Any:
        # It wants a loop that runs already.
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
        )
        await producer.start()
        return producer

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Let the loop run until something is done."""
        try:
            return self._runner.run(asyncio.wait_for(work, TIMEOUT_S))
        except ProducerFenced as error:
            raise FencedError(str(error)) from error
        except (KafkaError, TimeoutError) as error:
            raise TransactionError(f"{type(error).__name__}: {error}") from error

    def begin(self) -> None:
        self._sent.clear()
        self.run(self.producer.begin_transaction())

    def send(self, topic: str, value: str, partition: int = 0) -> None:
        sending = self.producer.send(topic, value=value.encode(), partition=partition)
        self._sent.append(self.run(sending))

    def flush(self) -> None:
        self.run(self._delivered())

    async def _delivered(self) -> None:
        await self.producer.flush()
        await asyncio.gather(*self._sent)

    def commit(self) -> None:
        self.run(self.producer.commit_transaction())

    def abort(self) -> None:
        self.run(self.producer.abort_transaction())

    def close(self) -> None:
        self.run(self.producer.stop())
        self._runner.close()


class Aio:
    name = "aiokafka"

    def open(
        self, bootstrap: str, transactional_id: str, timeout_ms: int = TIMEOUT_MS
    ) -> AioProducer:
        return AioProducer(bootstrap, transactional_id, timeout_ms)

    def transform(self, bootstrap: str, job: Transform) -> None:
        producer = self.open(bootstrap, job.transactional_id)
        consumer = producer.run(_subscribed(bootstrap, job))
        try:
            messages = producer.run(read_messages(consumer, job.count))
            producer.begin()
            for message in messages:
                assert message.value is not None
                producer.send(job.target, message.value.decode().upper())
            offsets = {TopicPartition(one.topic, one.partition): one.offset + 1 for one in messages}
            # It names only the group, not the member.
            producer.run(producer.producer.send_offsets_to_transaction(offsets, job.group_id))
            end(producer, job)
        finally:
            producer.run(consumer.stop())
            producer.close()


async def _subscribed(bootstrap: str, job: Transform) -> AIOKafkaConsumer:
    consumer = AIOKafkaConsumer(
        job.source,
        bootstrap_servers=bootstrap,
        group_id=job.group_id,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    await consumer.start()
    return consumer
