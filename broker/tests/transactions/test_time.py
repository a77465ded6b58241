"""What time does to transactions: those that take too long, and ids that nobody uses."""

from __future__ import annotations

from pathlib import Path

from klamm.broker.testing import running_broker
from klamm.broker.tests.raw_client import RawClient, create_topic
from klamm.broker.tests.transactions.conftest import FEW_PARTITIONS
from klamm.broker.tests.transactions.transactional_client import (
    Producer,
    latest_offset,
    read_committed,
)
from klamm.broker.tests.waiting import until
from klamm.log.memory_fs import MemoryFileSystem
from klamm.wire.errors import ErrorCode


def test_a_transaction_that_takes_too_long_is_aborted(tmp_path: Path) -> None:
    interval = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "20"}
    with (
        running_broker(tmp_path, {**FEW_PARTITIONS, **interval}) as broker,
        RawClient(broker) as client,
    ):
        create_topic(client, "t")
        slow, other = Producer(client, "slow", timeout_ms=50), Producer(client, "other")
        for producer in (slow, other):
            producer.init()
            assert producer.write("t", producer.id.encode()) is ErrorCode.NONE
        until(lambda: slow.state == "CompleteAbort")
        assert other.state == "Ongoing"
        assert slow.write("t", b"late") is ErrorCode.INVALID_PRODUCER_EPOCH
        assert slow.end() is ErrorCode.INVALID_TXN_STATE
        assert other.end() is ErrorCode.NONE
        until(lambda: read_committed(client, "t") == [b"other"])
        assert latest_offset(client, "t", committed=True) == 4


def test_an_id_that_is_not_used_is_forgotten() -> None:
    properties = {
        **FEW_PARTITIONS,
        "transactional.id.expiration.ms": "100",
        "transaction.remove.expired.transaction.cleanup.interval.ms": "20",
    }
    fs = MemoryFileSystem()
    with running_broker("/data", properties, fs=fs) as broker, RawClient(broker) as client:
        create_topic(client, "t")
        idle, busy = Producer(client, "idle"), Producer(client, "busy")
        for producer in (idle, busy):
            producer.init()
        assert busy.write("t", b"open") is ErrorCode.NONE
        until(lambda: idle.describe().error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        assert busy.state == "Ongoing"
        assert idle.write("t", b"late") is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        broker.restart()
    with running_broker("/data", FEW_PARTITIONS, fs=fs) as broker, RawClient(broker) as client:
        for producer in (idle, busy):
            producer.client = client
        until(lambda: busy.state == "Ongoing")
        until(lambda: idle.describe().error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
