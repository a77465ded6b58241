"""Fetch without sessions: which bytes come back from where, and when."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from compat_tests.twin.batches import GZIP, LZ4, R, batch
from compat_tests.twin.cases import all_cases
from compat_tests.twin.codec import ZERO_UUID, Plain
from compat_tests.twin.conversation import Conversation, Side
from compat_tests.twin.logs import write
from compat_tests.twin.requests import fetch, fetch_partition
from compat_tests.twin.topics import Twin

NEWEST = 18
METADATA_TOPIC_ID = uuid.UUID(int=1)
BATCHES = (
    batch(R(b"zero", b"key"), R(b"one", timestamp_delta=3), R(b"two")),
    batch(R(b"three"), codec=GZIP),
    batch(R(b"four"), R(b"five"), codec=LZ4, producer_id=7, producer_epoch=0, base_sequence=0),
    batch(R(bytes(2000))),
    batch(),
)
END = 8
SIZES = [len(one) for one in BATCHES]


@pytest.fixture(scope="module")
def filled(twin: Twin) -> str:
    """A topic whose first partition holds five batches, the second one, the third nothing."""
    topic = twin.create_topic(partitions=3)
    with twin.conversation() as talk:
        write(talk, topic, *BATCHES)
        write(talk, topic, BATCHES[0], partition=1)
    return topic


@pytest.mark.every_version("fetch")
def test_every_version(talk: Conversation, filled: str, version: int) -> None:
    partitions = [fetch_partition(index) for index in range(3)]
    talk.ask("fetch", version, fetch({filled: partitions}))


@pytest.mark.every_version("fetch")
@pytest.mark.parametrize("isolation_level", [0, 1, 2, -1])
def test_offsets(talk: Conversation, filled: str, version: int, isolation_level: int) -> None:
    """At every offset, in the middle of batches, at the end, and outside."""
    with all_cases() as cases:
        for offset in (*range(END + 2), -1, -2, 1 << 40, (1 << 63) - 1, -(1 << 63)):
            with cases.case(f"offset {offset}"):
                body = fetch(
                    {filled: [fetch_partition(0, offset)]}, isolation_level=isolation_level
                )
                talk.ask("fetch", version, body)
        for offset in (0, 1, -1):
            with cases.case(f"empty partition, offset {offset}"):
                talk.ask("fetch", version, fetch({filled: [fetch_partition(2, offset)]}))


@pytest.mark.parametrize("version", [4, 11, NEWEST])
@pytest.mark.parametrize("offset", [0, 1, 3, 4, 6])
def test_byte_limits_of_a_partition(
    talk: Conversation, filled: str, version: int, offset: int
) -> None:
    """The first batch comes whole, however small the limit; what follows may be cut off."""
    sums = [sum(SIZES[:count]) for count in range(1, len(SIZES) + 1)]
    with all_cases() as cases:
        for limit in (0, 1, -1, 60, 61, *(size + delta for size in sums for delta in (-1, 0, 1))):
            with cases.case(f"partition_max_bytes={limit}"):
                asked = fetch_partition(0, offset, partition_max_bytes=limit)
                talk.ask("fetch", version, fetch({filled: [asked]}))


@pytest.mark.parametrize("version", [4, 11, NEWEST])
def test_byte_limits_of_a_request(talk: Conversation, filled: str, version: int) -> None:
    """They are shared in the order of the partitions, and only one first batch is granted."""
    limits = (0, 1, -1, SIZES[0] - 1, SIZES[0], SIZES[0] + 1, 2 * SIZES[0], sum(SIZES), 1 << 30)
    with all_cases() as cases:
        for order in ([0, 1, 2], [2, 1, 0], [1, 0]):
            for limit in limits:
                with cases.case(f"max_bytes={limit} of {order}"):
                    asked = [fetch_partition(index) for index in order]
                    talk.ask("fetch", version, fetch({filled: asked}, max_bytes=limit))
                with cases.case(f"max_bytes={limit} of {order}, and few per partition"):
                    asked = [fetch_partition(index, partition_max_bytes=100) for index in order]
                    talk.ask("fetch", version, fetch({filled: asked}, max_bytes=limit))


@pytest.mark.every_version("fetch")
def test_minimum_bytes_that_are_there(talk: Conversation, filled: str, version: int) -> None:
    """Enough to answer at once; a minimum above the maximum counts as the maximum."""
    asked = [fetch_partition(0)]
    limits: list[Plain] = [
        {"min_bytes": 1},
        {"min_bytes": SIZES[0]},
        {"min_bytes": 1000, "max_bytes": 50},
        {"min_bytes": -1},
        {"min_bytes": 1 << 30, "max_wait": -1},
    ]
    for fields in limits:
        talk.ask("fetch", version, fetch({filled: asked}, **{"max_wait": 5_000, **fields}))


@pytest.mark.every_version("fetch")
def test_what_is_not_there(twin: Twin, talk: Conversation, filled: str, version: int) -> None:
    unknown = twin.unused_name("unknown")
    zero = [fetch_partition(0)]
    questions: dict[str, dict[str, list[Plain]]] = {
        "unknown partition": {filled: [fetch_partition(3)]},
        "negative partition": {filled: [fetch_partition(-1)]},
        "unknown topic": {unknown: zero},
        "both beside a good one": {unknown: zero, filled: [fetch_partition(9), *zero]},
        "a good one first": {filled: zero, unknown: zero},
        "no topic": {},
        "no partition": {filled: []},
    }
    with all_cases() as cases:
        for name, topics in questions.items():
            with cases.case(name):
                talk.ask("fetch", version, fetch(topics, max_wait=10_000, min_bytes=1))


@pytest.mark.every_version("fetch", until=12)
def test_names_that_cannot_be(talk: Conversation, version: int) -> None:
    for name in ("", "a b", "x" * 250):
        talk.ask("fetch", version, fetch({name: [fetch_partition()]}))


def test_the_metadata_log(talk: Conversation) -> None:
    talk.ask("fetch", 12, fetch({"__cluster_metadata": [fetch_partition()]}))


@pytest.mark.every_version("fetch", since=13)
def test_topic_ids_that_cannot_be(twin: Twin, talk: Conversation, version: int) -> None:
    topic = twin.create_topic()

    def by_id(topic_id: uuid.UUID) -> Plain:
        partitions = [fetch_partition()]
        limits = {"replica_id": -1, "max_wait": 0, "min_bytes": 0, "max_bytes": 1 << 20}
        topics = [{"topic_id": topic_id, "partitions": partitions}]
        return {**limits, "session_epoch": -1, "topics": topics}

    def by_old_id(side: Side) -> Plain:
        return by_id(side.topic_id(topic))

    talk.ask("fetch", version, by_id(ZERO_UUID))
    talk.ask("fetch", version, by_id(METADATA_TOPIC_ID))
    talk.ask("fetch", version, by_old_id)
    talk.ask("delete_topics", 5, {"topic_names": [topic], "timeout": 10_000})
    twin.wait_until_gone(topic)
    talk.ask("fetch", version, by_old_id)


@pytest.mark.every_version("fetch")
def test_partitions_named_twice(talk: Conversation, filled: str, version: int) -> None:
    twice = [fetch_partition(0), fetch_partition(0, 3)]
    talk.ask("fetch", version, fetch({filled: twice}))

    def in_two_topics(side: Side) -> Plain:
        body = fetch({filled: [fetch_partition(1), fetch_partition(0)]})(side)
        return {**body, "topics": body["topics"] * 2}

    talk.ask("fetch", version, in_two_topics)


@pytest.mark.every_version("fetch", since=9)
def test_leader_epochs(talk: Conversation, filled: str, version: int) -> None:
    """Older than the broker's (0 here): fenced; newer: unknown; -1 asks nothing."""
    for epoch in (0, 1, 2147483647, -1, -2):
        for offset in (0, 100):
            asked = fetch_partition(0, offset, current_leader_epoch=epoch)
            talk.ask("fetch", version, fetch({filled: [asked]}))


@pytest.mark.every_version("fetch", since=12)
def test_last_fetched_epochs(talk: Conversation, filled: str, version: int) -> None:
    """The leader compares where its own log of that epoch ends (KIP-595)."""
    with all_cases() as cases:
        for epoch in (0, 1, 5, 2147483647, -1, -2):
            for partition, offset in ((0, 0), (0, END), (0, END + 1), (2, 0), (2, 1)):
                with cases.case(f"epoch {epoch}, partition {partition} at {offset}"):
                    asked = fetch_partition(partition, offset, last_fetched_epoch=epoch)
                    talk.ask("fetch", version, fetch({filled: [asked]}))


@pytest.mark.every_version("fetch")
@pytest.mark.parametrize("replica", [1, 2, 0, -2, -3])
def test_replica_ids(talk: Conversation, filled: str, version: int, replica: int) -> None:
    """Whoever claims to be a replica must be in the assignment; -2 is Kafka's debugging reader."""
    state = {"replica_id": replica, "replica_epoch": -1}
    for offset in (0, 100):
        body = fetch(
            {filled: [fetch_partition(0, offset)]}, replica_id=replica, replica_state=state
        )
        talk.ask("fetch", version, body)


@pytest.mark.every_version("fetch", since=5)
def test_fields_that_only_replicas_use(talk: Conversation, filled: str, version: int) -> None:
    for fields in ({"log_start_offset": 0}, {"log_start_offset": 100}):
        talk.ask("fetch", version, fetch({filled: [fetch_partition(0, **fields)]}))
    for rack in ("", "some-rack"):
        talk.ask("fetch", version, fetch({filled: [fetch_partition()]}, rack_id=rack))


@pytest.mark.every_version("fetch", since=12)
def test_cluster_ids(talk: Conversation, filled: str, version: int) -> None:
    for cluster_id in (None, "", "another-cluster"):
        talk.ask("fetch", version, fetch({filled: [fetch_partition()]}, cluster_id=cluster_id))


def test_a_large_batch_alone(twin: Twin, talk: Conversation) -> None:
    """A batch above all limits is returned whole, so that no consumer gets stuck."""
    topic = twin.create_topic(partitions=2)
    write(talk, topic, batch(R(bytes(600_000))), batch(R(b"small")))
    write(talk, topic, batch(R(b"small")), partition=1)
    options: list[dict[str, Any]] = [{"max_bytes": 100}, {"max_bytes": 700_000}]
    for fields in options:
        for limit in (10, 1000, 700_000):
            asked = [fetch_partition(index, partition_max_bytes=limit) for index in (0, 1)]
            talk.ask("fetch", NEWEST, fetch({topic: asked}, **fields))
