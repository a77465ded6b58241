"""Partitions of a fetch session that sleep while there is nothing to tell, and what wakes them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from klamm.broker.fetch_session import FetchSession
from klamm.broker.testing import RunningBroker
from klamm.broker.tests.raw_client import (
    FETCH_VERSION,
    RawClient,
    batch,
    create_topic,
    delete_topic,
    fetch,
    produce_to,
)
from klamm.broker.tests.waiting import until
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from klamm.wire.messages.fetch import FetchRequest, ForgottenTopic

TOPIC = "topic"
PARTITIONS = 4
# Longer than any test takes: who waits this long was not woken.
LONG_MS = 60_000


class Consumer:
    """Fetches all partitions in a session, and goes on from what it has got."""

    def __init__(self, broker: RunningBroker, client: RawClient) -> None:
        self.client = client
        self.offsets = dict.fromkeys(range(PARTITIONS), 0)
        self.log_starts = dict.fromkeys(range(PARTITIONS), 0)
        self.moved: list[int] = []
        self.epoch = 0
        opening = fetch(TOPIC, partitions=tuple(self.offsets))
        opening.session_epoch = 0
        response = client.call(opening, FETCH_VERSION)
        self.session_id = response.session_id
        self._take(response)
        session = broker.broker.fetch_sessions.get(self.session_id)
        assert session is not None
        self.session: FetchSession = session
        # The partitions fall asleep when they are found unchanged, so not before this.
        self.poll()

    def request(self, **options: Any) -> FetchRequest:
        self.epoch += 1
        request = fetch(TOPIC, **options)
        request.session_id, request.session_epoch = self.session_id, self.epoch
        (topic,) = request.topics
        topic.partitions = [
            partition
            for index in self.moved
            for partition in fetch(TOPIC, self.offsets[index], partitions=(index,))
            .topics[0]
            .partitions
        ]
        if not self.moved:
            request.topics = []
        return request

    def poll(self, **options: Any) -> list[int]:
        """The partitions that the reply carries, in its order."""
        return self._take(self.client.call(self.request(**options), FETCH_VERSION))

    def park(self, **options: Any) -> None:
        self.client.send(self.request(max_wait_ms=LONG_MS, **options), version=FETCH_VERSION)
        until(lambda: getattr(self.session.reader, "on_woken", None) is not None)

    def receive(self) -> list[int]:
        return self._take(self.client.receive()[1])

    def _take(self, response: Any) -> list[int]:
        assert response.error_code == 0
        told = [partition for topic in response.responses for partition in topic.partitions]
        self.moved = []
        for partition in told:
            assert partition.error_code == 0
            index = partition.partition_index
            self.log_starts[index] = partition.log_start_offset
            if count := len(partition.records) // len(batch()):
                self.offsets[index] += count
                self.moved.append(index)
        return [partition.partition_index for partition in told]

    def awake(self) -> list[int]:
        return sorted(asked.index for asked in self.session.awake)


@pytest.fixture
def other(broker: RunningBroker, client: RawClient) -> RawClient:
    """Somebody else, who has made the topic."""
    create_topic(client, TOPIC, PARTITIONS)
    return client


@pytest.fixture
def consumer(broker: RunningBroker, other: RawClient) -> Any:
    with RawClient(broker) as connected:
        yield Consumer(broker, connected)


def sleepers(broker: RunningBroker) -> int:
    return sum(len(partition.parked) for partition in broker.broker.partitions)


def delete_records(client: RawClient, index: int, offset: int) -> None:
    asked = DeleteRecordsPartition(partition_index=index, offset=offset)
    topic = DeleteRecordsTopic(name=TOPIC, partitions=[asked])
    response = client.call(DeleteRecordsRequest(topics=[topic], timeout_ms=10_000))
    assert response.topics[0].partitions[0].error_code == 0


def test_only_what_has_changed_is_read(consumer: Consumer, other: RawClient) -> None:
    assert consumer.awake() == []
    produce_to(other, TOPIC, partition=2)
    assert consumer.awake() == [2]
    assert consumer.poll() == [2]
    # It is asked for again, with another offset, and then has nothing more to tell.
    assert consumer.poll() == []
    assert consumer.awake() == []


@pytest.mark.parametrize("index", range(PARTITIONS))
def test_an_append_to_a_sleeper_wakes_the_fetch(
    consumer: Consumer, other: RawClient, index: int
) -> None:
    consumer.park()
    produce_to(other, TOPIC, partition=index)
    assert consumer.receive() == [index]


def test_what_wakes_while_a_fetch_waits_is_answered_in_the_order_of_the_session(
    consumer: Consumer, other: RawClient
) -> None:
    consumer.park(min_bytes=3 * len(batch()))
    for index in (3, 1, 2):
        produce_to(other, TOPIC, partition=index)
    assert consumer.receive() == [1, 2, 3]


def test_what_is_awake_and_has_too_little_wakes_the_fetch_again(
    consumer: Consumer, other: RawClient
) -> None:
    produce_to(other, TOPIC)
    consumer.park(min_bytes=3 * len(batch()))
    produce_to(other, TOPIC, partition=1)
    produce_to(other, TOPIC)
    assert consumer.receive() == [0, 1]
    assert consumer.offsets == {0: 2, 1: 1, 2: 0, 3: 0}


def test_a_later_log_start_is_told(consumer: Consumer, other: RawClient) -> None:
    for _ in range(3):
        produce_to(other, TOPIC, partition=1)
    while consumer.poll():
        pass
    assert consumer.awake() == []
    delete_records(other, 1, 2)
    assert consumer.poll() == [1]
    assert consumer.log_starts[1] == 2
    assert (consumer.poll(), consumer.poll(), consumer.awake()) == ([], [], [])


def test_a_deleted_topic_is_told(consumer: Consumer, other: RawClient) -> None:
    consumer.park()
    delete_topic(other, TOPIC)
    _, response = consumer.client.receive()
    codes = [partition.error_code for partition in response.responses[0].partitions]
    assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * PARTITIONS


def test_a_sleeper_that_is_forgotten_leaves_nothing_behind(
    broker: RunningBroker, consumer: Consumer, other: RawClient
) -> None:
    assert sleepers(broker) == PARTITIONS
    request = consumer.request()
    request.forgotten_topics_data = [ForgottenTopic(topic=TOPIC, partitions=[0, 3])]
    assert consumer.client.call(request, FETCH_VERSION).responses == []
    assert sleepers(broker) == PARTITIONS - 2
    produce_to(other, TOPIC, partition=3)
    assert consumer.poll() == []


def test_a_session_that_ends_leaves_no_sleepers_behind(
    broker: RunningBroker, consumer: Consumer
) -> None:
    request = fetch(TOPIC)
    request.session_id = consumer.session_id
    consumer.client.call(request, FETCH_VERSION)
    assert sleepers(broker) == 0


def test_a_fetch_whose_session_ends_meanwhile_is_woken_all_the_same(
    broker: RunningBroker, consumer: Consumer, other: RawClient
) -> None:
    consumer.park()
    request = fetch(TOPIC)
    request.session_id = consumer.session_id
    other.call(request, FETCH_VERSION)
    produce_to(other, TOPIC, partition=2)
    assert consumer.receive() == [2]
    assert sleepers(broker) == 0


def test_nothing_is_missed(consumer: Consumer, other: RawClient) -> None:
    """Whatever happened in whatever order, the next fetch tells it."""
    chance = random.Random(1)
    ends = dict.fromkeys(range(PARTITIONS), 0)
    starts = dict.fromkeys(range(PARTITIONS), 0)
    for _ in range(150):
        for _ in range(chance.randrange(4)):
            index = chance.randrange(PARTITIONS)
            if chance.random() < 0.8:
                produce_to(other, TOPIC, partition=index, acks=1)
                ends[index] += 1
            elif consumer.offsets[index] == ends[index]:
                starts[index] = chance.randint(starts[index], ends[index])
                delete_records(other, index, starts[index])
        consumer.poll()
        assert (consumer.offsets, consumer.log_starts) == (ends, starts)
