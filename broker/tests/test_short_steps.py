"""Loads that would hold up the event loop if they were served in one go.

The assertion is in conftest.py: after each test no step was longer than 50 ms of CPU time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from klamm.broker.handlers import load_routes
from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.raw_client import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    RawClient,
    batch,
    create_topic,
    delete_topic,
    fetch,
    fetch_from,
    frame,
    produce,
    produce_to,
)
from klamm.broker.tests.waiting import until
from klamm.wire import codec
from klamm.wire.messages.api_versions import ApiVersionsRequest
from klamm.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from klamm.wire.messages.metadata import MetadataRequest
from klamm.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from klamm.wire.records.codecs import Codec
from klamm.wire.records.record import build_batch
from klamm.wire.schema import Message
from klamm.wire.tests.samples import full_message

MANY = 500
LONG_MS = 60_000


def pipeline(client: RawClient, request: Message, version: int, count: int) -> None:
    """Send them all without waiting; read the replies meanwhile."""
    data = frame(request, version) * count
    sender = threading.Thread(target=client.socket.sendall, args=(data,))
    sender.start()
    for _ in range(count):
        client.receive_frame()
    sender.join()


def test_one_client_with_thousands_of_small_requests(client: RawClient) -> None:
    pipeline(client, ApiVersionsRequest(), 0, 10_000)


def test_one_client_with_many_expensive_requests(client: RawClient) -> None:
    create_topic(client, "topic", 200)
    pipeline(client, MetadataRequest(topics=None), 12, 300)


@pytest.fixture
def many(broker: RunningBroker, client: RawClient) -> Iterator[list[RawClient]]:
    create_topic(client, "topic")
    clients = [RawClient(broker) for _ in range(MANY)]
    yield clients
    for each in clients:
        each.close()


def park(broker: RunningBroker, clients: list[RawClient], max_wait_ms: int) -> None:
    for each in clients:
        each.send(fetch("topic", max_wait_ms=max_wait_ms), version=FETCH_VERSION)
    if max_wait_ms == LONG_MS:
        partition = broker.broker.partitions.get("topic", 0)
        assert partition is not None
        until(lambda: len(partition.parked) == len(clients))


def test_many_fetches_that_one_append_wakes(
    broker: RunningBroker, client: RawClient, many: list[RawClient]
) -> None:
    park(broker, many, LONG_MS)
    produce_to(client, "topic")
    for each in many:
        assert len(each.receive()[1].responses[0].partitions[0].records) > 0


def test_many_fetches_whose_topic_is_deleted(
    broker: RunningBroker, client: RawClient, many: list[RawClient]
) -> None:
    park(broker, many, LONG_MS)
    delete_topic(client, "topic")
    for each in many:
        assert each.receive()[1].responses[0].partitions[0].error_code != 0


def test_many_fetches_that_time_out_together(broker: RunningBroker, many: list[RawClient]) -> None:
    park(broker, many, 300)
    for each in many:
        each.receive()


def test_many_producers_that_wait_for_one_sync(many: list[RawClient]) -> None:
    for each in many:
        each.send(produce("topic"), version=PRODUCE_VERSION)
    for each in many:
        assert each.receive()[1].responses[0].partition_responses[0].error_code == 0


def test_many_that_come_and_go_at_once(broker: RunningBroker, many: list[RawClient]) -> None:
    (listener,) = broker.broker.listeners
    until(lambda: len(listener.connections) == MANY + 1)
    for each in many:
        each.close()
    until(lambda: len(listener.connections) == 1)


def test_a_topic_of_many_partitions(client: RawClient) -> None:
    create_topic(client, "topic", 300)
    delete_topic(client, "topic")


def test_the_largest_produce_and_the_largest_fetch(client: RawClient) -> None:
    create_topic(client, "topic", 8)
    records = batch(b"x" * 1_000_000)
    partitions = [PartitionProduceData(index=index, records=records) for index in range(8)]
    request = ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name="topic", partition_data=partitions)],
    )
    for _ in range(3):
        response = client.call(request, PRODUCE_VERSION)
        results = response.responses[0].partition_responses
        assert {result.error_code for result in results} == {0}
    every_partition = tuple(range(8))
    fetched = client.call(fetch("topic", partitions=every_partition), FETCH_VERSION)
    assert sum(len(each.records) for each in fetched.responses[0].partitions) > 20_000_000


def test_a_search_in_a_batch_that_takes_long_to_open(broker: RunningBroker) -> None:
    """The record that is looked for is the last of 100,000."""
    others = [(None, b"", (), 1000)] * 100_000
    records = build_batch([*others, (None, b"", (), 2000)], codec=Codec.GZIP)
    with RawClient(broker) as client:
        create_topic(client, "topic")
        produce_to(client, "topic", records)
        for timestamp in (2000, -3):
            asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
            request = ListOffsetsRequest(
                replica_id=-1, topics=[ListOffsetsTopic(name="topic", partitions=[asked])]
            )
            found = client.call(request, 8).topics[0].partitions[0]
            assert (found.timestamp, found.offset) == (2000, 100_000)


def test_the_first_use_of_every_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoders and encoders are compiled when they are first needed."""
    with running_broker() as broker, RawClient(broker) as client:
        for route in load_routes().values():
            for version in range(route.min_version, route.max_version + 1):
                request = frame(full_message(route.request, version), version)
                monkeypatch.setattr(codec, "_decoders", {})
                monkeypatch.setattr(codec, "_encoders", {})
                client.socket.sendall(request)
                client.receive_frame()


def test_a_slow_reader_does_not_hold_up_others(broker: RunningBroker, client: RawClient) -> None:
    create_topic(client, "topic")
    for _ in range(20):
        produce_to(client, "topic", batch(b"x" * 1_000_000))
    with RawClient(broker, receive_buffer=4096) as slow:
        slow.send(fetch("topic"), version=FETCH_VERSION)
        for offset in range(20, 40):
            assert produce_to(client, "topic").base_offset == offset
            assert fetch_from(client, "topic", offset).high_watermark == offset + 1
        slow.receive()
