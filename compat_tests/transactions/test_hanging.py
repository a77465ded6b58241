"""Transactions that no coordinator will ever end: kafka-transactions finds and aborts them, and
prints the same on klamm and on Apache Kafka.

They come from brokers that do not verify what is written: a producer that has never announced the
partition begins a transaction there, which holds up whoever reads committed data.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.clients.java_client import JavaProcess
from compat_tests.transactions.tool import kafka_transactions
from compat_tests.twin.batches import TRANSACTIONAL, batch
from compat_tests.twin.brokers import pair_of_brokers
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.requests import produce
from compat_tests.twin.topics import Twin
from compat_tests.twin.transactions import VERIFYING, Producer, compare_committed

# Nobody was ever given this producer id.
STRANGER = 1_000_000
ANNOUNCED, UNANNOUNCED, STRANGE, EMPTY = range(4)

Row = dict[str, str]


@pytest.fixture
def twin(kafka_jars: Path, tmp_path: Path) -> Iterator[Twin]:
    with pair_of_brokers(tmp_path, {"transaction.partition.verification.enable": "false"}) as pair:
        pair.wait_until_transactions_are_served()
        yield pair


class Tool:
    """Runs kafka-transactions with both brokers, and compares what it prints."""

    def __init__(self, process: JavaProcess, twin: Twin) -> None:
        self._process = process
        self._sides = twin.sides

    def __call__(self, *arguments: str) -> list[Row]:
        on_kafka, on_klamm = [
            self._comparable(
                kafka_transactions(self._process, f"127.0.0.1:{side.port}", *arguments),
                side.producers,
            )
            for side in self._sides
        ]
        assert on_klamm == on_kafka
        return on_kafka

    def _comparable(self, rows: list[Row], producers: dict[int, str]) -> list[Row]:
        for row in rows:
            row["ProducerId"] = producers.get(int(row["ProducerId"]), row["ProducerId"])
            # How long it has been there: the records are of 2023.
            assert int(row.pop("Duration(min)")) > 1_000_000
        return sorted(rows, key=lambda row: row["Partition"])


def test_what_hangs_is_found_and_aborted(twin: Twin, java_process: JavaProcess) -> None:
    tool = Tool(java_process, twin)
    topic = twin.create_topic(partitions=4)
    announced, unannounced = Producer(twin), Producer(twin)
    with twin.conversation() as talk:
        for producer in (announced, unannounced):
            producer.init(talk)
        announced.add(talk, {topic: [ANNOUNCED]})
        announced.write(talk, topic, version=VERIFYING, partition=ANNOUNCED)
        unannounced.write(talk, topic, version=VERIFYING, partition=UNANNOUNCED)
        write_as_a_stranger(talk, topic)

        # The first is as old as the others, but its coordinator knows of it.
        hanging = tool("find-hanging", "--broker-id", "1")
        assert [(row["Topic"], row["Partition"]) for row in hanging] == [
            (topic, str(UNANNOUNCED)),
            (topic, str(STRANGE)),
        ]
        assert hanging[0]["ProducerId"] == f"<producer of {unannounced.id}>"
        assert hanging[1]["ProducerId"] == str(STRANGER)
        assert {row["StartOffset"] for row in hanging} == {"0"}
        assert tool("find-hanging", "--topic", topic, "--partition", str(STRANGE)) == hanging[1:]
        assert tool("find-hanging", "--topic", topic, "--partition", str(EMPTY)) == []
        # Nobody takes it for one that hangs when transactions may take that long.
        longest = ("--max-transaction-timeout", str(2**31 - 1))
        assert tool("find-hanging", "--broker-id", "1", *longest) == []

        where = ("abort", "--topic", topic, "--partition")
        tool(*where, str(UNANNOUNCED), "--start-offset", "0")
        assert tool("find-hanging", "--broker-id", "1") == hanging[1:]
        who = ("--producer-id", str(STRANGER), "--producer-epoch", "0", "--coordinator-epoch", "0")
        tool(*where, str(STRANGE), *who)
        assert tool("find-hanging", "--broker-id", "1") == []

        for partition in range(4):
            compare_committed(talk, topic, partition)
        # The one that nobody has touched goes on.
        announced.end(talk)
        announced.settle(talk)
        compare_committed(talk, topic, ANNOUNCED)


def write_as_a_stranger(talk: Conversation, topic: str) -> None:
    for side in talk.sides:
        side.producers[STRANGER] = str(STRANGER)
    records = batch(
        attributes=TRANSACTIONAL, producer_id=STRANGER, producer_epoch=0, base_sequence=0
    )
    body = produce(topic, {STRANGE: records}, transactional_id="stranger")
    talk.ask("produce", VERIFYING, body)
