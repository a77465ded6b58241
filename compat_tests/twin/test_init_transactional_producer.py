"""InitProducerId with a transactional id: epochs, fencing, going on after an error (KIP-360)."""

from __future__ import annotations

import pytest

from compat_tests.twin.cases import all_cases
from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation, Side
from compat_tests.twin.topics import Twin
from compat_tests.twin.transactions import Producer


@pytest.mark.every_version("init_producer_id")
def test_again_and_again(talk: Conversation, producer: Producer, version: int) -> None:
    """The id stays, the epoch grows."""
    for _ in range(3):
        producer.init(talk, version)
    producer.describe(talk)


@pytest.mark.every_version("init_producer_id")
@pytest.mark.parametrize("timeout", [1, 900_000, 900_001, 0, -1, 2147483647, -2147483648])
def test_timeouts(talk: Conversation, producer: Producer, version: int, timeout: int) -> None:
    producer.init(talk, version, timeout=timeout)
    producer.describe(talk)


@pytest.mark.every_version("init_producer_id", since=3)
def test_going_on(talk: Conversation, producer: Producer, version: int) -> None:
    """The same producer asks again, also because the reply was lost, and is found in the end."""
    producer.init(talk, version)
    before = producer.copy()
    for _ in range(2):
        before.copy().init(talk, version, goes_on=True)
    producer.init(talk, version, goes_on=True)
    producer.init(talk, version, goes_on=True)
    before.init(talk, version, goes_on=True)
    producer.init(talk, version)
    before.init(talk, version, goes_on=True)


@pytest.mark.every_version("init_producer_id", since=3)
def test_identities(talk: Conversation, producer: Producer, version: int) -> None:
    """Those that can be those of somebody, and those that can't; the first is of an id that
    nobody knows."""

    def body(producer_id: int, epoch: int) -> Plain:
        return {
            "transactional_id": producer.id,
            "transaction_timeout": 60_000,
            "producer_id": producer_id,
            "producer_epoch": epoch,
        }

    talk.ask("init_producer_id", version, body(1 << 50, 5), learn=producer._learn)
    with all_cases() as cases:
        for added, epoch in (
            *(
                (1 << 40, 0),
                (1 << 40, 32766),
                (0, 5),
                (0, -1),
                (0, -2),
                (0, 32767),
                (-(1 << 50), 0),
            ),
        ):
            with cases.case(f"{added} {epoch}"):

                def asked(side: Side, added: int = added, epoch: int = epoch) -> Plain:
                    return body(producer.ids[side.name] + added, epoch)

                talk.ask("init_producer_id", version, asked)
    for producer_id, epoch in ((-1, 3), (-1, -2), (-2, -1)):
        talk.ask("init_producer_id", version, body(producer_id, epoch))


@pytest.mark.every_version("init_producer_id")
def test_over_an_open_transaction(
    twin: Twin, talk: Conversation, producer: Producer, version: int
) -> None:
    """It is aborted, and the producer has to ask again."""
    topic = twin.create_topic()
    producer.init(talk, version)
    producer.add(talk, {topic: [0]})
    producer.init(talk, version, timeout=900_001)
    producer.init(talk, version, wait=False)
    producer.settle(talk)
    producer.describe(talk)
    producer.init(talk, version)
    producer.describe(talk)


@pytest.mark.every_version("init_producer_id", since=3)
def test_going_on_with_an_open_transaction(
    twin: Twin, talk: Conversation, producer: Producer, version: int
) -> None:
    topic = twin.create_topic()
    producer.init(talk, version)
    producer.add(talk, {topic: [0]})
    stranger = producer.copy()
    for side in talk.sides:
        stranger.ids[side.name] += 1 << 40
    stranger.init(talk, version, goes_on=True)
    producer.init(talk, version, goes_on=True, wait=False)
    producer.settle(talk)
    producer.init(talk, version, goes_on=True)
    producer.describe(talk)
