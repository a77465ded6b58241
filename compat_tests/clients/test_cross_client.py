"""What one client writes, every other client reads: keys, values, headers, nulls, timestamps."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import pytest

from compat_tests.clients.fixtures import (
    CLIENT_NAMES,
    Broker,
    ClientNamed,
    create_topic,
    unique_names,
)
from compat_tests.clients.model import ProducerMode, Record, TimestampType, contents
from compat_tests.clients.test_round_trip import CODECS

# Text, because kcat prints keys and values as text. A stretch of records with equal headers is
# one run of kcat, and kcat can write neither (null key, empty value) nor (empty key, null value).
PLAIN = [
    Record(b"key and value", key=b"key"),
    Record(b"no key"),
    Record(b"an empty key", key=b""),
    Record(b"", key=b"an empty value"),
    Record(b"", key=b""),
    Record(None, key=b"a tombstone"),
    Record(None),
    Record("grüße, 世界 🌍".encode(), key="schlüssel".encode()),
    Record(b"x"),
]
HEADERS = [
    Record(b"one header", key=b"h", headers=(("name", b"value"),)),
    Record(b"null header", key=b"h", headers=(("nothing", None),)),
    Record(b"empty header", key=b"h", headers=(("empty", b""),)),
    Record(b"a name twice", headers=(("b", b"2"), ("a", b"1"), ("b", b"1"))),
    Record(
        b"a name three times, in this order",
        key=b"h",
        headers=(("b", b"2"), ("a", b"1"), ("b", None), ("c", b""), ("b", b"1")),
    ),
    Record(b"many", headers=tuple((f"h{number}", b"v" * number) for number in range(50))),
    Record(None, key=b"tombstone with header", headers=(("reason", b"gone"),)),
]
RECORDS = PLAIN + HEADERS

FIRST_TIMESTAMP_MS = 1_600_000_000_000


def records_of(producer: str) -> list[Record]:
    """What this client can send: most with timestamps of the application, in the past."""
    if producer == "kcat":
        return RECORDS
    return [
        dataclasses.replace(record, timestamp_ms=FIRST_TIMESTAMP_MS + number * 1_000)
        for number, record in enumerate(RECORDS)
        if producer not in REFUSED_BY or not REFUSED_BY[producer](record)
    ]


def is_of_nothing(record: Record) -> bool:
    return record.key is None and record.value is None


def has_null_header(record: Record) -> bool:
    return any(value is None for _, value in record.headers)


# What a library's producer refuses by itself; its consumer reads all of it.
REFUSED_BY: dict[str, Callable[[Record], bool]] = {
    "kafka-python": lambda record: is_of_nothing(record) or has_null_header(record),
    "aiokafka": is_of_nothing,
}


@pytest.fixture(scope="module")
def written_by(
    broker: Broker, client_named: ClientNamed
) -> Callable[[str, str], tuple[str, list[Record]]]:
    """Writes the records once for each pair of client and codec, however many read them."""
    names = unique_names("cross-client")

    @functools.cache
    def write(producer: str, codec: str) -> tuple[str, list[Record]]:
        topic = next(names)
        create_topic(broker.bootstrap, topic)
        records = records_of(producer)
        client_named(producer).produce(
            broker.bootstrap, topic, records, mode=ProducerMode(codec=codec)
        )
        return topic, records

    return write


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("consumer", CLIENT_NAMES)
@pytest.mark.parametrize("producer", CLIENT_NAMES)
def test_every_client_reads_what_every_client_wrote(
    broker: Broker,
    client_named: ClientNamed,
    written_by: Callable[[str, str], tuple[str, list[Record]]],
    producer: str,
    consumer: str,
    codec: str,
) -> None:
    topic, records = written_by(producer, codec)
    read = client_named(consumer).consume(broker.bootstrap, topic, len(records))
    assert [one.content for one in read] == contents(records)
    assert {one.timestamp_type for one in read} == {TimestampType.CREATE}
    if producer != "kcat":
        assert [one.timestamp_ms for one in read] == [one.timestamp_ms for one in records]
