"""One and a hundred partitions: every record is in its partition, in order, exactly once."""

from __future__ import annotations

import collections

import pytest

from compat_tests.clients.fixtures import Broker, ClientNamed, MakeTopic
from compat_tests.clients.model import Client, ProducerMode, Record

RECORDS_PER_PARTITION = 3


@pytest.mark.parametrize("partitions", [1, 100])
def test_one_consumer_reads_all_partitions(
    broker: Broker, make_topic: MakeTopic, client: Client, partitions: int
) -> None:
    topic = make_topic(partitions)
    # kcat writes to one partition per run: without one it spreads the records by their keys.
    keys = [f"key {number}".encode() for number in range(partitions * RECORDS_PER_PARTITION)]
    records = [Record(b"value of " + key, key=key) for key in keys]
    client.produce(broker.bootstrap, topic, records, partition=None)
    read = client.consume(broker.bootstrap, topic, len(records), partitions=range(partitions))
    assert sorted(one.key or b"" for one in read) == sorted(keys)
    assert all(one.value == b"value of " + (one.key or b"") for one in read)
    for own in _by_partition([(one.partition, one.offset) for one in read]).values():
        assert own == list(range(len(own)))


@pytest.mark.parametrize("producer", ["confluent-kafka", "kafka-python", "aiokafka", "java"])
def test_records_go_to_the_partition_that_was_named(
    broker: Broker, make_topic: MakeTopic, client_named: ClientNamed, producer: str
) -> None:
    topic = make_topic(10)
    client = client_named(producer)
    for partition in range(10):
        records = [Record(f"{partition}/{number}".encode()) for number in range(5)]
        deliveries = client.produce(broker.bootstrap, topic, records, partition=partition)
        assert [(one.partition, one.offset) for one in deliveries] == [
            (partition, number) for number in range(5)
        ]
    read = client.consume(broker.bootstrap, topic, 50, partitions=range(10))
    found = {(one.partition, one.offset): one.value for one in read}
    assert found == {
        (partition, number): f"{partition}/{number}".encode()
        for partition in range(10)
        for number in range(5)
    }


def test_equal_keys_meet_in_one_partition_and_keep_their_order(
    broker: Broker, make_topic: MakeTopic, client: Client
) -> None:
    topic = make_topic(7)
    records = [Record(str(number).encode(), key=b"k%d" % (number % 20)) for number in range(200)]
    client.produce(broker.bootstrap, topic, records, partition=None, mode=ProducerMode(codec="lz4"))
    read = client.consume(broker.bootstrap, topic, len(records), partitions=range(7))
    partitions_of = collections.defaultdict(set)
    values_of = collections.defaultdict(list)
    for one in read:
        partitions_of[one.key].add(one.partition)
        values_of[one.key].append(int(one.value or b""))
    assert all(len(partitions) == 1 for partitions in partitions_of.values())
    assert len(set.union(*partitions_of.values())) > 1
    assert {key: sorted(values) for key, values in values_of.items()} == dict(values_of)
    assert sum(len(values) for values in values_of.values()) == len(records)


def _by_partition(positions: list[tuple[int, int]]) -> dict[int, list[int]]:
    offsets: dict[int, list[int]] = collections.defaultdict(list)
    for partition, offset in positions:
        offsets[partition].append(offset)
    return offsets
