"""OffsetForLeaderEpoch: where the log of an epoch ends.

One broker alone stays in epoch 0; what can be asked about it is asked here.
"""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.twin.batches import R, batch
from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.logs import write
from compat_tests.twin.topics import Twin

EPOCHS = (0, 1, -1, -2, 2147483647, -2147483648)


def partition(index: int = 0, epoch: int = 0, current: int = -1) -> Plain:
    return {"partition": index, "leader_epoch": epoch, "current_leader_epoch": current}


def asked(*topics: tuple[str, list[Plain]], **fields: Any) -> Plain:
    held = [{"topic": topic, "partitions": partitions} for topic, partitions in topics]
    return {"replica_id": -1, "topics": held, **fields}


@pytest.fixture(scope="module")
def filled(twin: Twin) -> str:
    topic = twin.create_topic(partitions=2)
    with twin.conversation() as talk:
        write(talk, topic, batch(R(), R()), batch())
    return topic


@pytest.mark.every_version("offset_for_leader_epoch")
@pytest.mark.parametrize("index", [0, 1])
def test_epochs(talk: Conversation, filled: str, version: int, index: int) -> None:
    """Known, unknown, and none, in a partition with batches and in an empty one."""
    for epoch in EPOCHS:
        body = asked((filled, [partition(index, epoch)]))
        talk.ask("offset_for_leader_epoch", version, body)


@pytest.mark.every_version("offset_for_leader_epoch")
def test_current_leader_epochs(talk: Conversation, filled: str, version: int) -> None:
    for current in EPOCHS:
        for epoch in (0, 1):
            body = asked((filled, [partition(0, epoch, current)]))
            talk.ask("offset_for_leader_epoch", version, body)


@pytest.mark.every_version("offset_for_leader_epoch", since=3)
@pytest.mark.parametrize("replica_id", [-1, -2, -3, 0, 1, 2])
def test_replica_ids(talk: Conversation, filled: str, version: int, replica_id: int) -> None:
    body = asked((filled, [partition()]), replica_id=replica_id)
    talk.ask("offset_for_leader_epoch", version, body)


@pytest.mark.every_version("offset_for_leader_epoch")
def test_what_is_not_there(twin: Twin, talk: Conversation, filled: str, version: int) -> None:
    unknown = twin.unused_name("unknown")
    for body in (
        asked((filled, [partition(7)])),
        asked((filled, [partition(-1)])),
        asked((unknown, [partition()])),
        asked(("", [partition()])),
        asked(("a b", [partition()])),
        asked((unknown, [partition()]), (filled, [partition(), partition(9)])),
        asked((filled, [])),
        asked(),
    ):
        talk.ask("offset_for_leader_epoch", version, body)


@pytest.mark.every_version("offset_for_leader_epoch")
def test_several(talk: Conversation, filled: str, version: int) -> None:
    for partitions in (
        [partition(1), partition(0)],
        [partition(0), partition(0)],
        [partition(0, 0), partition(0, 5)],
        [partition(0, 0, 7), partition(1)],
    ):
        talk.ask("offset_for_leader_epoch", version, asked((filled, partitions)))
