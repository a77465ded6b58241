"""A power cut in the middle of transactions: each is there as a whole, or not at all.

Method: a disk in memory that forgets, tears or keeps what was not synced. Every transaction writes
its number to two partitions; what was acknowledged as committed must be in both, what was not may
be in both or in none.
"""

from __future__ import annotations

import pytest

from klamm.broker.testing import running_broker
from klamm.broker.tests.raw_client import RawClient, create_topic
from klamm.broker.tests.transactions.conftest import FEW_PARTITIONS
from klamm.broker.tests.transactions.transactional_client import Producer, stored_committed
from klamm.log.memory_fs import (
    MemoryFileSystem,
    SurvivingBytes,
    keep_bytes,
    keep_names,
    lose_bytes,
    lose_names,
    tear_bytes,
    zero_bytes,
)
from klamm.wire.errors import ErrorCode

DATA_DIR = "/data"
TRANSACTIONS = 6


@pytest.mark.parametrize("requests", range(1, 4 * TRANSACTIONS, 3))
@pytest.mark.parametrize("surviving", [lose_bytes, tear_bytes, zero_bytes, keep_bytes])
def test_transactions_through_a_power_cut(surviving: SurvivingBytes, requests: int) -> None:
    """The cut comes right after so many requests were sent, of which the last is not awaited."""
    fs = MemoryFileSystem()
    outcomes: dict[bytes, bool] = {}
    with running_broker(DATA_DIR, FEW_PARTITIONS, fs=fs) as broker:
        with RawClient(broker) as client:
            create_topic(client, "t", 2)
            producer = Producer(client)
            producer.init()
            run(client, producer, outcomes, requests)
        broker.kill()
    names = keep_names if surviving is keep_bytes else lose_names
    found = fs.after_crash(surviving, names)
    with running_broker(DATA_DIR, FEW_PARTITIONS, fs=found) as broker, RawClient(broker) as client:
        successor = Producer(client)
        successor.init()
        # What was left open is aborted now, so that readers see everything.
        assert successor.epoch > producer.epoch or successor.producer_id != producer.producer_id
        first, second = (stored_committed(broker, "t", partition) for partition in (0, 1))
        assert first == second
        for number, committed in outcomes.items():
            assert (number in first) is committed
        for partition in (0, 1):
            log = broker.broker.partitions.find("t", partition).log
            assert log.last_stable_offset == log.log_end_offset
        assert producer_is_fenced(client, producer)


def run(client: RawClient, producer: Producer, outcomes: dict[bytes, bool], requests: int) -> None:
    """Transactions one after the other; every third is aborted."""
    for count in range(TRANSACTIONS):
        number = str(count).encode()
        commit = count % 3 != 2
        for partition in (0, 1):
            if requests == 0:
                client.send(producer.writing("t", number, partition), version=12)
                return
            requests -= 1
            assert producer.write("t", number, partition) is ErrorCode.NONE
        if requests == 0:
            client.send(producer.ending(commit=commit), version=5)
            return
        requests -= 1
        assert producer.end(commit=commit) is ErrorCode.NONE
        outcomes[number] = commit


def producer_is_fenced(client: RawClient, producer: Producer) -> bool:
    zombie = Producer(client, producer.id)
    zombie.producer_id, zombie.epoch = producer.producer_id, producer.epoch
    refused = {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    return zombie.write("t", b"zombie") in refused
