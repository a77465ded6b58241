"""DeleteRecords: where a partition begins afterwards, and what is refused."""

from __future__ import annotations

import pytest

from compat_tests.twin.batches import R, batch
from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.logs import write
from compat_tests.twin.requests import fetch, fetch_partition, list_offsets
from compat_tests.twin.topics import Twin
from compat_tests.twin.transactions import LATEST, READ_COMMITTED, Producer, compare_offsets

EARLIEST = -2


def partition(index: int, offset: int) -> Plain:
    return {"partition_index": index, "offset": offset}


def asked(*topics: tuple[str, list[Plain]], timeout: int = 10_000) -> Plain:
    held = [{"name": topic, "partitions": partitions} for topic, partitions in topics]
    return {"topics": held, "timeout": timeout}


def look(talk: Conversation, topic: str) -> None:
    """What readers see afterwards."""
    partitions = [
        {"partition_index": 0, "timestamp": timestamp, "current_leader_epoch": -1}
        for timestamp in (EARLIEST, -1, -3)
    ]
    for one in partitions:
        body = {"replica_id": -1, "isolation_level": 0}
        body["topics"] = [{"name": topic, "partitions": [one]}]  # type: ignore[assignment]
        talk.ask("list_offsets", 7, body)


def filled(twin: Twin, talk: Conversation, configs: dict[str, str] | None = None) -> str:
    topic = twin.create_topic(partitions=2, configs=configs or {})
    write(talk, topic, *[batch(R(key=b"key"), R(key=b"key")) for _ in range(3)])
    return topic


@pytest.mark.every_version("delete_records")
def test_the_start_moves_up_and_never_back(twin: Twin, talk: Conversation, version: int) -> None:
    topic = filled(twin, talk)
    for offset in (0, 1, 3, 2, 3, 6, -1):
        talk.ask("delete_records", version, asked((topic, [partition(0, offset)])))
        look(talk, topic)


@pytest.mark.every_version("delete_records")
@pytest.mark.parametrize("offset", [7, -2, 2**63 - 1, -(2**63)])
def test_offsets_that_are_out_of_range(
    twin: Twin, talk: Conversation, version: int, offset: int
) -> None:
    topic = filled(twin, talk)
    talk.ask("delete_records", version, asked((topic, [partition(0, offset)])))
    look(talk, topic)


@pytest.mark.every_version("delete_records")
def test_everything_of_an_empty_partition(twin: Twin, talk: Conversation, version: int) -> None:
    topic = filled(twin, talk)
    for offset in (-1, 0, 1):
        talk.ask("delete_records", version, asked((topic, [partition(1, offset)])))


@pytest.mark.every_version("delete_records")
@pytest.mark.parametrize("policy", ["compact", "compact,delete", "delete"])
def test_cleanup_policies(twin: Twin, talk: Conversation, version: int, policy: str) -> None:
    topic = filled(twin, talk, {"cleanup.policy": policy})
    talk.ask("delete_records", version, asked((topic, [partition(0, 2)])))
    look(talk, topic)


@pytest.mark.every_version("delete_records")
def test_what_is_not_there(twin: Twin, talk: Conversation, version: int) -> None:
    topic = filled(twin, talk)
    unknown = twin.unused_name("unknown")
    for body in (
        asked((topic, [partition(7, 0)])),
        asked((topic, [partition(-1, 0)])),
        asked((unknown, [partition(0, 0)])),
        asked(("", [partition(0, 0)])),
        asked(("a b", [partition(0, 0)])),
        asked((unknown, [partition(0, 0)]), (topic, [partition(0, 1), partition(9, 0)])),
        asked((topic, [])),
        asked(),
    ):
        talk.ask("delete_records", version, body)
    look(talk, topic)


@pytest.mark.every_version("delete_records")
def test_a_partition_that_is_named_twice(twin: Twin, talk: Conversation, version: int) -> None:
    topic = filled(twin, talk)
    talk.ask("delete_records", version, asked((topic, [partition(0, 4), partition(0, 2)])))
    look(talk, topic)
    talk.ask(
        "delete_records", version, asked((topic, [partition(0, 3)]), (topic, [partition(1, 0)]))
    )
    look(talk, topic)


@pytest.mark.every_version("delete_records")
def test_internal_topics(twin: Twin, talk: Conversation, version: int) -> None:
    twin.wait_until_groups_are_served()
    talk.ask("delete_records", version, asked(("__consumer_offsets", [partition(0, 0)])))


@pytest.mark.every_version("delete_records")
def test_in_mid_transaction(
    twin: Twin, talk: Conversation, producer: Producer, version: int
) -> None:
    """What is stable ends where the log begins now. A batch begins with the second start only."""
    topic = twin.create_topic()
    producer.init(talk)
    producer.write(talk, topic, *[b"open"] * 5)
    write(talk, topic, batch(R(), R(), R()))
    committed_end = list_offsets(topic, LATEST, isolation_level=READ_COMMITTED)
    for start, deviation in ((3, "D-033"), (5, None), (7, "D-033")):
        talk.ask("delete_records", version, asked((topic, [partition(0, start)])))
        look(talk, topic)
        talk.ask("list_offsets", 7, committed_end, deviation=deviation)
        body = fetch({topic: [fetch_partition(0, start)]}, isolation_level=READ_COMMITTED)
        talk.ask("fetch", 16, body, deviation=deviation)
    producer.end(talk, commit=False)
    producer.settle(talk)
    compare_offsets(talk, topic)
