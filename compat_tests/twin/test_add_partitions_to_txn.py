"""AddPartitionsToTxn: one transaction in the versions of producers, several in those of brokers."""

from __future__ import annotations

import pytest

from compat_tests.twin.cases import all_cases
from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation, Side
from compat_tests.twin.topics import Twin
from compat_tests.twin.transactions import Producer

STRANGERS: tuple[dict[str, int], ...] = (
    {"epoch": 1},
    {"epoch": -1},
    {"producer": 1 << 40},
    {"producer": 1 << 40, "epoch": 5},
)


@pytest.mark.every_version("add_partitions_to_txn")
def test_partitions(twin: Twin, talk: Conversation, producer: Producer, version: int) -> None:
    first, second = twin.create_topic(partitions=3), twin.create_topic()
    producer.init(talk)
    several: tuple[dict[str, list[int]], ...] = (
        {first: [1]},
        {first: [1]},
        {first: [0, 1, 2], second: [0]},
        {first: [2, 2]},
        {first: []},
        {},
    )
    for topics in several:
        producer.add(talk, topics, version)
        producer.describe(talk)


@pytest.mark.every_version("add_partitions_to_txn")
def test_none_at_all(talk: Conversation, producer: Producer, version: int) -> None:
    """The transaction begins all the same."""
    producer.init(talk)
    producer.add(talk, {}, version)
    producer.describe(talk)


@pytest.mark.every_version("add_partitions_to_txn")
def test_what_is_not_there(
    twin: Twin, talk: Conversation, producer: Producer, version: int
) -> None:
    """One that does not exist, or belongs to the broker, and none is added."""
    topic, unknown = twin.create_topic(partitions=2), twin.unused_name("unknown")
    twin.wait_until_groups_are_served()
    producer.init(talk)
    for topics in (
        {topic: [0, 2]},
        {topic: [-1]},
        {topic: [0], unknown: [0]},
        {"__consumer_offsets": [0], topic: [0]},
        {"__transaction_state": [0], unknown: [0]},
        {"": [0]},
        {"a b": [0]},
    ):
        producer.add(talk, topics, version)
        producer.describe(talk)


@pytest.mark.every_version("add_partitions_to_txn")
def test_strangers(twin: Twin, talk: Conversation, producer: Producer, version: int) -> None:
    topic = twin.create_topic()
    producer.init(talk)
    with all_cases() as cases:
        for state in ("empty", "ongoing", "complete"):
            for who in STRANGERS:
                with cases.case(f"{state} {who}"):
                    producer.add(talk, {topic: [0]}, version, **who)
            if state == "empty":
                producer.add(talk, {topic: [0]}, version)
            if state == "ongoing":
                producer.end(talk)
                producer.settle(talk)


@pytest.mark.every_version("add_partitions_to_txn")
@pytest.mark.parametrize("transactional_id", ["", "nobody knows it"])
def test_ids_that_are_not_there(
    transactional: Twin, talk: Conversation, version: int, transactional_id: str
) -> None:
    topic = transactional.create_topic()
    nobody = Producer(transactional)
    nobody.id = transactional_id
    for side in talk.sides:
        nobody.ids[side.name], nobody.epochs[side.name] = 5, 0
    for verify_only in (False, True):
        body = nobody.adding({topic: [0]}, verify_only=verify_only)
        talk.ask("add_partitions_to_txn", version, body)


@pytest.mark.every_version("add_partitions_to_txn", since=4)
def test_verification(twin: Twin, talk: Conversation, producer: Producer, version: int) -> None:
    """It says of each partition whether it is part of the transaction, and changes nothing."""
    topic = twin.create_topic(partitions=3)
    unknown = twin.unused_name("unknown")

    def ask(**who: int) -> None:
        for topics in ({topic: [0, 1, 2]}, {topic: [1]}, {topic: [0], unknown: [0]}, {}):
            body = producer.adding(topics, verify_only=True, **who)
            talk.ask("add_partitions_to_txn", version, body)

    producer.init(talk)
    ask()
    producer.add(talk, {topic: [0, 2]}, version)
    ask()
    for who in STRANGERS:
        ask(**who)
    producer.end(talk)
    producer.settle(talk)
    ask()
    ask(epoch=-1)
    producer.describe(talk)


@pytest.mark.every_version("add_partitions_to_txn", since=4)
def test_several_transactions(
    twin: Twin, talk: Conversation, producer: Producer, version: int
) -> None:
    topic = twin.create_topic(partitions=2)
    other, nobody = Producer(twin), Producer(twin)
    for one in (producer, other):
        one.init(talk)
    nobody.ids, nobody.epochs = producer.ids, producer.epochs

    def body(side: Side) -> Plain:
        asked = (
            producer.adding({topic: [0]}),
            other.adding({topic: [0, 1]}, verify_only=True),
            nobody.adding({topic: [1]}),
        )
        return {"transactions": [one(side)["transactions"][0] for one in asked]}

    for _ in range(2):
        talk.ask("add_partitions_to_txn", version, body)
    nothing: Plain = {"transactions": []}
    talk.ask("add_partitions_to_txn", version, nothing, patience_s=1, deviation="D-030")
