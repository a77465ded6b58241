"""Writes of coordinators in a transaction, producers of before version 12, and no verification."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.raw_client import RawClient, create_topic
from klamm.broker.tests.transactions.conftest import FEW_PARTITIONS
from klamm.broker.tests.transactions.transactional_client import Producer, read_committed
from klamm.broker.tests.waiting import until
from klamm.log.errors import LogError
from klamm.log.producer_state import VerificationGuard
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

SAFE_DOWNGRADE = 2


def start_write(
    broker: RunningBroker, producer: Producer, *, add: bool, epoch: int = 0, topic: str = "t"
) -> VerificationGuard | ErrorCode | None:
    """In the broker's own loop, as its parts call it."""

    async def start() -> VerificationGuard | ErrorCode | None:
        try:
            return await broker.broker.transactions.start_write(
                *(producer.id, producer.producer_id, producer.epoch + epoch, topic, 0), add=add
            )
        except LogError as error:
            return error.code

    return trio.from_thread.run(start, trio_token=broker._token)


def test_a_coordinator_that_writes_in_a_transaction(broker: RunningBroker) -> None:
    with RawClient(broker) as client:
        for topic in ("t", "u"):
            create_topic(client, topic)
        producer = Producer(client)
        producer.init()
        assert start_write(broker, producer, add=False) is ErrorCode.TRANSACTION_ABORTABLE
        assert start_write(broker, producer, add=False, epoch=1) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert (
            start_write(broker, producer, add=True, topic="x")
            is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
        stranger = Producer(client, "stranger")
        assert start_write(broker, stranger, add=True) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert producer.state == "Empty"
        guard = start_write(broker, producer, add=True)
        assert isinstance(guard, VerificationGuard)
        assert producer.state == "Ongoing"
        assert start_write(broker, producer, add=False) is guard
        # Where the transaction is open, nobody has to be asked.
        assert producer.write("u", b"one") is ErrorCode.NONE
        assert start_write(broker, producer, add=False, topic="u") is None


def test_a_producer_of_version_1(broker: RunningBroker) -> None:
    with RawClient(broker) as client:
        create_topic(client, "t")
        producer = Producer(client)
        producer.init()
        assert producer.write("t", b"lost", version=11) is ErrorCode.TRANSACTION_ABORTABLE
        assert producer.write("t", b"lost", version=10) is ErrorCode.INVALID_TXN_STATE
        producer.sequences.clear()
        assert producer.add("t", 0) is ErrorCode.NONE
        assert producer.write("t", b"one", version=11) is ErrorCode.NONE
        assert producer.end(version=4) is ErrorCode.NONE
        producer.settle()
        assert producer.write("t", b"late", version=11) is ErrorCode.TRANSACTION_ABORTABLE
        assert read_committed(client, "t") == [b"one"]


def test_without_verification_a_producer_of_version_1_is_believed(tmp_path: Path) -> None:
    properties = {**FEW_PARTITIONS, "transaction.partition.verification.enable": "false"}
    with running_broker(tmp_path, properties) as broker, RawClient(broker) as client:
        create_topic(client, "t")
        producer = Producer(client)
        producer.init()
        assert producer.write("t", b"one", version=11) is ErrorCode.NONE
        assert producer.state == "Empty"
        assert producer.write("t", b"two", version=12) is ErrorCode.NONE


@pytest.mark.parametrize("level", [0, 1])
def test_the_cluster_agrees_on_less(broker: RunningBroker, level: int) -> None:
    """The fence of a new producer still brings an epoch of its own."""
    with RawClient(broker) as client:
        create_topic(client, "t")
        update = FeatureUpdateKey(
            feature="transaction.version", max_version_level=level, upgrade_type=SAFE_DOWNGRADE
        )
        client.call(UpdateFeaturesRequest(feature_updates=[update]), 1)
        zombie, producer = Producer(client), Producer(client)
        zombie.init()
        assert zombie.add("t", 0) is ErrorCode.NONE
        assert zombie.write("t", b"lost", version=11) is ErrorCode.NONE
        producer.init()
        assert producer.epoch == zombie.epoch + 2
        assert zombie.write("t", b"zombie", version=11) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert producer.add("t", 0) is ErrorCode.NONE
        assert producer.write("t", b"one", version=11) is ErrorCode.NONE
        assert producer.end(version=4) is ErrorCode.NONE
        producer.settle()
        assert read_committed(client, "t") == [b"one"]
        broker.restart()
    with RawClient(broker) as client:
        producer.client = client
        until(lambda: producer.state == "CompleteCommit")
