"""InitProducerId for producers without a transactional id."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.twin.batches import R, batch
from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation, Side
from compat_tests.twin.requests import produce
from compat_tests.twin.topics import Twin


def asked(**fields: Any) -> Plain:
    base = {"transactional_id": None, "transaction_timeout": 60_000}
    return {**base, "producer_id": -1, "producer_epoch": -1, **fields}


@pytest.fixture(autouse=True, scope="module")
def _ids_are_given(twin: Twin) -> None:
    twin.wait_until_ids_are_given()


@pytest.mark.every_version("init_producer_id")
def test_a_new_producer(talk: Conversation, version: int) -> None:
    for _ in range(3):
        talk.ask("init_producer_id", version, asked())


def test_ids_are_never_given_twice(talk: Conversation) -> None:
    pairs = [talk.ask("init_producer_id", 5, asked()) for _ in range(20)]
    for side in talk.sides:
        given = [pair[side]["producer_id"] for pair in pairs]
        assert len(set(given)) == len(given), f"{side.name} gave {given}"


@pytest.mark.every_version("init_producer_id")
@pytest.mark.parametrize("timeout", [0, -1, 2147483647, -2147483648, 900_001])
def test_timeouts(talk: Conversation, version: int, timeout: int) -> None:
    """They belong to transactions; without a transactional id nobody looks at them."""
    talk.ask("init_producer_id", version, asked(transaction_timeout=timeout))


@pytest.mark.every_version("init_producer_id")
def test_an_empty_transactional_id(talk: Conversation, version: int) -> None:
    """It is neither an id nor none."""
    talk.ask("init_producer_id", version, asked(transactional_id=""))


@pytest.mark.every_version("init_producer_id", since=3)
@pytest.mark.parametrize(
    ("producer_id", "producer_epoch"),
    [(5, 3), (0, 0), (5, -1), (-1, 3), (-2, -1), (-1, -2), (-2, -2), (1 << 62, 32767)],
)
def test_an_identity_from_before(
    talk: Conversation, version: int, producer_id: int, producer_epoch: int
) -> None:
    fields = {"producer_id": producer_id, "producer_epoch": producer_epoch}
    talk.ask("init_producer_id", version, asked(**fields))


def test_the_id_can_be_used(twin: Twin, talk: Conversation) -> None:
    topic = twin.create_topic()
    given = talk.ask("init_producer_id", 5, asked())

    def body(side: Side) -> Plain:
        identity = {"producer_id": given[side]["producer_id"], "producer_epoch": 0}
        return produce(topic, batch(R(b"mine"), base_sequence=0, **identity))(side)

    for _ in range(2):
        talk.ask("produce", 9, body)
