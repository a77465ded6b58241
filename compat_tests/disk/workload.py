"""What is written to the logs that these tests look at, batch by batch, the same for each broker.

The batches are made here and not by a client, so that two brokers can be given the same bytes.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from compat_tests.clients import raw
from compat_tests.clients.fixtures import create_topic
from compat_tests.twin.batches import CODEC_NAMES, R, batch

MIB = 1024 * 1024

# The smallest segment that Kafka 4 allows, so that a few MiB make several of them.
SEGMENT_BYTES = MIB
# An index entry for most batches, instead of one for every few.
INDEX_INTERVAL_BYTES = 1024

PRODUCER_IDS = (4711, 4712, 4713)

TOPIC_NAMES = ("plain", "packed", "sequenced", "stamped")


@dataclass(frozen=True)
class Written:
    """One topic of one partition, and the batches in it."""

    topic: str
    batches: tuple[tuple[R, ...], ...]
    encoded: tuple[bytes, ...]
    config: Mapping[str, str]

    @property
    def records(self) -> list[R]:
        return list(itertools.chain.from_iterable(self.batches))


def workload() -> list[Written]:
    """A topic for each kind of batch, most of them several segments long."""
    now_ms = time.time_ns() // 1_000_000
    return [
        _plain(now_ms),
        _packed(now_ms),
        _sequenced(now_ms),
        _stamped(now_ms),
    ]


def write(bootstrap: str, topics: Iterable[Written]) -> None:
    """Create the topics and fill them."""
    for written in topics:
        create_topic(bootstrap, written.topic, config=written.config)
        raw.wait_until_led(bootstrap, written.topic, 1)
        raw.produce_all(bootstrap, written.topic, written.encoded)


def _config(**more: str) -> dict[str, str]:
    config = {
        "segment.bytes": str(SEGMENT_BYTES),
        "index.interval.bytes": str(INDEX_INTERVAL_BYTES),
    }
    return config | {name.replace("_", "."): value for name, value in more.items()}


def _text(chance: random.Random, size: int) -> bytes:
    """Letters that compress to about two thirds."""
    return bytes(chance.choices(b"abcdefghijklmnopqrstuvwxyz", k=size))


def _plain(now_ms: int) -> Written:
    """Keys, nulls, headers, sizes from nothing to 100 KiB; time runs back and forth."""
    chance = random.Random(1)
    small = [
        tuple(
            R(
                value=chance.choice((None, b"", _text(chance, chance.randrange(1, 3000)))),
                key=chance.choice((None, b"", b"key %d" % number)),
                headers=chance.choice(((), ((b"name", b"value"), (b"nothing", None)))),
                timestamp_delta=chance.randrange(1000),
            )
            for number in range(chance.randrange(1, 20))
        )
        for _ in range(280)
    ]
    large = [(R(value=_text(chance, 100 * 1024)),) for _ in range(10)]
    batches = tuple(small[:200] + large + small[200:])
    encoded = tuple(
        batch(*records, base_timestamp=now_ms + chance.randrange(-100_000, 100_000))
        for records in batches
    )
    return Written("plain", batches, encoded, _config())


def _packed(now_ms: int) -> Written:
    """Every codec in turn."""
    chance = random.Random(2)
    batches = tuple(
        tuple(R(value=_text(chance, 1000), key=b"%d" % number) for number in range(10))
        for _ in range(300)
    )
    encoded = tuple(
        batch(*records, codec=number % len(CODEC_NAMES), base_timestamp=now_ms + number)
        for number, records in enumerate(batches)
    )
    return Written("packed", batches, encoded, _config())


def _sequenced(now_ms: int) -> Written:
    """Three idempotent producers by turns; the second one comes back with a new epoch."""
    chance = random.Random(3)
    batches = []
    encoded = []
    sequences = dict.fromkeys(PRODUCER_IDS, 0)
    for number in range(450):
        producer_id = PRODUCER_IDS[number % 3]
        epoch = 1 if producer_id == PRODUCER_IDS[1] and number >= 300 else 0
        if number == 301:
            sequences[producer_id] = 0
        records = tuple(R(value=_text(chance, 1200)) for _ in range(1 + number % 4))
        batches.append(records)
        encoded.append(
            batch(
                *records,
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=sequences[producer_id],
                base_timestamp=now_ms + number,
            )
        )
        sequences[producer_id] += len(records)
    return Written("sequenced", tuple(batches), tuple(encoded), _config())


def _stamped(now_ms: int) -> Written:
    """The broker's own timestamps, in plain and in compressed batches."""
    chance = random.Random(4)
    batches = tuple(tuple(R(value=_text(chance, 500)) for _ in range(5)) for _ in range(40))
    encoded = tuple(
        batch(*records, codec=number % len(CODEC_NAMES), base_timestamp=now_ms - 1_000_000)
        for number, records in enumerate(batches)
    )
    return Written("stamped", batches, encoded, _config(message_timestamp_type="LogAppendTime"))
