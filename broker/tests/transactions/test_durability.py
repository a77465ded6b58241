"""What waits for which disk: a transaction is never told, written or marked before it is decided.

Method: the syncs of one topic are held up at a gate.
"""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.groups.test_durability import is_silent
from klamm.broker.tests.raw_client import RawClient, create_topic, delete_topic
from klamm.broker.tests.transactions.conftest import FEW_PARTITIONS
from klamm.broker.tests.transactions.transactional_client import Producer, read_committed
from klamm.broker.tests.waiting import until
from klamm.broker.tests.watched_fs import WatchedFileSystem
from klamm.wire.errors import ErrorCode

STATE_TOPIC = "__transaction_state"


def end_offset(broker: RunningBroker, topic: str = "t", partition: int = 0) -> int:
    return broker.broker.partitions.find(topic, partition).log.log_end_offset


def test_nothing_is_written_before_the_coordinator_knows_of_it(
    broker: RunningBroker, fs: WatchedFileSystem
) -> None:
    with RawClient(broker) as client:
        create_topic(client, "t")
        producer = Producer(client)
        producer.init()
        gate = fs.hold_syncs_of(STATE_TOPIC)
        client.send(producer.writing("t", b"one"), version=12)
        gate.wait_for_arrival()
        assert is_silent(client)
        assert end_offset(broker) == 0
        gate.let_through(10)
        _, response = client.receive()
        assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        assert end_offset(broker) == 1


def test_an_outcome_is_told_and_marked_after_its_sync(
    broker: RunningBroker, fs: WatchedFileSystem
) -> None:
    with RawClient(broker) as client, RawClient(broker) as other:
        create_topic(client, "t")
        producer = Producer(client)
        producer.init()
        assert producer.write("t", b"one") is ErrorCode.NONE
        gate = fs.hold_syncs_of(STATE_TOPIC)
        client.send(producer.ending(), version=5)
        gate.wait_for_arrival()
        assert is_silent(client)
        assert end_offset(broker) == 1
        assert read_committed(other, "t") == []
        gate.let_through(10)
        assert client.receive()[1].error_code == ErrorCode.NONE
        until(lambda: read_committed(other, "t") == [b"one"])


def test_a_transaction_is_complete_when_its_markers_are_on_disk(
    broker: RunningBroker, fs: WatchedFileSystem
) -> None:
    with RawClient(broker) as client:
        create_topic(client, "t")
        producer = Producer(client)
        producer.init()
        assert producer.write("t", b"one") is ErrorCode.NONE
        gate = fs.hold_syncs_of("t")
        assert producer.end() is ErrorCode.NONE
        gate.wait_for_arrival()
        assert producer.state == "PrepareCommit"
        # Whoever comes now waits for a moment, and is told to come again.
        assert producer.add("t", 0) is ErrorCode.CONCURRENT_TRANSACTIONS
        assert producer.ask_for_identity() is ErrorCode.CONCURRENT_TRANSACTIONS
        client.send(producer.writing("t", b"two"), version=12)
        gate.let_through(100)
        _, response = client.receive()
        code = ErrorCode(response.responses[0].partition_responses[0].error_code)
        assert code in (ErrorCode.NONE, ErrorCode.CONCURRENT_TRANSACTIONS)
        until(lambda: producer.state in ("CompleteCommit", "Ongoing"))


@pytest.mark.parametrize("commit", [True, False])
def test_a_decision_is_carried_out_after_a_crash(
    broker: RunningBroker, fs: WatchedFileSystem, commit: bool
) -> None:
    """The markers were not on disk when the broker was killed; the decision was."""
    with RawClient(broker) as client:
        create_topic(client, "t", 2)
        producer = Producer(client)
        producer.init()
        for partition in (0, 1):
            assert producer.write("t", b"one", partition) is ErrorCode.NONE
        gate = fs.hold_syncs_of("t")
        assert producer.end(commit=commit) is ErrorCode.NONE
        gate.wait_for_arrival()
    gate.let_through(100)
    broker.kill()
    broker.start()
    with RawClient(broker) as client:
        producer.client = client
        until(lambda: producer.state == ("CompleteCommit" if commit else "CompleteAbort"))
        for partition in (0, 1):
            assert read_committed(client, "t", partition) == ([b"one"] if commit else [])
        # The epoch that the producer was told is still its own.
        assert producer.write("t", b"two") is ErrorCode.NONE
        assert producer.end() is ErrorCode.NONE


def test_with_flush_before_ack_off_nothing_waits(tmp_path: Path, fs: WatchedFileSystem) -> None:
    properties = {**FEW_PARTITIONS, "flush.before.ack": "false"}
    with (
        running_broker(tmp_path / "lazy", properties, fs=fs) as running,
        RawClient(running) as client,
    ):
        create_topic(client, "t")
        producer = Producer(client)
        producer.init()
        gate = fs.hold_syncs_of(STATE_TOPIC)
        for value in (b"one", b"two"):
            assert producer.write("t", value) is ErrorCode.NONE
            assert producer.end() is ErrorCode.NONE
        assert read_committed(client, "t") == [b"one", b"two"]
        gate.let_through(100)


def test_a_full_disk_delays_the_end_and_loses_nothing(
    broker: RunningBroker, fs: WatchedFileSystem
) -> None:
    with RawClient(broker) as client:
        create_topic(client, "t")
        producer = Producer(client)
        producer.init()
        assert producer.write("t", b"one") is ErrorCode.NONE
        fs.fail_appends(errno.ENOSPC, ".log")
        assert producer.end() is ErrorCode.NOT_COORDINATOR
        assert producer.state == "Ongoing"
        fs.fail_appends(0)

        def only_partitions(path: str) -> None:
            if "/t-0/" in path:
                raise OSError(errno.ENOSPC, "on purpose", path)

        fs.before_append = only_partitions
        assert producer.end() is ErrorCode.NONE
        assert producer.state == "PrepareCommit"
        fs.fail_appends(0)
        until(lambda: producer.state == "CompleteCommit")
        assert read_committed(client, "t") == [b"one"]


def test_a_topic_that_is_deleted_needs_no_marker(broker: RunningBroker) -> None:
    with RawClient(broker) as client:
        for topic in ("t", "gone"):
            create_topic(client, topic)
        producer = Producer(client)
        producer.init()
        for topic in ("t", "gone"):
            assert producer.write(topic, b"one") is ErrorCode.NONE
        delete_topic(client, "gone")
        assert producer.end() is ErrorCode.NONE
        until(lambda: producer.state == "CompleteCommit")
        assert read_committed(client, "t") == [b"one"]
