"""confluent-kafka, which is librdkafka."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka import KafkaError as ConfluentError

from compat_tests.clients.librdkafka import read_messages
from compat_tests.transactions.libraries.model import (
    TIMEOUT_MS,
    TIMEOUT_S,
    FencedError,
    TransactionError,
    Transform,
    end,
)


def _translated(call: Callable[[], Any]) -> None:
    try:
        call()
    except KafkaException as error:
        cause: ConfluentError = error.args[0]
        if cause.code() in (
            ConfluentError._FENCED,
            ConfluentError.PRODUCER_FENCED,
            ConfluentError.INVALID_PRODUCER_EPOCH,
        ):
            raise FencedError(str(error)) from error
        raise TransactionError(str(error)) from error


class ConfluentProducer:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self.producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                # Without it librdkafka 2.16 forgets a lone broker that restarts, and waits for ever
                # for the broker that it remembers as the group's coordinator: so it does when
                # Apache Kafka 4.3.1 is restarted.
                "metadata.recovery.strategy": "none",
                "transaction.timeout.ms": timeout_ms,
                "reconnect.backoff.max.ms": 500,
                "linger.ms": 2,
            }
        )
        _translated(lambda: self.producer.init_transactions(TIMEOUT_S))

    def begin(self) -> None:
        _translated(self.producer.begin_transaction)

    def send(self, topic: str, value: str, partition: int = 0) -> None:
        _translated(lambda: self.producer.produce(topic, value=value, partition=partition))

    def flush(self) -> None:
        assert self.producer.flush(TIMEOUT_S) == 0

    def commit(self) -> None:
        _translated(lambda: self.producer.commit_transaction(TIMEOUT_S))

    def abort(self) -> None:
        _translated(lambda: self.producer.abort_transaction(TIMEOUT_S))

    def close(self) -> None:
        self.producer.purge()


class Confluent:
    name = "confluent-kafka"

    def open(
        self, bootstrap: str, transactional_id: str, timeout_ms: int = TIMEOUT_MS
    ) -> ConfluentProducer:
        return ConfluentProducer(bootstrap, transactional_id, timeout_ms)

    def transform(self, bootstrap: str, job: Transform) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": job.group_id,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            }
        )
        producer = self.open(bootstrap, job.transactional_id)
        try:
            consumer.subscribe([job.source])
            messages = read_messages(consumer, job.count)
            producer.begin()
            for message in messages:
                value = message.value()
                assert isinstance(value, bytes)
                producer.send(job.target, value.decode().upper())
            offsets = _ends_of(messages)
            metadata = consumer.consumer_group_metadata()
            _translated(
                lambda: producer.producer.send_offsets_to_transaction(offsets, metadata, TIMEOUT_S)
            )
            end(producer, job)
        finally:
            consumer.close()


def _ends_of(messages: list[Message]) -> list[TopicPartition]:
    ends: dict[tuple[str | None, int | None], int] = {}
    for message in messages:
        offset = message.offset()
        assert offset is not None
        ends[message.topic(), message.partition()] = offset + 1
    return [TopicPartition(str(topic), int(part or 0), end) for (topic, part), end in ends.items()]
