"""The two Python libraries as members of groups, behind the few calls that the worker makes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

Offsets = Mapping[tuple[str, int], int]

# Long, because a poll that ends while the group rebalances costs another rebalance, see below.
KAFKA_PYTHON_POLL_MS = 500
Done = Callable[[str | None], None]
# What librdkafka writes for whoever sends offsets to a transaction begins with the generation.
_CONFLUENT_METADATA = struct.Struct("=7xi")


class Consumer(Protocol):
    """A consumer that has subscribed."""

    def poll(self, timeout_s: float) -> list[tuple[str, int, int, str]]: ...

    def assignment(self) -> list[tuple[str, int]]: ...

    def commit(self, offsets: Offsets, how: str, done: Done) -> None: ...

    def commit_with_metadata(
        self, topic: str, partition: int, offset: int, metadata: str
    ) -> None: ...

    def committed(self, topic: str, partition: int) -> tuple[int, str | None] | None: ...

    def member_id(self) -> str: ...

    def generation(self) -> int:
        """Of the assignment that it has, or its epoch in the new protocol; -1 without any."""

    def close(self) -> None: ...


class ConfluentConsumer:
    """confluent-kafka, with either protocol."""

    def __init__(
        self, settings: dict[str, Any], topics: Sequence[str], rebalanced: Callable[[], None]
    ) -> None:
        from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

        self._partition = TopicPartition
        self._exception = KafkaException
        self._done: list[Done] = []
        # What librdkafka tells while it goes on by itself.
        self._passing = {
            KafkaError._TRANSPORT,
            KafkaError._ALL_BROKERS_DOWN,
            KafkaError._RESOLVE,
            KafkaError._MAX_POLL_EXCEEDED,
            KafkaError.UNKNOWN_TOPIC_OR_PART,
            KafkaError._UNKNOWN_TOPIC,
            KafkaError._UNKNOWN_PARTITION,
            KafkaError.NOT_COORDINATOR,
            KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
            KafkaError.COORDINATOR_NOT_AVAILABLE,
        }
        self._consumer = Consumer({**settings, "on_commit": self._on_commit})
        self._consumer.subscribe(
            list(topics),
            on_assign=lambda *_: rebalanced(),
            on_revoke=lambda *_: rebalanced(),
            on_lost=lambda *_: rebalanced(),
        )

    def poll(self, timeout_s: float) -> list[tuple[str, int, int, str]]:
        found: list[tuple[str, int, int, str]] = []
        for message in self._consumer.consume(100, timeout=timeout_s):
            error = message.error()
            if error is None:
                where = (message.topic() or "", message.partition() or 0, message.offset() or 0)
                found.append((*where, (message.value() or b"").decode()))
            elif error.code() not in self._passing and not error.retriable():
                raise self._exception(error)
        return found

    def assignment(self) -> list[tuple[str, int]]:
        return sorted((one.topic, one.partition) for one in self._consumer.assignment())

    def commit(self, offsets: Offsets, how: str, done: Done) -> None:
        wanted = [self._partition(*where, offset) for where, offset in offsets.items()]
        if how == "async":
            self._done.append(done)
            self._consumer.commit(offsets=wanted, asynchronous=True)
            return
        try:
            answers = self._consumer.commit(offsets=wanted, asynchronous=False)
        except self._exception as error:
            done(error.args[0].name())
        else:
            errors = [one.error for one in answers if one.error is not None]
            done(errors[0].name() if errors else None)

    def _on_commit(self, error: Any, offsets: Any) -> None:
        """Commits are answered in the order in which they were sent; others have no listener."""
        if self._done:
            self._done.pop(0)(None if error is None else error.name())

    def commit_with_metadata(self, topic: str, partition: int, offset: int, metadata: str) -> None:
        where = self._partition(topic, partition, offset, metadata=metadata)
        self._consumer.commit(offsets=[where], asynchronous=False)

    def committed(self, topic: str, partition: int) -> tuple[int, str | None] | None:
        (answer,) = self._consumer.committed([self._partition(topic, partition)], timeout=20)
        return None if answer.offset < 0 else (answer.offset, answer.metadata or "")

    def member_id(self) -> str:
        return str(self._consumer.memberid())

    def generation(self) -> int:
        metadata = self._consumer.consumer_group_metadata()
        return int(_CONFLUENT_METADATA.unpack_from(metadata)[0])

    def close(self) -> None:
        self._consumer.close()


class KafkaPythonConsumer:
    """kafka-python, which has the classic protocol alone."""

    def __init__(
        self, settings: dict[str, Any], topics: Sequence[str], rebalanced: Callable[[], None]
    ) -> None:
        from compat_tests.clients import kafka_python

        # The last assignment that was complete, and its generation. The library knows the next
        # generation as soon as it has joined, and the assignment that belongs to it only later.
        self._assigned: tuple[list[tuple[str, int]], int] = ([], -1)
        consumer = self

        class Listener(kafka_python.ConsumerRebalanceListener):  # type: ignore[misc]
            def on_partitions_revoked(self, revoked: Any) -> None:
                rebalanced()

            def on_partitions_assigned(self, assigned: Any) -> None:
                generation = consumer._consumer._coordinator._generation.generation_id
                consumer._assigned = (consumer.assignment(), int(generation))
                rebalanced()

        self._library = kafka_python
        names = settings.pop("assignors", ["range"])
        chosen = [kafka_python.ASSIGNORS[name] for name in names]
        settings = {"partition_assignment_strategy": chosen, "metrics_enabled": False, **settings}
        self._consumer = kafka_python.KafkaConsumer(**settings)
        self._consumer.subscribe(list(topics), listener=Listener())

    def poll(self, timeout_s: float) -> list[tuple[str, int, int, str]]:
        self._join_again_when_forgotten()
        try:
            polled = self._consumer.poll(timeout_ms=KAFKA_PYTHON_POLL_MS, max_records=100)
        except self._library.KafkaError as error:
            # The broker is away for a moment.
            if not error.retriable:
                raise
            return []
        return [
            (message.topic, message.partition, message.offset, message.value.decode())
            for messages in polled.values()
            for message in messages
        ]

    def assignment(self) -> list[tuple[str, int]]:
        return sorted((one.topic, one.partition) for one in self._consumer.assignment())

    def commit(self, offsets: Offsets, how: str, done: Done) -> None:
        wanted = {
            self._library.TopicPartition(*where): self._library.OffsetAndMetadata(offset, "", -1)
            for where, offset in offsets.items()
        }
        if how == "async":

            def called(_: Any, outcome: Any) -> None:
                failed = isinstance(outcome, Exception)
                done(type(outcome).__name__ if failed else None)

            self._consumer.commit_async(wanted, callback=called)
            return
        try:
            self._consumer.commit(wanted)
        except self._library.KafkaError as error:
            done(type(error).__name__)
        else:
            done(None)

    def commit_with_metadata(self, topic: str, partition: int, offset: int, metadata: str) -> None:
        where = self._library.TopicPartition(topic, partition)
        self._consumer.commit({where: self._library.OffsetAndMetadata(offset, metadata, -1)})

    def committed(self, topic: str, partition: int) -> tuple[int, str | None] | None:
        where = self._library.TopicPartition(topic, partition)
        answer = self._consumer.committed(where, metadata=True)
        return None if answer is None else (answer.offset, answer.metadata)

    def _join_again_when_forgotten(self) -> None:
        """kafka-python 3.0.12 forgets its assignment, whatever the broker is.

        When a poll ends while SyncGroup is under way, the library has stopped to look for the
        answer by the next poll, and stays a member without partitions.
        """
        coordinator = self._consumer._coordinator
        if coordinator.rejoining and not coordinator.need_rejoin():
            coordinator.request_rejoin()

    def member_id(self) -> str:
        return str(self._consumer._coordinator._generation.member_id)

    def generation(self) -> int:
        partitions, generation = self._assigned
        return generation if partitions == self.assignment() else -1

    def close(self) -> None:
        self._consumer.close()


LIBRARIES: Mapping[str, Callable[..., Consumer]] = {
    "confluent-kafka": ConfluentConsumer,
    "kafka-python": KafkaPythonConsumer,
}
