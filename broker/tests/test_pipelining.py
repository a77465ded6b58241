"""Several requests under way on one connection: order, barriers, and one sync for many."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.raw_client import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    RawClient,
    batch,
    create_topic,
    fetch,
    fetch_from,
    frame,
    produce,
    produce_to,
)
from klamm.broker.tests.watched_fs import WatchedFileSystem
from klamm.wire.messages.api_versions import ApiVersionsRequest
from klamm.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from klamm.wire.messages.init_producer_id import InitProducerIdRequest
from klamm.wire.messages.metadata import MetadataRequest
from klamm.wire.records.codecs import Codec

LONG_POLL_MS = 600


@pytest.fixture
def fs() -> WatchedFileSystem:
    return WatchedFileSystem()


@pytest.fixture
def broker(tmp_path: Path, fs: WatchedFileSystem) -> Iterator[RunningBroker]:
    with running_broker(tmp_path / "data", fs=fs) as running:
        yield running


def answers(client: RawClient, count: int) -> list[int]:
    """The numbers of the requests that the next replies belong to."""
    return [client.receive()[0] for _ in range(count)]


def test_a_produce_behind_a_long_poll_is_done_at_once_and_answered_in_turn(
    broker: RunningBroker, client: RawClient
) -> None:
    create_topic(client, "quiet")
    create_topic(client, "busy")
    first = client.sent
    client.send(fetch("quiet", max_wait_ms=LONG_POLL_MS), version=FETCH_VERSION)
    client.send(produce("busy"), version=PRODUCE_VERSION)
    client.send(ApiVersionsRequest(), version=0)
    with RawClient(broker) as other:
        # It waits for the append, and the long poll of the first client is not over yet.
        assert len(fetch_from(other, "busy", max_wait_ms=10_000).records) > 0
    assert answers(client, 3) == [first + 1, first + 2, first + 3]


def test_a_produce_wakes_the_long_poll_in_front_of_it(client: RawClient) -> None:
    create_topic(client, "topic")
    first = client.sent
    client.send(fetch("topic", max_wait_ms=20_000), version=FETCH_VERSION)
    client.send(produce("topic", batch(b"hello")), version=PRODUCE_VERSION)
    number, fetched = client.receive()
    assert number == first + 1
    assert b"hello" in bytes(fetched.responses[0].partitions[0].records)
    number, produced = client.receive()
    assert number == first + 2
    assert produced.responses[0].partition_responses[0].base_offset == 0


def test_requests_behind_one_that_takes_a_task_wait_for_it(client: RawClient) -> None:
    """A producer may send to a topic in the same breath in which it makes it."""
    topic = CreatableTopic(name="new", num_partitions=20, replication_factor=1)
    first = client.sent
    client.socket.sendall(
        client.frame(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7)
        + client.frame(produce("new", partition=19), PRODUCE_VERSION)
        + client.frame(InitProducerIdRequest(transactional_id=None, producer_id=-1), 5)
        + client.frame(fetch("new", partitions=(19,)), FETCH_VERSION)
    )
    replies = [client.receive() for _ in range(4)]
    assert [number for number, _ in replies] == [first + 1, first + 2, first + 3, first + 4]
    created, produced, identity, fetched = (response for _, response in replies)
    assert created.topics[0].error_code == 0
    assert produced.responses[0].partition_responses[0].error_code == 0
    assert identity.error_code == 0
    assert len(fetched.responses[0].partitions[0].records) > 0


def test_a_batch_that_is_opened_in_a_thread_is_not_overtaken(client: RawClient) -> None:
    """Otherwise the sequences of an idempotent producer would be out of order."""
    create_topic(client, "topic", configs={"compression.type": "gzip"})
    producer = client.call(InitProducerIdRequest(transactional_id=None, producer_id=-1))
    first = client.sent
    frames = []
    for number in range(10):
        # The even ones have to be compressed again, the odd ones are kept as they are.
        records = batch(
            b"x" * 200_000,
            codec=Codec.ZSTD if number % 2 == 0 else Codec.GZIP,
            producer_id=producer.producer_id,
            producer_epoch=0,
            base_sequence=number,
        )
        frames.append(client.frame(produce("topic", records), PRODUCE_VERSION))
    client.socket.sendall(b"".join(frames))
    results = []
    for number in range(10):
        answered, response = client.receive()
        assert answered == first + 1 + number
        results.append(response.responses[0].partition_responses[0])
    assert [(result.error_code, result.base_offset) for result in results] == [
        (0, offset) for offset in range(10)
    ]


def wait_for_offset(broker: RunningBroker, topic: str, offset: int) -> None:
    """Wait until that offset is in the log; whether it is synced does not matter."""
    with RawClient(broker) as reader:
        while fetch_from(reader, topic).high_watermark <= offset:
            pass


def test_pipelined_appends_share_a_sync(
    broker: RunningBroker, client: RawClient, fs: WatchedFileSystem
) -> None:
    create_topic(client, "topic")
    before = fs.syncs_of("topic")
    gate = fs.hold_syncs_of("topic")
    client.send(produce("topic"), version=PRODUCE_VERSION)
    gate.wait_for_arrival()
    # While the first sync is under way, all these are appended and wait for the next one.
    client.send(*[produce("topic") for _ in range(30)], version=PRODUCE_VERSION)
    client.send(ApiVersionsRequest(), version=0)
    wait_for_offset(broker, "topic", 30)
    gate.let_through()
    client.receive()
    gate.wait_for_arrival()
    gate.let_through()
    offsets = []
    for _ in range(30):
        response = client.receive()[1]
        offsets.append(response.responses[0].partition_responses[0].base_offset)
    assert offsets == list(range(1, 31))
    assert client.receive()[0] == client.sent
    assert fs.syncs_of("topic") - before == 2


def test_connections_share_a_sync_too(
    broker: RunningBroker, client: RawClient, fs: WatchedFileSystem
) -> None:
    create_topic(client, "topic")
    before = fs.syncs_of("topic")
    gate = fs.hold_syncs_of("topic")
    client.send(produce("topic"), version=PRODUCE_VERSION)
    gate.wait_for_arrival()
    others = [RawClient(broker) for _ in range(20)]
    for other in others:
        other.send(produce("topic"), version=PRODUCE_VERSION)
    wait_for_offset(broker, "topic", 20)
    gate.let_through(2)
    for other in others:
        assert other.receive()[1].responses[0].partition_responses[0].error_code == 0
        other.close()
    client.receive()
    assert fs.syncs_of("topic") - before == 2


def test_a_reply_with_acks_one_does_not_wait_for_the_disk(
    client: RawClient, fs: WatchedFileSystem
) -> None:
    create_topic(client, "topic")
    gate = fs.hold_syncs_of("topic")
    assert produce_to(client, "topic", acks=1).base_offset == 0
    client.send(produce("topic"), version=PRODUCE_VERSION)
    gate.wait_for_arrival()
    client.send(produce("topic", acks=1), version=PRODUCE_VERSION)
    client.socket.settimeout(0.2)
    with pytest.raises(TimeoutError):
        # The order of replies holds: the quick one waits for the slow one before it.
        client.receive()
    client.socket.settimeout(20)
    gate.let_through(2)
    assert answers(client, 2) == [client.sent - 1, client.sent]


def test_every_way_to_cut_a_stream_of_real_requests_gives_the_same_replies(
    broker: RunningBroker, client: RawClient
) -> None:
    create_topic(client, "topic")
    produce_to(client, "topic")
    stream = (
        frame(ApiVersionsRequest(), 0, 1)
        + frame(MetadataRequest(topics=None), 9, 2)
        + frame(fetch("topic"), FETCH_VERSION, 3)
    )
    client.socket.sendall(stream)
    expected = [client.receive_frame() for _ in range(3)]
    with RawClient(broker) as other:
        for cut in range(1, len(stream)):
            other.socket.sendall(stream[:cut])
            other.socket.sendall(stream[cut:])
            assert [other.receive_frame() for _ in range(3)] == expected
