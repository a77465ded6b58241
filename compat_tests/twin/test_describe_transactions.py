"""DescribeTransactions and ListTransactions: what coordinators know, and what filters leave."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from compat_tests.twin.cases import all_cases
from compat_tests.twin.codec import encode_request
from compat_tests.twin.conversation import Conversation, Side
from compat_tests.twin.topics import Twin
from compat_tests.twin.transactions import Producer

STATES = (
    *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"),
    *("Dead", "PrepareEpochFence", "empty", "Nothing", ""),
)


@pytest.mark.every_version("describe_transactions")
def test_ids_that_are_not_there(transactional: Twin, talk: Conversation, version: int) -> None:
    for ids in ([], [""], ["nobody knows it"], ["a", "", "a"]):
        talk.ask("describe_transactions", version, {"transactional_ids": ids})


def test_an_empty_transaction(talk: Conversation, producer: Producer) -> None:
    """Byte by byte, because kio has no words for a begin at -1."""
    producer.init(talk, timeout=1234)
    frames = []
    for side in talk.sides:
        body = {"transactional_ids": [producer.id]}
        connection = talk.connection(side)
        connection.send_frame(encode_request("describe_transactions", 0, body))
        frame = connection.receive_frame()
        assert frame is not None
        given = struct.pack(">q", producer.ids[side.name])
        assert frame.count(given) == 1
        frames.append(frame.replace(given, b"producer"))
    assert frames[0] == frames[1]


@pytest.fixture(scope="module")
def several(transactional: Twin) -> list[Producer]:
    """One transactional id for each state that lasts."""
    topic = transactional.create_topic()
    made = [Producer(transactional) for _ in range(4)]
    with transactional.conversation() as talk:
        for number, one in enumerate(made):
            one.init(talk)
            if number:
                one.add(talk, {topic: [0]})
            if number > 1:
                one.end(talk, commit=number == 2)
                one.settle(talk)
    return made


def listed(several: list[Producer], **fields: Any) -> Any:
    """The reply without what other tests have left."""
    mine = {one.id for one in several}

    def only_mine(reply: Any) -> Any:
        states = [one for one in reply["transaction_states"] if one["transactional_id"] in mine]
        return {**reply, "transaction_states": states}

    return {"prepare": only_mine, **fields}


@pytest.mark.every_version("list_transactions")
def test_states(talk: Conversation, several: list[Producer], version: int) -> None:
    with all_cases() as cases:
        for states in ([], *([state] for state in STATES), list(STATES), ["Empty", "Empty"]):
            with cases.case(str(states)):
                body = {"state_filters": states}
                rules = {"unknown_state_filters": lambda kafka, other: set(kafka) == set(other)}
                talk.ask("list_transactions", version, body, **listed(several, rules=rules))


@pytest.mark.every_version("list_transactions")
def test_producers(talk: Conversation, several: list[Producer], version: int) -> None:
    for chosen in ([], [0], [1, 3], [0, 1, 2, 3]):

        def body(side: Side, chosen: list[int] = chosen) -> Any:
            ids = [several[number].ids[side.name] for number in chosen]
            return {"producer_id_filters": [*ids, 1 << 50, -1]}

        talk.ask("list_transactions", version, body, **listed(several))


@pytest.mark.every_version("list_transactions", since=1)
@pytest.mark.parametrize("duration", [-1, -2, 0, 3_600_000, 1 << 62])
def test_durations(
    talk: Conversation, several: list[Producer], version: int, duration: int
) -> None:
    """An empty transaction has begun at -1, long ago."""
    talk.ask("list_transactions", version, {"duration_filter": duration}, **listed(several))


@pytest.mark.every_version("list_transactions", since=2)
@pytest.mark.parametrize(
    "pattern",
    [
        ".*",
        "",
        None,
        "transaction",
        "transaction-.*",
        "(",
        "[",
        "a**",
        r"\d",
        "TRANSACTION-.*",
        "(?i)TR.*",
    ],
)
def test_patterns(
    talk: Conversation, several: list[Producer], version: int, pattern: str | None
) -> None:
    """The whole id has to match."""
    body = {"transactional_id_pattern": pattern}
    talk.ask("list_transactions", version, body, **listed(several))


def test_producers_of_a_partition(twin: Twin, talk: Conversation, producer: Producer) -> None:
    """DescribeProducers shows where a transaction began, and which coordinator ended the last."""
    topic = twin.create_topic()
    body = {"topics": [{"name": topic, "partition_indexes": [0]}]}

    def describe() -> None:
        rules = {
            "topics[].partitions[].active_producers[].last_timestamp": (
                lambda kafka, other: abs(kafka - other) < 30_000
            )
        }
        talk.ask("describe_producers", 0, body, rules=rules)

    producer.init(talk)
    for commit in (True, False):
        producer.write(talk, topic, b"one", b"two")
        describe()
        producer.write(talk, topic, b"three")
        describe()
        producer.end(talk, commit=commit)
        producer.settle(talk)
        describe()
