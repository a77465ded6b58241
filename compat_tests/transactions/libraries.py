"""Transactional producers of three libraries, in one form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka import KafkaError as ConfluentError
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PythonPartition
from kafka.errors import InvalidProducerEpochError, KafkaError, ProducerFencedError
from kafka.structs import OffsetAndMetadata

from compat_tests.clients.java_client import JavaError, JavaProcess
from compat_tests.clients.kafka_python import read_messages as read_python
from compat_tests.clients.librdkafka import read_messages as read_confluent

TIMEOUT_S = 60.0
TIMEOUT_MS = 60_000
FENCED_IN_JAVA = ("ProducerFencedException", "InvalidProducerEpochException")


class FencedError(Exception):
    """Another producer with the same transactional id has taken over."""


class TransactionError(Exception):
    """Anything else that a library raises."""


class TransactionalProducer(Protocol):
    """A producer that is initialised. Each method may raise one of the errors above."""

    def begin(self) -> None: ...

    def send(self, topic: str, value: str, partition: int = 0) -> None:
        """Hand a record over; commit waits for it."""

    def flush(self) -> None:
        """Wait until everything is acknowledged."""

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None:
        """Go without a word to the broker, as far as the library lets one."""


@dataclass(frozen=True)
class Transform:
    """Read a number of records as a member of a group, write them elsewhere in upper case, and
    commit what was read, all in one transaction."""

    source: str
    target: str
    group_id: str
    transactional_id: str
    count: int
    commits: bool = True


class Library(Protocol):
    name: str

    def open(
        self, bootstrap: str, transactional_id: str, timeout_ms: int = TIMEOUT_MS
    ) -> TransactionalProducer: ...

    def transform(self, bootstrap: str, job: Transform) -> None: ...


# --- confluent-kafka ---


def _confluent(call: Callable[[], Any]) -> None:
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
                # for the broker that it remembers as the group's coordinator.
                "metadata.recovery.strategy": "none",
                "transaction.timeout.ms": timeout_ms,
                "reconnect.backoff.max.ms": 500,
                "linger.ms": 2,
            }
        )
        _confluent(lambda: self.producer.init_transactions(TIMEOUT_S))

    def begin(self) -> None:
        _confluent(self.producer.begin_transaction)

    def send(self, topic: str, value: str, partition: int = 0) -> None:
        _confluent(lambda: self.producer.produce(topic, value=value, partition=partition))

    def flush(self) -> None:
        assert self.producer.flush(TIMEOUT_S) == 0

    def commit(self) -> None:
        _confluent(lambda: self.producer.commit_transaction(TIMEOUT_S))

    def abort(self) -> None:
        _confluent(lambda: self.producer.abort_transaction(TIMEOUT_S))

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
            messages = read_confluent(consumer, job.count)
            producer.begin()
            for message in messages:
                value = message.value()
                assert isinstance(value, bytes)
                producer.send(job.target, value.decode().upper())
            offsets = _ends_of(messages)
            metadata = consumer.consumer_group_metadata()
            _confluent(
                lambda: producer.producer.send_offsets_to_transaction(offsets, metadata, TIMEOUT_S)
            )
            _end(producer, job)
        finally:
            consumer.close()


def _ends_of(messages: list[Message]) -> list[TopicPartition]:
    ends: dict[tuple[str | None, int | None], int] = {}
    for message in messages:
        offset = message.offset()
        assert offset is not None
        ends[message.topic(), message.partition()] = offset + 1
    return [TopicPartition(str(topic), int(part or 0), end) for (topic, part), end in ends.items()]


# --- kafka-python ---


def _python(call: Callable[[], Any]) -> None:
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
        _python(self.producer.init_transactions)

    def begin(self) -> None:
        _python(self.producer.begin_transaction)

    def send(self, topic: str, value: str, partition: int = 0) -> None:
        _python(lambda: self.producer.send(topic, value=value.encode(), partition=partition))

    def flush(self) -> None:
        _python(lambda: self.producer.flush(timeout=TIMEOUT_S))

    def commit(self) -> None:
        _python(self.producer.commit_transaction)

    def abort(self) -> None:
        _python(self.producer.abort_transaction)

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
            messages = read_python(consumer, job.count)
            producer.begin()
            for message in messages:
                producer.send(job.target, message.value.decode().upper())
            offsets = {
                PythonPartition(one.topic, one.partition): OffsetAndMetadata(one.offset + 1, "", -1)
                for one in messages
            }
            metadata = consumer.group_metadata()
            _python(lambda: producer.producer.send_offsets_to_transaction(offsets, metadata))
            _end(producer, job)
        finally:
            consumer.close()
            producer.close()


def _end(producer: TransactionalProducer, job: Transform) -> None:
    # What was not sent yet would be dropped by an abort.
    producer.flush()
    if job.commits:
        producer.commit()
    else:
        producer.abort()


# --- Java ---


class JavaProducer:
    def __init__(self, process: JavaProcess, config: Mapping[str, str]) -> None:
        self._process = process
        self._target = 0
        self._target = self._call("open", config=dict(config))["producer"]

    def _call(self, op: str, **arguments: Any) -> dict[str, Any]:
        try:
            return self._process.call(op, **arguments)
        except JavaError as error:
            if error.name in FENCED_IN_JAVA:
                raise FencedError(str(error)) from error
            raise TransactionError(str(error)) from error

    def _ask(self, what: str, **arguments: Any) -> None:
        self._call("transaction", target=self._target, what=what, **arguments)

    def begin(self) -> None:
        self._ask("begin")

    def send(self, topic: str, value: str, partition: int = 0) -> None:
        self._ask("send", topic=topic, partition=partition, value=value)

    def flush(self) -> None:
        self._ask("flush")

    def commit(self) -> None:
        self._ask("commit")

    def abort(self) -> None:
        self._ask("abort")

    def close(self) -> None:
        self._ask("close")


class Java:
    name = "java"

    def __init__(self, process: JavaProcess) -> None:
        self._process = process

    def open(
        self, bootstrap: str, transactional_id: str, timeout_ms: int = TIMEOUT_MS
    ) -> JavaProducer:
        return JavaProducer(self._process, _java_producer(bootstrap, transactional_id, timeout_ms))

    def transform(self, bootstrap: str, job: Transform) -> None:
        self._process.call(
            "transform",
            config={
                "bootstrap.servers": bootstrap,
                "group.id": job.group_id,
                "enable.auto.commit": "false",
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            },
            producer=_java_producer(bootstrap, job.transactional_id, TIMEOUT_MS),
            source=job.source,
            target=job.target,
            count=job.count,
            commits=job.commits,
        )


def _java_producer(bootstrap: str, transactional_id: str, timeout_ms: int) -> dict[str, str]:
    return {
        "bootstrap.servers": bootstrap,
        "transactional.id": transactional_id,
        "transaction.timeout.ms": str(timeout_ms),
        "reconnect.backoff.max.ms": "500",
    }
