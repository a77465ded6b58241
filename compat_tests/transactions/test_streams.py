"""Kafka Streams counts words with exactly_once_v2, although the broker is killed under it."""

from __future__ import annotations

import random
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from compat_tests.apache_kafka.programs import program_command
from compat_tests.clients.fixtures import Broker, OwnBroker, create_topic
from compat_tests.clients.librdkafka import ConfluentKafka
from compat_tests.clients.model import READ_COMMITTED, READ_UNCOMMITTED, Record
from compat_tests.transactions.chaos import BROKER_SETTINGS
from compat_tests.transactions.reading import read_topic

PROGRAM = Path(__file__).resolve().parent / "java" / "WordCount.java"
WORDS = ("down", "the", "gorge", "over", "rocks", "into", "lake")
LINES_AT_ONCE = 40
ROUNDS = 3
PARTITIONS = 2
CATCH_UP_S = 120.0


@pytest.mark.timeout(420)
def test_every_word_is_counted_once(
    own_broker: OwnBroker, kafka_jars: Path, tmp_path: Path
) -> None:
    broker = own_broker(BROKER_SETTINGS)
    broker.start()
    for topic in ("lines", "counts"):
        create_topic(broker.bootstrap, topic, PARTITIONS)
    chance = random.Random(1)
    words: Counter[str] = Counter()
    with counting(broker, tmp_path):
        for number in range(ROUNDS):
            lines = [" ".join(chance.choices(WORDS, k=5)) for _ in range(LINES_AT_ONCE)]
            for line in lines:
                words.update(line.split())
            records = [Record(line.encode()) for line in lines]
            ConfluentKafka().produce(
                broker.bootstrap, "lines", records, partition=number % PARTITIONS
            )
            # Something of this round is counted, and most of it not.
            wait_for_counts(broker, words.total() - LINES_AT_ONCE * 5 + 1, READ_UNCOMMITTED)
            broker.kill()
            broker.start()
        wait_for_counts(broker, words.total(), READ_COMMITTED)
    counts = defaultdict(list)
    for _, _, value in read_topic(broker.bootstrap, "counts", range(PARTITIONS), READ_COMMITTED):
        word, count = value.split("=")
        counts[word].append(int(count))
    assert counts == {word: list(range(1, total + 1)) for word, total in words.items()}
    broker.stop()


def wait_for_counts(broker: Broker, count: int, isolation: str) -> None:
    deadline = time.monotonic() + CATCH_UP_S
    while True:
        partitions = range(PARTITIONS)
        there = sum(1 for _ in read_topic(broker.bootstrap, "counts", partitions, isolation))
        if there >= count:
            return
        assert time.monotonic() < deadline, f"{there} of {count} counts"
        time.sleep(0.5)


@contextmanager
def counting(broker: Broker, folder: Path) -> Iterator[None]:
    """The application, once it runs."""
    options = ("-Xmx256M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
    arguments = (broker.bootstrap, "word-count", "lines", "counts", str(folder / "state"))
    with (folder / "streams.txt").open("w") as errors:
        process = subprocess.Popen(
            program_command(PROGRAM, *arguments, options=options),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if line == "RUNNING\n":
                break
        yield
    finally:
        process.stdin.close()
        process.kill()
        process.wait()
        process.stdout.close()
