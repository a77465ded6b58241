"""AddOffsetsToTxn: the partition of a group becomes part of the transaction."""

from __future__ import annotations

import pytest

from compat_tests.twin.conversation import Conversation
from compat_tests.twin.topics import Twin
from compat_tests.twin.transactions import Producer

pytestmark = pytest.mark.usefixtures("coordinated")


@pytest.mark.every_version("add_offsets_to_txn")
def test_groups(talk: Conversation, producer: Producer, version: int) -> None:
    producer.init(talk)
    for group in ("a", "a", "b", ""):
        producer.add_offsets(talk, group, version)
        producer.describe(talk)
    producer.end(talk)
    producer.settle(talk)
    producer.describe(talk)


@pytest.mark.every_version("add_offsets_to_txn")
def test_strangers(talk: Conversation, producer: Producer, version: int) -> None:
    producer.init(talk)
    for who in ({"epoch": 1}, {"epoch": -1}, {"producer": 1 << 40}, {"producer": 7, "epoch": 1}):
        producer.add_offsets(talk, "group", version, **who)
    producer.describe(talk)


@pytest.mark.every_version("add_offsets_to_txn")
@pytest.mark.parametrize("transactional_id", ["", "nobody knows it"])
def test_ids_that_are_not_there(
    transactional: Twin, talk: Conversation, version: int, transactional_id: str
) -> None:
    body = {"transactional_id": transactional_id, "producer_id": 5, "producer_epoch": 0}
    talk.ask("add_offsets_to_txn", version, {**body, "group_id": "group"})
