"""Ten thousand partitions within four thousand descriptors."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from compat_tests.process.watched import WatchedKlamm

DESCRIPTORS_MAX = 4096
TOPICS = [f"topic-{number}" for number in range(10)]
PARTITIONS = 1000
# Spread over all of them, and more than files of logs may be open at a time.
STEP = 7
TIMEOUT_S = 120
POLL_S = 0.2


class KlammWithFewDescriptors(WatchedKlamm):
    ready_timeout_s = TIMEOUT_S

    def command(self) -> list[str]:
        limit = f'ulimit -n {DESCRIPTORS_MAX} && exec "$@"'
        return ["sh", "-c", limit, "sh", *super().command()]

    @property
    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))


@pytest.fixture
def klamm(tmp_path: Path) -> Iterator[KlammWithFewDescriptors]:
    process = KlammWithFewDescriptors(tmp_path / "data")
    process.start()
    yield process
    process.kill()


def some_partitions() -> list[tuple[str, int]]:
    every = [(topic, index) for topic in TOPICS for index in range(PARTITIONS)]
    return every[::STEP]


# Making them is most of the time.
@pytest.mark.timeout(600)
def test_they_are_all_served_within_the_limit(klamm: KlammWithFewDescriptors) -> None:
    create_all(klamm.bootstrap)
    write(klamm.bootstrap, "first")
    assert read(klamm.bootstrap, 1) == {place: ["first"] for place in some_partitions()}
    assert klamm.descriptors < DESCRIPTORS_MAX / 2
    klamm.kill()
    klamm.start()
    write(klamm.bootstrap, "second")
    expected = {place: ["first", "second"] for place in some_partitions()}
    assert read(klamm.bootstrap, 2) == expected
    assert klamm.descriptors < DESCRIPTORS_MAX / 2
    assert not [line for line in klamm.complaints() if "offline" in line or "Errno" in line]


def create_all(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for topic in TOPICS:
        made = admin.create_topics([NewTopic(topic, PARTITIONS, 1)], request_timeout=TIMEOUT_S)
        made[topic].result(TIMEOUT_S)


def write(bootstrap: str, value: str) -> None:
    failures: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "1"})
    for topic, index in some_partitions():
        producer.produce(
            topic,
            value,
            partition=index,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
        producer.poll(0)
    assert producer.flush(TIMEOUT_S) == 0
    assert failures == []


def read(bootstrap: str, count: int) -> dict[tuple[str, int], list[str]]:
    """What stands in each of the partitions, once each of them has so many records."""
    found: dict[tuple[str, int], list[str]] = {place: [] for place in some_partitions()}
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "any"})
    try:
        consumer.assign([TopicPartition(topic, index, 0) for topic, index in found])
        missing = count * len(found)
        gives_up_at = time.monotonic() + TIMEOUT_S
        while missing > 0:
            assert time.monotonic() < gives_up_at, f"{missing} records are missing"
            messages = consumer.consume(1000, POLL_S)
            for message in messages:
                assert message.error() is None
                topic, index, value = message.topic(), message.partition(), message.value()
                assert topic is not None
                assert index is not None
                found[topic, index].append((value or b"").decode())
            missing -= len(messages)
    finally:
        consumer.close()
    return found
