"""WriteTxnMarkers: what partitions take from somebody who says that it is a coordinator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation, Side
from compat_tests.twin.requests import Body
from compat_tests.twin.topics import Twin
from compat_tests.twin.transactions import Producer, compare_committed


def markers(
    producer: Producer,
    *entries: Mapping[str, Sequence[int]],
    epoch: int = 0,
    **fields: Any,
) -> Body:
    def body(side: Side) -> Plain:
        base = {**producer.identity(side, epoch=epoch), "coordinator_epoch": 0}
        base |= {"transaction_result": True, "transaction_version": 0, **fields}
        return {
            "markers": [
                {
                    **base,
                    "topics": [
                        {"name": name, "partition_indexes": list(held)}
                        for name, held in topics.items()
                    ],
                }
                for topics in entries
            ]
        }

    return body


@pytest.mark.every_version("write_txn_markers")
@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
def test_an_open_transaction(
    twin: Twin, talk: Conversation, producer: Producer, version: int, committed: bool
) -> None:
    """It is ended in one partition, and its coordinator ends it in all of them."""
    topic = twin.create_topic(partitions=2)
    producer.init(talk)
    for partition in (0, 1):
        producer.write(talk, topic, b"one", partition=partition)
    body = markers(producer, {topic: [0]}, transaction_result=committed)
    for _ in range(2):
        talk.ask("write_txn_markers", version, body)
        compare_committed(talk, topic)
    producer.end(talk, commit=committed)
    producer.settle(talk)
    for partition in (0, 1):
        compare_committed(talk, topic, partition)


@pytest.mark.every_version("write_txn_markers")
def test_epochs(twin: Twin, talk: Conversation, producer: Producer, version: int) -> None:
    """Of producers and of coordinators: old ones are fenced. Since version 2 of transactions the
    epoch of a marker must be above the one that has written."""
    topic = twin.create_topic()
    producer.init(talk)
    producer.write(talk, topic, b"one")
    for fields in (
        *({"transaction_version": 2}, {"epoch": -1}, {"epoch": 1, "transaction_version": 2}),
        *(
            {"epoch": 1, "transaction_version": 2},
            {"epoch": 1},
            {"coordinator_epoch": 5, "epoch": 1},
        ),
        *({"epoch": 1, "coordinator_epoch": 4}, {"epoch": 2, "coordinator_epoch": 4}),
        *({"epoch": 2, "coordinator_epoch": 5, "transaction_version": 2},),
    ):
        talk.ask("write_txn_markers", version, markers(producer, {topic: [0]}, **fields))
        compare_committed(talk, topic)


@pytest.mark.every_version("write_txn_markers")
def test_what_is_not_there(
    twin: Twin, talk: Conversation, producer: Producer, version: int
) -> None:
    topic, unknown = twin.create_topic(partitions=2), twin.unused_name("unknown")
    producer.init(talk)
    several: tuple[list[dict[str, list[int]]], ...] = (
        [],
        [{}],
        [{topic: []}],
        [{unknown: [0]}],
        [{topic: [0, 7, -1], unknown: [0, 1]}],
        [{topic: [1]}, {topic: [1, 0]}],
        [{"": [0]}],
    )
    for entries in several:
        talk.ask("write_txn_markers", version, markers(producer, *entries))
    for partition in (0, 1):
        compare_committed(talk, topic, partition)


@pytest.mark.every_version("write_txn_markers")
@pytest.mark.parametrize(
    ("producer_id", "epoch"),
    [(-1, 0), (-1, -1), (1 << 55, -1), (-2, 0), (1 << 55, -2), (1 << 60, 32767)],
)
def test_producers_that_nobody_is(
    transactional: Twin, talk: Conversation, version: int, producer_id: int, epoch: int
) -> None:
    topic = transactional.create_topic()
    marker = {
        "producer_id": producer_id,
        "producer_epoch": epoch,
        "transaction_result": True,
        "coordinator_epoch": 0,
        "topics": [{"name": topic, "partition_indexes": [0]}],
    }
    deviation = "D-032" if producer_id < -1 else None
    talk.ask("write_txn_markers", version, {"markers": [marker]}, deviation=deviation)
