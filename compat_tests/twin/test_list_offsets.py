"""ListOffsets: the ends of a partition, offsets by time, and the special timestamps."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.twin.batches import BASE_TIMESTAMP_MS, GZIP, SNAPPY, ZSTD, R, batch
from compat_tests.twin.cases import all_cases
from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.logs import write
from compat_tests.twin.requests import list_offsets
from compat_tests.twin.topics import Twin

NEWEST = 11
INT64_MAX = (1 << 63) - 1
# -1 latest, -2 earliest, -3 of the largest timestamp, -4 to -6 about tiered storage; -7 is none.
SPECIALS = (-1, -2, -3, -4, -5, -6, -7, -100, -INT64_MAX - 1)


def spread(*deltas: int, start: int = 0, **fields: Any) -> bytes:
    """A batch whose records lie at these distances from the start."""
    base = BASE_TIMESTAMP_MS + start
    records = [R(b"%d" % delta, timestamp_delta=delta) for delta in deltas]
    return batch(*records, base_timestamp=base, **fields)


# Rising times, one batch with its largest in the middle, one that lies before its predecessor.
BATCHES = (
    spread(0, 10, 20),
    spread(0, 50, 30, codec=GZIP, start=100),
    spread(0, 5, start=60),
    spread(10, 0, 20, 20, codec=SNAPPY, start=200),
    spread(0, 7, 7, 3, codec=ZSTD, start=213),
)
TIMES = (
    *(-10_000_000_000, -1, 0, 1, 9, 10, 11, 19, 20, 21, 59, 60, 61, 64, 65, 66),
    *(99, 100, 101, 130, 131, 149, 150, 151, 199, 200, 201, 209, 210, 211, 213, 215, 216),
    *(219, 220, 221, 1000, 1 << 50),
)


@pytest.fixture(scope="module")
def filled(twin: Twin) -> str:
    """A topic whose first partition holds batches, the second none."""
    topic = twin.create_topic(partitions=2)
    with twin.conversation() as talk:
        write(talk, topic, *BATCHES)
    return topic


@pytest.mark.every_version("list_offsets")
@pytest.mark.parametrize("isolation_level", [0, 1, 2, -1])
def test_special_timestamps(
    talk: Conversation, filled: str, version: int, isolation_level: int
) -> None:
    with all_cases() as cases:
        for timestamp in SPECIALS:
            for partition in (0, 1):
                with cases.case(f"{timestamp} of partition {partition}"):
                    body = list_offsets(
                        *(filled, timestamp),
                        partition=partition,
                        isolation_level=isolation_level,
                    )
                    talk.ask("list_offsets", version, body)


@pytest.mark.parametrize("version", [1, 4, NEWEST])
def test_timestamps(talk: Conversation, filled: str, version: int) -> None:
    """Before, between, after, and exactly on those of records, compressed ones as well."""
    with all_cases() as cases:
        for time in TIMES:
            with cases.case(f"{time} ms"):
                asked = list_offsets(filled, BASE_TIMESTAMP_MS + time)
                talk.ask("list_offsets", version, asked)
        for timestamp in (0, 1, INT64_MAX):
            for partition in (0, 1):
                with cases.case(f"timestamp {timestamp} of partition {partition}"):
                    asked = list_offsets(filled, timestamp, partition=partition)
                    talk.ask("list_offsets", version, asked)


@pytest.mark.every_version("list_offsets")
def test_a_timestamp_in_every_version(talk: Conversation, filled: str, version: int) -> None:
    for isolation_level in (0, 1):
        for time in (0, 130, 10_000):
            asked = list_offsets(
                *(filled, BASE_TIMESTAMP_MS + time), isolation_level=isolation_level
            )
            talk.ask("list_offsets", version, asked)


@pytest.mark.parametrize(
    "batches",
    [
        [spread(0), spread(0)],
        [spread(0, 5, 5, 1)],
        [spread(0, 5, 5, 1, codec=GZIP)],
        [spread(9, start=0), spread(3, 9, start=0), spread(1)],
        [spread(-1, -5, -3)],
        [batch(base_timestamp=-1)],
        [batch(base_timestamp=-1), spread(0)],
        [spread(0), batch(base_timestamp=-1)],
        [batch(R(), R(), base_timestamp=0)],
    ],
    ids=range(9),
)
def test_the_largest_timestamp(twin: Twin, talk: Conversation, batches: list[bytes]) -> None:
    topic = twin.create_topic()
    for records in batches:
        write(talk, topic, records)
        for timestamp in (-3, 0, 1, BASE_TIMESTAMP_MS, BASE_TIMESTAMP_MS + 5):
            talk.ask("list_offsets", NEWEST, list_offsets(topic, timestamp))


def test_log_append_time(twin: Twin, talk: Conversation) -> None:
    """All records of a batch have its time then: the first of them is found, or the last."""
    topic = twin.create_topic(configs={"message.timestamp.type": "LogAppendTime"})
    write(talk, topic, batch(R(), R(), R()), batch(R(), R(), codec=GZIP))

    def without_time(reply: Plain) -> Plain:
        for held in reply["topics"]:
            for partition in held["partitions"]:
                partition["timestamp"] = partition["timestamp"] > BASE_TIMESTAMP_MS
        return reply

    for timestamp in (-3, 0, BASE_TIMESTAMP_MS, 1 << 50):
        body = list_offsets(topic, timestamp)
        talk.ask("list_offsets", NEWEST, body, prepare=without_time)


@pytest.mark.every_version("list_offsets", since=4)
def test_leader_epochs(talk: Conversation, filled: str, version: int) -> None:
    for epoch in (0, 1, 2147483647, -1, -2):
        for timestamp in (-1, -2, -3, BASE_TIMESTAMP_MS, -5, -7):
            asked = list_offsets(filled, timestamp, current_leader_epoch=epoch)
            talk.ask("list_offsets", version, asked)


@pytest.mark.every_version("list_offsets")
@pytest.mark.parametrize("replica_id", [-1, -2, -3, 0, 1, 2])
def test_replica_ids(talk: Conversation, filled: str, version: int, replica_id: int) -> None:
    for timestamp in (-1, -2, BASE_TIMESTAMP_MS):
        talk.ask("list_offsets", version, list_offsets(filled, timestamp, replica_id=replica_id))


@pytest.mark.every_version("list_offsets")
def test_what_is_not_there(twin: Twin, talk: Conversation, filled: str, version: int) -> None:
    for topic, partition in ((filled, 2), (filled, -1), (twin.unused_name("unknown"), 0), ("", 0)):
        for timestamp in (-1, 0, -7):
            talk.ask("list_offsets", version, list_offsets(topic, timestamp, partition=partition))
    talk.ask("list_offsets", version, list_offsets("a b", -1))
    talk.ask("list_offsets", version, list_offsets(filled))
    talk.ask("list_offsets", version, {"replica_id": -1, "topics": []})


@pytest.mark.every_version("list_offsets")
def test_partitions_named_twice(twin: Twin, talk: Conversation, filled: str, version: int) -> None:
    """Each of them is refused, the others are answered."""
    unknown = twin.unused_name("unknown")

    def asked(*entries: tuple[str, list[tuple[int, int]]]) -> Plain:
        topics = [
            {
                "name": topic,
                "partitions": [
                    {"partition_index": index, "timestamp": timestamp}
                    for index, timestamp in partitions
                ],
            }
            for topic, partitions in entries
        ]
        return {"replica_id": -1, "topics": topics}

    for body in (
        list_offsets(filled, -1, -2),
        asked((filled, [(0, -1), (1, -1), (0, -1)])),
        asked((filled, [(0, -1)]), (filled, [(0, -1)])),
        asked((filled, [(0, -1)]), (filled, [(1, -1)])),
        asked((filled, [(0, -1), (0, -2)]), (unknown, [(0, -1), (0, -1)])),
        asked((filled, [(0, -1)]), (unknown, [(0, -1)]), (filled, [(9, -1), (1, -2)])),
    ):
        talk.ask("list_offsets", version, body)


@pytest.mark.every_version("list_offsets", since=10)
def test_timeouts(talk: Conversation, filled: str, version: int) -> None:
    for timeout in (0, -1, 2147483647):
        talk.ask("list_offsets", version, list_offsets(filled, -1, timeout=timeout))
