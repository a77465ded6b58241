"""The same log, compacted by Apache Kafka and by klamm: the same batches and records are left.

Apache Kafka writes the log, transactions among it, into one segment; klamm gets a copy of the
directory. Then both are given the same large batch, which makes them roll, and their cleaners find
something to do. Further ones do it again: what was to be kept for a while can go then.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Producer

from compat_tests.apache_kafka import ApacheKafka, small_kafka
from compat_tests.clients import raw
from compat_tests.clients.fixtures import create_topic
from compat_tests.disk.traveller import wait_for
from compat_tests.klamm_process import KlammProcess
from compat_tests.process.watched import run_klamm
from compat_tests.twin.batches import CODEC_NAMES, R, batch

pytestmark = pytest.mark.timeout(300)

SEGMENT_BYTES = 1024 * 1024
# Two of them do not fit into a segment, nor does one behind the rest.
LARGE = 1_000_000
PROPERTIES = {"log.cleaner.backoff.ms": "100", "log.initial.task.delay.ms": "0"}
KEYS = 40
# The first sees what was written, the second removes tombstones and finds that the data of markers
# has gone, the third removes those.
TURNS = (1, 2, 3)
# How long tombstones and markers are kept: until the next compaction, and for a day.
TOPICS = {"short": "0", "long": "86400000"}
# Where a batch lies, which is by its codec; who led; and when it may go, by the broker's clock.
_INCIDENTAL = re.compile(r" (byte|size|leader_epoch|delete_horizon)=\S+")
# Their names, and empty batches of nobody: klamm ends every segment with one where it has to, so
# that after a crash nobody wonders how far it reached, and Apache Kafka only the last segment.
_OF_SEGMENTS = re.compile(r"file |batch offsets=\S+ records=0 codec=none max_timestamp=\S+$")


@dataclass(frozen=True)
class Compacted:
    """What both have left of each topic, after each compaction."""

    before: dict[str, list[str]]
    by_kafka: dict[tuple[str, int], list[str]]
    by_klamm: dict[tuple[str, int], list[str]]


@pytest.fixture(scope="module")
def compacted(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Compacted:
    folder = tmp_path_factory.mktemp("compaction")
    kafka = small_kafka(folder / "kafka", properties=PROPERTIES)
    klamm = KlammProcess(folder / "klamm", properties=PROPERTIES)
    with kafka:
        for topic, delete_retention_ms in TOPICS.items():
            _write(kafka.bootstrap, topic, delete_retention_ms)
        # Held still, it leaves what a kill would leave.
        os.kill(kafka.pid, signal.SIGSTOP)
        try:
            shutil.copytree(kafka.data_dir, klamm.data_dir)
        finally:
            os.kill(kafka.pid, signal.SIGCONT)
        result = Compacted({topic: dump(kafka.data_dir, topic) for topic in TOPICS}, {}, {})
        with klamm:
            for turn in TURNS:
                for topic in TOPICS:
                    _compact(topic, kafka, klamm)
                    result.by_kafka[topic, turn] = dump(kafka.data_dir, topic)
                    result.by_klamm[topic, turn] = dump(klamm.data_dir, topic)
    return result


def dump(data_dir: Path, topic: str) -> list[str]:
    """The batches and records of a log, without what differs from run to run."""
    logs = sorted((data_dir / f"{topic}-0").glob("*.log"))
    done = run_klamm("dump", *map(str, logs))
    assert done.returncode == 0, done.stdout[-1000:]
    lines = [_INCIDENTAL.sub("", line) for line in done.stdout.splitlines()]
    return [line for line in lines if not _OF_SEGMENTS.match(line)]


def _compact(topic: str, kafka: ApacheKafka, klamm: KlammProcess) -> None:
    """Make both roll once, and wait until they have compacted what is before it."""
    chance = random.Random(topic)
    large = batch(
        R(chance.randbytes(LARGE), key=b"large"), base_timestamp=time.time_ns() // 1_000_000
    )
    error, offset = raw.produce(kafka.bootstrap, topic, large)
    assert (error, offset) == raw.produce(klamm.bootstrap, topic, large)
    assert error == 0
    for data_dir in (kafka.data_dir, klamm.data_dir):
        checkpoint = data_dir / "cleaner-offset-checkpoint"

        def is_compacted(checkpoint: Path = checkpoint) -> bool:
            return checkpoint.exists() and f"{topic} 0 {offset}\n" in checkpoint.read_text()

        wait_for(is_compacted, f"{data_dir.name} does not compact {topic} up to {offset}")


# --- what is compacted ---------------------------------------------------------------------------


def _write(bootstrap: str, topic: str, delete_retention_ms: str) -> None:
    config = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "segment.bytes": str(SEGMENT_BYTES),
        "delete.retention.ms": delete_retention_ms,
    }
    create_topic(bootstrap, topic, config=config)
    raw.wait_until_led(bootstrap, topic, 1)
    raw.produce_all(bootstrap, topic, _batches())
    _transactions(bootstrap, topic)
    raw.produce_all(bootstrap, topic, _batches(seed=2))


def _batches(seed: int = 1) -> Iterator[bytes]:
    """Keys that come again, tombstones, headers, every codec, and idempotent producers."""
    chance = random.Random(seed)
    now_ms = time.time_ns() // 1_000_000
    sequences = dict.fromkeys((seed * 100 + 1, seed * 100 + 2), 0)
    for number in range(60):
        records = tuple(
            R(
                value=None if chance.random() < 0.2 else chance.randbytes(chance.randrange(300)),
                key=b"key %d" % chance.randrange(KEYS),
                headers=((b"header", b"value"), (b"null", None)) if chance.random() < 0.3 else (),
                timestamp_delta=chance.randrange(100),
            )
            for _ in range(chance.randrange(1, 12))
        )
        producer_id = chance.choice((-1, *sequences))
        yield batch(
            *records,
            codec=number % len(CODEC_NAMES),
            base_timestamp=now_ms + number,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=sequences.get(producer_id, -1),
        )
        if producer_id >= 0:
            sequences[producer_id] += len(records)


def _transactions(bootstrap: str, topic: str) -> None:
    """Committed and aborted ones, of two producers by turns."""
    producers = []
    for number in range(2):
        producer = Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": f"{topic} {number}"}
        )
        producer.init_transactions(60)
        producers.append(producer)
    for turn in range(6):
        for producer in producers:
            producer.begin_transaction()
        for record in range(20):
            for number, producer in enumerate(producers):
                key = f"key {(record * 7 + turn) % KEYS}" if turn % 3 else f"own {number} {turn}"
                producer.produce(topic, f"{turn} {record} {number}", key)
        for number, producer in enumerate(producers):
            # An abort drops what was not sent yet.
            producer.flush()
            if (turn + number) % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()


# --- what is left --------------------------------------------------------------------------------


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("topic", TOPICS)
def test_the_same_is_left(compacted: Compacted, topic: str, turn: int) -> None:
    assert compacted.by_klamm[topic, turn] == compacted.by_kafka[topic, turn]


def test_every_case_was_there(compacted: Compacted) -> None:
    """The comparison would hold for logs that have nothing to compact, too."""

    def count(lines: list[str], what: str) -> int:
        return sum(what in line for line in lines)

    for topic in TOPICS:
        before = compacted.before[topic]
        first, last = compacted.by_kafka[topic, 1], compacted.by_kafka[topic, TURNS[-1]]
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            assert count(before, f"codec={codec}") > 0
            assert count(first, f"codec={codec}") > 0
        for what in ("value=null", "headers="):
            assert count(before, what) > count(first, what) > 0, what
        for marker in ("control=COMMIT", "control=ABORT"):
            assert count(before, marker) == count(first, marker) > 0, marker
        assert count(before, "records=0") == 0
        assert count(first, "records=0") > 0, "the last batches of producers"
        assert count(before, " record ") > 2 * count(first, " record ")
        for what in ("value=null", "control="):
            if topic == "short":
                assert count(last, what) < count(first, what), what
            else:
                assert count(last, what) == count(first, what), what
