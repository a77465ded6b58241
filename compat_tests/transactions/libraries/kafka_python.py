"""kafka-python: the client written in Python alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import InvalidProducerEpochError, KafkaError, ProducerFencedError
from kafka.structs import OffsetAndMetadata

from compat_tests.clients.kafka_python import read_messages
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
    except (ProducerFencedError, InvalidProducerEpochError) as error:
        raise FencedError(str(error)) from error
    except KafkaError as error:
        raise TransactionError(f"{type(error).__name__}: {error}") from error


class PythonProducer:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self.producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            reconnect_backoff_max_ms=500,
            metrics_enabled=False,
        )
        self._sent: list[Any] = []
        _translated(self.producer.init_transactions)

    def begin(self) -> None:
        self._sent.clear()
        _translated(self.producer.begin_transaction)

    def send(self, topic: str, value: str, partition: int = 0) -> None:
        _translated(lambda: self._sent.append(self._send(topic, value, partition)))

    def _send(self, topic: str, value: str, partition: int) -> Any:
        return self.producer.send(topic, value=value.encode(), partition=partition)

    def flush(self) -> None:
        _translated(lambda: self.producer.flush(timeout=TIMEOUT_S))

    def commit(self) -> None:
        # A batch that was refused takes a new epoch in mid transaction, and what is left of it is
        # committed: that records are missing then, only their futures tell.
        for future in self._sent:
            _translated(partial(future.get, TIMEOUT_S))
        _translated(self.producer.commit_transaction)

    def abort(self) -> None:
        _translated(self.producer.abort_transaction)

    def close(self) -> None:
        self.producer.close(timeout=0)


class Python:
    name = "kafka-python"

    def open(
        self, bootstrap: str, transactional_id: str, timeout_ms: int = TIMEOUT_MS
    ) -> PythonProducer:
        return PythonProducer(bootstrap, transactional_id, timeout_ms)

    def transform(self, bootstrap: str, job: Transform) -> None:
        consumer = KafkaConsumer(
            job.source,
            bootstrap_servers=bootstrap,
            group_id=job.group_id,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            metrics_enabled=False,
        )
        producer = self.open(bootstrap, job.transactional_id)
        try:
            messages = read_messages(consumer, job.count)
            producer.begin()
            for message in messages:
                producer.send(job.target, message.value.decode().upper())
            offsets = {
                TopicPartition(one.topic, one.partition): OffsetAndMetadata(one.offset + 1, "", -1)
                for one in messages
            }
            metadata = consumer.group_metadata()
            _translated(lambda: producer.producer.send_offsets_to_transaction(offsets, metadata))
            end(producer, job)
        finally:
            consumer.close()
            producer.close()
