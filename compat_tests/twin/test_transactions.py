"""Transactions from their begin to their end: replies, markers, and what readers get to see."""

from __future__ import annotations

import time

import pytest

from compat_tests.twin.batches import BASE_TIMESTAMP_MS, R, batch
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.logs import write
from compat_tests.twin.topics import Twin
from compat_tests.twin.transactions import (
    ADDING,
    EARLIEST,
    LATEST,
    OF_LARGEST_TIME,
    READ_COMMITTED,
    VERIFYING,
    Producer,
    compare_committed,
    compare_offsets,
)


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
@pytest.mark.every_version("end_txn", since=5)
def test_of_version_2(
    twin: Twin, talk: Conversation, producer: Producer, version: int, commit: bool
) -> None:
    topic = twin.create_topic(partitions=2)
    producer.init(talk)
    producer.describe(talk)
    for values in ((b"a", b"b"), (b"c",)):
        producer.write(talk, topic, *values)
        producer.write(talk, topic, *values, partition=1)
        producer.describe(talk)
        compare_committed(talk, topic)
        producer.end(talk, commit=commit, version=version)
        producer.settle(talk)
        producer.describe(talk)
        for partition in (0, 1):
            compare_committed(talk, topic, partition)


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
@pytest.mark.every_version("end_txn", until=4)
def test_of_version_1(
    twin: Twin, talk: Conversation, producer: Producer, version: int, commit: bool
) -> None:
    topic = twin.create_topic(partitions=2)
    producer.init(talk, min(version, 4))
    for values in ((b"a", b"b"), (b"c",)):
        producer.add(talk, {topic: [0, 1]}, min(version, 3))
        producer.describe(talk)
        for partition in (0, 1):
            producer.write(talk, topic, *values, version=VERIFYING, partition=partition)
        producer.add_offsets(talk, "a group", version)
        producer.describe(talk)
        compare_committed(talk, topic)
        producer.end(talk, commit=commit, version=version)
        producer.settle(talk)
        producer.describe(talk)
        for partition in (0, 1):
            compare_committed(talk, topic, partition)


@pytest.mark.every_version("produce")
def test_every_version_of_produce(
    twin: Twin, talk: Conversation, producer: Producer, version: int
) -> None:
    topic = twin.create_topic()
    producer.init(talk)
    if version < ADDING:
        producer.add(talk, {topic: [0]})
    producer.write(talk, topic, b"one", version=version)
    producer.write(talk, topic, b"two", version=version)
    producer.end(talk, version=5 if version >= ADDING else 4)
    producer.settle(talk)
    compare_committed(talk, topic)


@pytest.mark.every_version("produce")
def test_a_partition_that_was_not_added(
    twin: Twin, talk: Conversation, producer: Producer, version: int
) -> None:
    """Before version 12 it is refused, since then it is added."""
    topic, other = twin.create_topic(), twin.create_topic()
    producer.init(talk)
    producer.write(talk, topic, version=version)
    producer.add(talk, {other: [0]})
    producer.write(talk, topic, version=version)
    producer.describe(talk)
    producer.end(talk, commit=False, version=5)
    producer.settle(talk)
    compare_committed(talk, topic)


@pytest.mark.every_version("produce")
def test_writers_that_are_not_who_they_say(
    twin: Twin, talk: Conversation, producer: Producer, version: int
) -> None:
    topic = twin.create_topic()
    producer.init(talk)
    producer.add(talk, {topic: [0]})
    for who in ({"epoch": 1}, {"epoch": -1}, {"producer": 1 << 40}):
        producer.write(talk, topic, version=version, advance=False, **who)
    nobody = producer.copy()
    nobody.id = twin.unused_name("nobody")
    nobody.write(talk, topic, version=version)
    producer.write(talk, topic, version=version)
    compare_committed(talk, topic)


def test_several_transactions_side_by_side(twin: Twin, talk: Conversation) -> None:
    """The oldest one that is open holds back all readers of committed data."""
    twin.wait_until_transactions_are_served()
    topic = twin.create_topic()
    first, second, third = (Producer(twin) for _ in range(3))
    for one in (first, second, third):
        one.init(talk)
        one.write(talk, topic, one.id.encode())
    for one, commit in ((second, False), (third, True), (first, False)):
        compare_committed(talk, topic)
        one.end(talk, commit=commit)
        one.settle(talk)
    first.write(talk, topic, b"again")
    compare_committed(talk, topic)
    first.end(talk)
    first.settle(talk)
    compare_committed(talk, topic)


def test_a_second_producer_fences_the_first(
    twin: Twin, talk: Conversation, producer: Producer
) -> None:
    topic = twin.create_topic()
    producer.init(talk)
    producer.write(talk, topic, b"lost")
    zombie = producer.copy()
    producer.init(talk, wait=False)
    producer.settle(talk)
    producer.describe(talk)
    compare_committed(talk, topic)
    zombie.write(talk, topic, b"zombie", advance=False)
    producer.init(talk)
    producer.write(talk, topic, b"kept")
    zombie.write(talk, topic, b"zombie", advance=False)
    for commit in (True, False):
        zombie.end(talk, commit=commit)
        zombie.end(talk, commit=commit, version=4)
    zombie.add(talk, {topic: [0]})
    zombie.add_offsets(talk, "group")
    producer.end(talk)
    producer.settle(talk)
    compare_committed(talk, topic)


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
@pytest.mark.every_version("list_offsets", since=2)
def test_offsets_by_time(
    twin: Twin, talk: Conversation, producer: Producer, version: int, commit: bool
) -> None:
    """Whoever wants committed data only finds nothing at or above the last stable offset: not even
    the largest time, when that is there. Aborted records are found like others."""
    topic = twin.create_topic()
    # Ahead of the clock, so that no marker is later.
    ahead = time.time_ns() // 1_000_000 + 600_000
    first, second, third = (BASE_TIMESTAMP_MS + delay for delay in (10, 20, 30))
    near = [one + delta for one in (first, second, third, ahead) for delta in (-1, 0, 1)]
    times = (LATEST, EARLIEST, OF_LARGEST_TIME, 0, *near)

    def compare() -> None:
        for isolation in (READ_COMMITTED, 0):
            compare_offsets(talk, topic, times=times, isolation=isolation, version=version)

    producer.init(talk)
    write(talk, topic, batch(R(), base_timestamp=first))
    compare()
    producer.write(talk, topic, b"open", at=second)
    compare()
    producer.write(talk, topic, b"newest", at=ahead)
    write(talk, topic, batch(R(), base_timestamp=third))
    compare()
    producer.end(talk, commit=commit)
    producer.settle(talk)
    compare()
    producer.write(talk, topic, b"next", at=ahead + 1)
    compare()
