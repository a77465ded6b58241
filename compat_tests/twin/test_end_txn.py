"""EndTxn: who may end what, in every state, and what is said to all others."""

from __future__ import annotations

import pytest

from compat_tests.twin.cases import all_cases
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.topics import Twin
from compat_tests.twin.transactions import Producer

WHO: tuple[dict[str, int], ...] = (
    {},
    {"epoch": -1},
    {"epoch": 1},
    {"epoch": -2},
    {"producer": 1 << 40},
    {"producer": 1 << 40, "epoch": 1},
)


@pytest.mark.every_version("end_txn")
def test_nothing_is_open(twin: Twin, talk: Conversation, producer: Producer, version: int) -> None:
    """Abort of an empty transaction is allowed in version 2, and brings a new epoch."""
    producer.init(talk)
    producer.init(talk)
    with all_cases() as cases:
        for commit in (True, False):
            for who in WHO:
                with cases.case(f"{commit} {who}"):
                    producer.end(talk, commit=commit, version=version, **who)
                    producer.settle(talk)
    producer.describe(talk)


@pytest.mark.every_version("end_txn")
@pytest.mark.parametrize("ended", [True, False], ids=["committed", "aborted"])
def test_the_transaction_is_complete(
    twin: Twin, talk: Conversation, producer: Producer, version: int, ended: bool
) -> None:
    """Asked again for the same or another outcome, with the epoch of then and of now."""
    topic = twin.create_topic()
    with all_cases() as cases:
        for commit in (True, False):
            for who in WHO:
                with cases.case(f"{commit} {who}"):
                    producer.init(talk)
                    producer.add(talk, {topic: [0]})
                    producer.end(talk, commit=ended, version=version)
                    producer.settle(talk)
                    producer.end(talk, commit=commit, version=version, **who)
                    producer.settle(talk)
                    producer.describe(talk)


@pytest.mark.every_version("end_txn")
def test_while_it_is_open(twin: Twin, talk: Conversation, producer: Producer, version: int) -> None:
    topic = twin.create_topic()
    producer.init(talk)
    producer.add(talk, {topic: [0]})
    with all_cases() as cases:
        for commit in (True, False):
            for who in WHO[1:]:
                with cases.case(f"{commit} {who}"):
                    producer.end(talk, commit=commit, version=version, **who)
    producer.describe(talk)
    producer.end(talk, version=version)


@pytest.mark.every_version("end_txn")
@pytest.mark.parametrize("transactional_id", ["", "nobody knows it"])
def test_ids_that_are_not_there(
    transactional: Twin, talk: Conversation, version: int, transactional_id: str
) -> None:
    body = {"transactional_id": transactional_id, "producer_id": 5, "producer_epoch": 0}
    for commit in (True, False):
        talk.ask("end_txn", version, {**body, "committed": commit})


def test_versions_are_mixed(twin: Twin, talk: Conversation, producer: Producer) -> None:
    """A client that is upgraded, and downgraded, between two transactions."""
    topic = twin.create_topic()
    producer.init(talk)
    for version in (4, 5, 5, 3, 5):
        producer.add(talk, {topic: [0]})
        producer.end(talk, version=version)
        producer.settle(talk)
        producer.describe(talk)
        producer.end(talk, commit=False, version=version)
        producer.settle(talk)


def test_a_zombie_of_version_2_behind_a_producer_of_version_1(
    twin: Twin, talk: Conversation, producer: Producer
) -> None:
    """Kafka takes the zombie's request for one that its successor sends again, and tells it the
    epoch of that one, with which it could go on."""
    topic = twin.create_topic()
    producer.init(talk)
    zombie = producer.copy()
    producer.init(talk)
    producer.add(talk, {topic: [0]})
    producer.end(talk, version=4)
    producer.settle(talk)
    body = {"transactional_id": zombie.id, "committed": True}
    talk.ask(
        *("end_txn", 5, lambda side: {**body, **zombie.identity(side)}),
        deviation="D-031",
    )
