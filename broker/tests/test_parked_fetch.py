"""A fetch that waits: what wakes it, when it gives up, and that nothing of it stays behind."""

from __future__ import annotations

import gc
import os
from typing import Any

import pytest

from klamm.broker.fetching import COPIED_BYTES_MAX
from klamm.broker.testing import RunningBroker
from klamm.broker.tests.raw_client import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    RawClient,
    batch,
    create_topic,
    delete_topic,
    fetch,
    fetch_from,
    produce,
    produce_to,
)
from klamm.broker.tests.waiting import until
from klamm.log.open_files import FileSlice
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.api_versions import ApiVersionsRequest

# Longer than any test takes: who waits this long was not woken.
LONG_MS = 60_000
# So large that a fetch of it keeps the file open, and copies nothing.
UNCOPIED = bytes(COPIED_BYTES_MAX)


def parked_on(broker: RunningBroker, topic: str, index: int = 0) -> int:
    partition = broker.broker.partitions.get(topic, index)
    assert partition is not None
    return len(partition.parked)


def timers_set(broker: RunningBroker) -> int:
    return sum(entry[2].callback is not None for entry in broker.broker.timers._heap)


def park(
    broker: RunningBroker, client: RawClient, topic: str, offset: int = 0, **options: Any
) -> None:
    """Send a fetch and wait until it is parked."""
    partitions = options.get("partitions", (0,))
    before = parked_on(broker, topic, partitions[0])
    client.send(fetch(topic, offset, max_wait_ms=LONG_MS, **options), version=FETCH_VERSION)
    until(lambda: parked_on(broker, topic, partitions[0]) == before + 1)


def sizes(response: Any) -> dict[int, int]:
    """Bytes by partition."""
    return {
        partition.partition_index: len(partition.records)
        for topic in response.responses
        for partition in topic.partitions
    }


@pytest.fixture
def topic(client: RawClient) -> str:
    create_topic(client, "topic", 3)
    return "topic"


@pytest.mark.parametrize("index", [0, 1, 2])
def test_an_append_to_any_of_its_partitions_wakes_it(
    broker: RunningBroker, client: RawClient, topic: str, index: int
) -> None:
    park(broker, client, topic, partitions=(0, 1, 2))
    with RawClient(broker) as producer:
        produce_to(producer, topic, partition=index)
    _, response = client.receive()
    assert [number for number, size in sizes(response).items() if size] == [index]
    assert [parked_on(broker, topic, each) for each in range(3)] == [0, 0, 0]
    assert timers_set(broker) == 0


def test_it_waits_for_as_many_bytes_as_it_asked_for(
    broker: RunningBroker, client: RawClient, topic: str
) -> None:
    size = len(batch())
    park(broker, client, topic, min_bytes=3 * size, partitions=(0, 1))
    with RawClient(broker) as producer:
        produce_to(producer, topic)
        produce_to(producer, topic, partition=1)
        assert parked_on(broker, topic) == 1
        produce_to(producer, topic)
    assert sizes(client.receive()[1]) == {0: 2 * size, 1: size}


def test_more_than_the_limit_allows_is_not_waited_for(client: RawClient, topic: str) -> None:
    produce_to(client, topic)
    response = client.call(
        fetch(topic, max_wait_ms=LONG_MS, min_bytes=10_000_000, max_bytes=50), FETCH_VERSION
    )
    assert sizes(response) == {0: len(batch())}


def test_at_its_deadline_it_answers_with_what_there_is(client: RawClient, topic: str) -> None:
    produce_to(client, topic)
    response = client.call(fetch(topic, max_wait_ms=50, min_bytes=10_000), FETCH_VERSION)
    assert sizes(response) == {0: len(batch())}
    response = client.call(fetch(topic, 1, max_wait_ms=50), FETCH_VERSION)
    assert sizes(response) == {0: 0}


def test_at_its_deadline_nothing_is_left(
    broker: RunningBroker, client: RawClient, topic: str
) -> None:
    for _ in range(5):
        client.call(fetch(topic, max_wait_ms=10, partitions=(0, 1)), FETCH_VERSION)
    assert (parked_on(broker, topic, 0), parked_on(broker, topic, 1)) == (0, 0)
    assert timers_set(broker) == 0
    assert broker.broker.timers._cancelled == 0


def test_without_time_to_wait_it_is_answered_at_once(client: RawClient, topic: str) -> None:
    assert sizes(client.call(fetch(topic, max_wait_ms=0), FETCH_VERSION)) == {0: 0}


def test_one_with_an_error_is_answered_at_once(client: RawClient, topic: str) -> None:
    response = client.call(fetch(topic, 99, max_wait_ms=LONG_MS), FETCH_VERSION)
    assert response.responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    response = client.call(fetch("unknown", max_wait_ms=LONG_MS), FETCH_VERSION)
    code = response.responses[0].partitions[0].error_code
    assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_deletion_of_its_topic_wakes_it(
    broker: RunningBroker, client: RawClient, topic: str
) -> None:
    park(broker, client, topic, partitions=(0, 2))
    with RawClient(broker) as other:
        delete_topic(other, topic)
    _, response = client.receive()
    codes = {partition.error_code for partition in response.responses[0].partitions}
    assert codes == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert timers_set(broker) == 0


def test_one_whose_client_has_gone_leaves_nothing_behind(
    broker: RunningBroker, client: RawClient, topic: str
) -> None:
    with RawClient(broker) as gone:
        park(broker, gone, topic, partitions=(0, 1, 2))
        park_second = fetch(topic, max_wait_ms=LONG_MS)
        gone.send(park_second, version=FETCH_VERSION)
        until(lambda: parked_on(broker, topic) == 2)
    until(lambda: [parked_on(broker, topic, each) for each in range(3)] == [0, 0, 0])
    until(lambda: timers_set(broker) == 0)
    # An append finds nobody to wake.
    assert produce_to(client, topic).error_code == 0


def open_slices() -> int:
    gc.collect()
    return sum(isinstance(each, FileSlice) and each._file is not None for each in gc.get_objects())


def test_one_whose_client_has_gone_gives_its_files_back(
    broker: RunningBroker, client: RawClient, topic: str
) -> None:
    """It had found something, but not enough."""
    produce_to(client, topic, batch(UNCOPIED))
    before = open_slices()
    with RawClient(broker) as gone:
        park(broker, gone, topic, min_bytes=1_000_000)
        assert open_slices() == before + 1
    until(lambda: parked_on(broker, topic) == 0)
    assert open_slices() == before


def test_what_it_had_found_is_given_back_when_it_looks_again(
    broker: RunningBroker, client: RawClient, topic: str
) -> None:
    produce_to(client, topic, batch(UNCOPIED))
    before = open_slices()
    with RawClient(broker) as waiting:
        park(broker, waiting, topic, min_bytes=1_000_000)
        for _ in range(10):
            produce_to(client, topic)
        assert open_slices() == before + 1


def test_files_of_answered_fetches_are_given_back(client: RawClient, topic: str) -> None:
    produce_to(client, topic, batch(UNCOPIED))
    before = open_slices()
    for _ in range(20):
        assert len(fetch_from(client, topic).records) > 0
    client.call(ApiVersionsRequest(), 0)
    assert open_slices() == before


def test_descriptors_of_deleted_topics_are_given_back(
    broker: RunningBroker, client: RawClient
) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    create_topic(client, "first", 5)
    delete_topic(client, "first")
    until(lambda: not list(broker.data_dir.glob("first-*")))
    before = descriptors()
    for _ in range(5):
        create_topic(client, "again", 10)
        for index in range(10):
            produce_to(client, "again", partition=index)
            fetch_from(client, "again", partitions=(index,))
        delete_topic(client, "again")
    until(lambda: not list(broker.data_dir.glob("again-*")))
    until(lambda: descriptors() <= before)


def test_an_append_wakes_all_that_wait_and_each_gets_its_own(
    broker: RunningBroker, client: RawClient, topic: str
) -> None:
    produce_to(client, topic)
    waiting = [RawClient(broker) for _ in range(20)]
    for number, each in enumerate(waiting):
        park(broker, each, topic, partitions=(number % 3,), offset=1 if number % 3 == 0 else 0)
    produce_to(client, topic)
    woken = [each for number, each in enumerate(waiting) if number % 3 == 0]
    for each in woken:
        assert sizes(each.receive()[1]) == {0: len(batch())}
    assert [parked_on(broker, topic, each) for each in range(3)] == [0, 7, 6]
    for each in waiting:
        each.close()


def test_what_is_appended_in_one_go_is_answered_in_one_reply(
    broker: RunningBroker, client: RawClient, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("klamm.broker.reactor.TURN_SECONDS_MAX", 60.0)
    park(broker, client, topic, partitions=(0, 1))
    with RawClient(broker) as producer:
        requests = [
            producer.frame(produce(topic, partition=index, acks=1), PRODUCE_VERSION)
            for index in (0, 1, 0)
        ]
        producer.socket.sendall(b"".join(requests))
        _, response = client.receive()
    assert sizes(response) == {0: 2 * len(batch()), 1: len(batch())}


@pytest.mark.interpreted
def test_a_fault_while_it_waits_is_answered(
    broker: RunningBroker, client: RawClient, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    park(broker, client, topic)
    partition = broker.broker.partitions.get(topic, 0)
    assert partition is not None

    def fail(*args: Any, **options: Any) -> Any:
        raise ValueError("on purpose")

    monkeypatch.setattr(partition.log, "read", fail)
    with RawClient(broker) as producer:
        produce_to(producer, topic)
    _, response = client.receive()
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert parked_on(broker, topic) == 0
    assert timers_set(broker) == 0


def test_a_stop_does_not_wait_for_it(broker: RunningBroker, client: RawClient, topic: str) -> None:
    park(broker, client, topic)
    broker.stop()
    assert client.is_closed_by_peer()
