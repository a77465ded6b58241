"""Copies a topic, partition by partition, as a member of a group: consume, transform, produce.

python -m compat_tests.transactions.copier BOOTSTRAP SOURCE TARGET GROUP ID GENERATION
"""

from __future__ import annotations

import sys

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from compat_tests.history.events import Event
from compat_tests.transactions.libraries import Confluent
from compat_tests.transactions.scope import Identity, Scope
from compat_tests.transactions.telling import die, stop_when_asked, stopping, tell_ready

TRANSACTION_TIMEOUT_MS = 8_000
SESSION_TIMEOUT_MS = 6_000
AT_ONCE_MAX = 40
COMMIT_TIMEOUT_S = 30.0


def main(
    bootstrap: str, source: str, target: str, group: str, transactional_id: str, generation: str
) -> None:
    stop_when_asked()
    identity = Identity(transactional_id, int(generation))
    try:
        producer = Confluent().open(bootstrap, transactional_id, TRANSACTION_TIMEOUT_MS)
        tell_ready()
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "session.timeout.ms": SESSION_TIMEOUT_MS,
                "heartbeat.interval.ms": 1000,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "reconnect.backoff.max.ms": 500,
            }
        )
        consumer.subscribe([source])
        while not stopping.is_set():
            messages = [one for one in consumer.consume(AT_ONCE_MAX, 0.2) if is_record(one)]
            if not messages:
                continue
            scope = Scope(producer, identity)
            offsets: dict[int, int] = {}
            for message in messages:
                number, offset, value = message.partition(), message.offset(), message.value()
                assert isinstance(value, bytes)
                assert number is not None
                assert offset is not None
                place = Event(
                    "invoke", "send", topic=target, partition=number, origin=value.decode()
                )
                scope.send(place, value.decode())
                offsets[number] = offset + 1
            producer.producer.send_offsets_to_transaction(
                [TopicPartition(source, number, end) for number, end in offsets.items()],
                consumer.consumer_group_metadata(),
                COMMIT_TIMEOUT_S,
            )
            scope.commit()
        consumer.close()
    except Exception as error:
        die(repr(error))


def is_record(message: Message) -> bool:
    """Whether it is one; errors that pass by themselves are not."""
    error = message.error()
    if error is None:
        return True
    if not error.retriable():
        raise KafkaException(error)
    return False


if __name__ == "__main__":
    main(*sys.argv[1:])
