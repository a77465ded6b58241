"""Exactly-once while the broker and its clients are killed, paused and replaced by chance.

KLAMM_CHAOS_S is how long each of the two workloads is disturbed, KLAMM_CHAOS_SEED what chance
begins with. A history that is wrong is kept, and its path is in the message.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from compat_tests.clients.fixtures import OwnBroker, create_topic
from compat_tests.clients.librdkafka import consumer_settings
from compat_tests.history.events import Event
from compat_tests.history.feed import unfed
from compat_tests.process.watched import run_klamm
from compat_tests.transactions.bank import ACCOUNTS_PER_BANK, OPENING_BALANCE
from compat_tests.transactions.chaos import BROKER_SETTINGS, Chaos
from compat_tests.transactions.steps import stop_and_check
from compat_tests.transactions.workers import GENERATION, Place, Worker

DURATION_S = float(os.environ.get("KLAMM_CHAOS_S", "60"))
SEED = int(os.environ.get("KLAMM_CHAOS_SEED", "1"))
CATCH_UP_S = 90.0
GROUP = "copiers"
# What both workloads put to the test, besides what each is there for.
RULES = ("I9 isolation", "I9 all or none", "I12 zombie")
# What `klamm dump` prints of a transactional id.
TRANSACTION = re.compile(
    r'TransactionLogKey=\{"transactional_id": "(?P<id>.*?)"\} TransactionLogValue=(?P<value>\{.*\})'
)
ONGOING = 1


@pytest.mark.timeout(DURATION_S + 300)
def test_money_is_neither_made_nor_lost(
    own_broker: OwnBroker, kafka_jars: Path, tmp_path: Path
) -> None:
    partitions = 3
    banks = {"bank-0": "confluent-kafka", "bank-1": "kafka-python", "bank-2": "aiokafka"}
    # Only Java speaks transactions version 2 (KIP-890), where a partition is added by writing to it
    # and each end raises the epoch.
    banks["bank-3"] = "java"
    broker = own_broker(BROKER_SETTINGS)
    broker.start()
    create_topic(broker.bootstrap, "bank", partitions)
    errors = tmp_path / "errors.txt"
    places = [
        Place("bank", (broker.bootstrap, "bank", partitions, bank, GENERATION, library), errors)
        for bank, library in banks.items()
    ]
    readers = [
        Worker("reader", (broker.bootstrap, "bank", partitions, library), errors)
        for library in ("confluent-kafka", "kafka-python")
    ]
    chaos = Chaos(broker, "bank", partitions, places, readers, SEED)
    total = len(banks) * ACCOUNTS_PER_BANK * OPENING_BALANCE
    chaos.tell(Event("ok", "topic", topic="bank", total=total))
    try:
        chaos.run(DURATION_S)
        chaos.stop()
        events = chaos.judge(["bank"], tmp_path / "history.jsonl")
    finally:
        chaos.kill_all()
    assert unfed(events, (*RULES, "I11 money")) == []
    assert count_of(events, "transaction", "ok") > DURATION_S
    stop_and_check(broker)
    spoken = spoken_versions(broker.data_dir)
    assert spoken == {bank: {2 if name == "java" else 0} for bank, name in banks.items()}


@pytest.mark.timeout(DURATION_S + 300)
def test_a_copy_has_every_record_once(own_broker: OwnBroker, tmp_path: Path) -> None:
    partitions = 2
    broker = own_broker(BROKER_SETTINGS)
    broker.start()
    for topic in ("source", "copy"):
        create_topic(broker.bootstrap, topic, partitions)
    errors = tmp_path / "errors.txt"
    places = [
        Place(
            "copier",
            (broker.bootstrap, "source", "copy", GROUP, f"copier-{number}", GENERATION),
            errors,
        )
        for number in range(2)
    ]
    readers = [Worker("reader", (broker.bootstrap, "copy", partitions, "confluent-kafka"), errors)]
    chaos = Chaos(broker, "copy", partitions, places, readers, SEED)
    chaos.tell(Event("ok", "topic", topic="copy", copy_of="source"))
    source = Source(chaos, partitions)
    try:
        chaos.run(DURATION_S)
        source.stop()
        deadline = time.monotonic() + CATCH_UP_S
        while not is_copied(broker.bootstrap, partitions):
            assert time.monotonic() < deadline, "the copiers do not catch up"
            chaos.keep_working(0.5)
        chaos.stop()
        events = chaos.judge(["source", "copy"], tmp_path / "history.jsonl")
    finally:
        source.stop()
        chaos.kill_all()
    assert unfed(events, (*RULES, "I10 copy")) == []
    assert count_of(events, "transaction", "ok") > DURATION_S / 4
    stop_and_check(broker)


def count_of(events: list[Event], action: str, outcome: str) -> int:
    return sum(1 for event in events if (event.action, event.type) == (action, outcome))


def spoken_versions(data_dir: Path) -> dict[str, set[int]]:
    """The versions with which each transactional id has begun transactions, as they are stored."""
    files = [str(path) for path in data_dir.glob("__transaction_state-*/*.log")]
    done = run_klamm("dump", "--limit", "200", *files)
    assert done.returncode == 0, done.stderr
    found: dict[str, set[int]] = {}
    for line in done.stdout.splitlines():
        record = TRANSACTION.search(line)
        if record is not None:
            value = json.loads(record["value"])
            if value["transaction_status"] == ONGOING:
                versions = found.setdefault(record["id"], set())
                versions.add(value["client_transaction_version"])
    return found


class Source(threading.Thread):
    """Writes numbered values to the source until it is stopped."""

    PER_SECOND = 100

    def __init__(self, chaos: Chaos, partitions: int) -> None:
        super().__init__(daemon=True)
        self._chaos = chaos
        self._partitions = partitions
        self._stopping = threading.Event()
        self.start()

    def stop(self) -> None:
        self._stopping.set()
        self.join(CATCH_UP_S)

    def run(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._chaos.broker.bootstrap,
                "enable.idempotence": True,
                "reconnect.backoff.max.ms": 500,
            }
        )
        for number in itertools.count():
            if self._stopping.wait(1 / self.PER_SECOND):
                break
            partition = number % self._partitions
            place = Event("invoke", "send", "source", topic="source", partition=partition)
            self._tell(place, f"s{number}", idempotent=True)
            producer.produce(
                "source",
                value=f"s{number}",
                partition=partition,
                on_delivery=lambda error, message: self._tell(
                    Event("ok" if error is None else "unknown", "send", "source", topic="source"),
                    (message.value() or b"").decode(),
                    partition=message.partition(),
                    offset=-1 if error is not None else message.offset(),
                ),
            )
            producer.poll(0)
        assert producer.flush(CATCH_UP_S) == 0

    def _tell(self, event: Event, value: str, **fields: object) -> None:
        self._chaos.tell(replace(event, value=value, **fields))  # type: ignore[arg-type]


def is_copied(bootstrap: str, partitions: int) -> bool:
    """Whether the group has committed everything that is in the source."""
    consumer = Consumer(consumer_settings(bootstrap) | {"group.id": GROUP})
    try:
        places = [TopicPartition("source", number) for number in range(partitions)]
        committed = consumer.committed(places, timeout=30)
        return all(
            one.offset == consumer.get_watermark_offsets(one, timeout=30)[1] for one in committed
        )
    finally:
        consumer.close()
