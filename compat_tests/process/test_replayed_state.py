"""After a stop, clean or not, the broker is what it was: all that it tells of itself is the same.

A topic with settings, producers, an open transaction with offsets, a group that has only offsets,
and groups of both protocols with a member each are there; nobody writes while it is looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import Consumer, Producer, TopicPartition

from compat_tests.clients.fixtures import create_topic
from compat_tests.clients.librdkafka import consumer_settings
from compat_tests.history.feed import unfed
from compat_tests.history.recorder import History
from compat_tests.history.rules import violations
from compat_tests.process.asking import Asker
from compat_tests.process.clients import IMPATIENT
from compat_tests.process.fixtures import StartKlamm
from compat_tests.process.sampling import watermarks
from compat_tests.process.state import add_state
from compat_tests.process.watched import until

PARTITIONS = 2
TIMEOUT_S = 30.0
# Two transactions with a record and a marker each, and the record of the one that is open.
HIGH_WATERMARK = 5
PROPERTIES = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    # Longer than any start on a busy machine: the members shall not be forgotten meanwhile.
    "group.consumer.session.timeout.ms": "60000",
    "group.consumer.max.session.timeout.ms": "60000",
}
CLASSIC = {"session.timeout.ms": 60_000}
NEW = {"group.protocol": "consumer"}


def test_what_is_told_before_and_after(start_klamm: StartKlamm) -> None:
    klamm = start_klamm(PROPERTIES)
    bootstrap = klamm.bootstrap
    history = History()
    create_topic(bootstrap, "topic", PARTITIONS, config={"segment.ms": "100000"})
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "id", **IMPATIENT})
    producer.init_transactions(TIMEOUT_S)
    write(producer, "committed")
    producer.commit_transaction(TIMEOUT_S)
    write(producer, "aborted")
    producer.abort_transaction(TIMEOUT_S)
    with member(bootstrap, "empty", CLASSIC) as leaving:
        leaving.commit(offsets=[TopicPartition("topic", 0, 1)], asynchronous=False)
    with member(bootstrap, "classic", CLASSIC) as classic, member(bootstrap, "new", NEW):
        write(producer, "open")
        pending = [TopicPartition("topic", 0, 2)]
        group = classic.consumer_group_metadata()
        producer.send_offsets_to_transaction(pending, group, TIMEOUT_S)
        check_that_all_is_there(add_state(history, bootstrap, "live"))
        for stop in (klamm.stop, klamm.kill, klamm.stop):
            stop()
            klamm.start()
            add_state(history, bootstrap, "replayed")
        assert violations(history.events()) == []
        assert unfed(history.events(), ["I15 replay"]) == []
    # And it goes on from there.
    producer.commit_transaction(TIMEOUT_S)
    until(lambda: last_stable(bootstrap) == HIGH_WATERMARK + 1, "the transaction has ended")


def check_that_all_is_there(told: Mapping[str, str]) -> None:
    """Otherwise a broker that has forgotten everything would be the same, too."""
    state = {name: json.loads(value) for name, value in told.items()}
    for partition in range(PARTITIONS):
        ends = state[f"log topic-{partition}"]
        assert ends["last stable"] == ["none", HIGH_WATERMARK - 1]
        assert ends["high watermark"] == ["none", HIGH_WATERMARK]
        assert len(state[f"producers of topic-{partition}"]) == 1
    assert ["segment.ms", "100000"] in state["topic topic"][2]
    for group, members in (("empty", 0), ("classic", 1), ("new", 1)):
        assert len(state[f"group {group}"]["members"]) == members
    assert state["group classic"]["group_state"] == state["group new"]["group_state"] == "Stable"
    assert len(state["offsets of empty"]) == 1
    assert state["transaction id"]["transaction_state"] == "Ongoing"


def last_stable(bootstrap: str) -> int:
    with Asker(bootstrap) as asker:
        marks = watermarks(asker, "topic")
    return -1 if marks is None else marks.last_stable


def write(producer: Producer, value: str) -> None:
    """Begin a transaction, and write to each partition."""
    producer.begin_transaction()
    for partition in range(PARTITIONS):
        producer.produce("topic", value, partition=partition)
    producer.flush(TIMEOUT_S)


@contextmanager
def member(bootstrap: str, group: str, settings: Mapping[str, object]) -> Iterator[Consumer]:
    """A member that has been given everything; its library keeps it in the group."""
    own = {"group.id": group, "auto.offset.reset": "earliest", **settings}
    consumer = Consumer(consumer_settings(bootstrap) | IMPATIENT | own)
    try:
        consumer.subscribe(["topic"])

        def is_assigned() -> bool:
            consumer.poll(0.05)
            return len(consumer.assignment()) == PARTITIONS

        until(is_assigned, f"a member of {group} has the topic")
        yield consumer
    finally:
        consumer.close()
