"""Group consumers of unmodified clients: they read everything once, and go on where they were."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.groups.group_client import until
from klamm.broker.tests.raw_client import RawClient, batch, create_topic, produce_to

# kafka-python reads its schemas, while it is imported, with a function that Python 3.11 calls
# deprecated.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka

COUNT = 50
# Long enough for kafka-python to join: when a poll ends while it joins, and the answer comes before
# the next poll, it forgets what it was assigned.
JOINED_WITHIN_MS = 10_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    with running_broker(tmp_path / "data") as running:
        with RawClient(running) as client:
            create_topic(client, "t", 2)
            for partition in (0, 1):
                produce_to(client, "t", batch(count=COUNT), partition=partition)
        yield running


def librdkafka(broker: RunningBroker, protocol: str) -> Consumer:
    settings: dict[str, Any] = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": "g",
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    return Consumer(settings)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_librdkafka(broker: RunningBroker, protocol: str) -> None:
    consumer = librdkafka(broker, protocol)
    consumer.subscribe(["t"])
    seen: list[tuple[int, int]] = []

    def read() -> bool:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            seen.append((message.partition(), message.offset()))
        return len(seen) >= 2 * COUNT

    until(read)
    assert sorted(seen) == [(partition, offset) for partition in (0, 1) for offset in range(COUNT)]
    consumer.commit(asynchronous=False)
    consumer.close()
    broker.kill()
    broker.start()
    again = librdkafka(broker, protocol)
    partitions = [TopicPartition("t", partition) for partition in (0, 1)]
    assert [each.offset for each in again.committed(partitions, timeout=20)] == [COUNT, COUNT]
    again.close()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    groups = admin.list_consumer_groups().result().valid
    assert [(group.group_id, group.type.name.lower()) for group in groups] == [("g", protocol)]
    admin.delete_consumer_groups(["g"])["g"].result()
    assert admin.list_consumer_groups().result().valid == []


def test_kafka_python(broker: RunningBroker) -> None:
    settings: dict[str, Any] = {
        "bootstrap_servers": broker.bootstrap,
        "group_id": "g",
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
    }
    with closing(kafka.KafkaConsumer("t", **settings)) as consumer:
        seen: list[tuple[int, int]] = []

        def read() -> bool:
            for records in consumer.poll(JOINED_WITHIN_MS).values():
                seen.extend((record.partition, record.offset) for record in records)
            return len(seen) >= 2 * COUNT

        until(read)
        assert sorted(seen) == [
            (partition, offset) for partition in (0, 1) for offset in range(COUNT)
        ]
        consumer.commit()
    broker.kill()
    broker.start()
    with closing(kafka.KafkaConsumer(**settings)) as again:
        assert again.committed(kafka.TopicPartition("t", 1)) == COUNT
