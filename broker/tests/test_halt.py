"""A failed sync: nothing is acknowledged any more, and the next start looks at the disk."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from klamm.broker.broker import BrokerHaltedError
from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.raw_client import (
    PRODUCE_VERSION,
    RawClient,
    create_topic,
    describe_topic,
    fetch_from,
    produce,
    produce_to,
)
from klamm.broker.tests.watched_fs import WatchedFileSystem
from klamm.log.fs import system_boot_id
from klamm.log.layout import BOOT_FILE, CLEAN_SHUTDOWN_FILE
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest


def assert_halted(broker: RunningBroker, reason: str) -> None:
    with pytest.raises(BrokerHaltedError, match=reason):
        broker.stop()
    assert not (broker.data_dir / CLEAN_SHUTDOWN_FILE).exists()


def test_a_failed_sync_halts_without_an_acknowledgement(tmp_path: Path) -> None:
    fs = WatchedFileSystem()
    with running_broker(tmp_path, fs=fs) as broker:
        with RawClient(broker) as client, RawClient(broker) as other:
            create_topic(client, "topic")
            create_topic(client, "other")
            fs.fail_syncs_of("topic")
            client.send(produce("topic"), version=PRODUCE_VERSION)
            assert client.is_closed_by_peer()
            # Not even those that need no sync.
            with pytest.raises((EOFError, OSError)):
                produce_to(other, "other", acks=1)
            with pytest.raises(ConnectionRefusedError):
                RawClient(broker)
        assert_halted(broker, "sync of topic-0 failed")
        assert fs.syncs_of("topic") == 1


def test_after_it_a_restart_serves_what_was_acknowledged(tmp_path: Path) -> None:
    fs = WatchedFileSystem()
    with running_broker(tmp_path, fs=fs) as broker, RawClient(broker) as client:
        create_topic(client, "topic")
        assert produce_to(client, "topic").base_offset == 0
        fs.fail_syncs_of("topic")
        client.send(produce("topic"), version=PRODUCE_VERSION)
        assert client.is_closed_by_peer()
        assert_halted(broker, "sync of topic-0 failed")
    with running_broker(tmp_path) as broker, RawClient(broker) as client:
        # What was not acknowledged may be there, or not.
        assert fetch_from(client, "topic").high_watermark in (1, 2)
        # A new leader epoch tells consumers to check what they have read.
        assert describe_topic(client, "topic").partitions[0].leader_epoch == 1


def test_after_it_the_next_start_expects_what_a_crash_of_the_system_leaves(tmp_path: Path) -> None:
    """After the error the kernel may drop what it could not write."""
    fs = WatchedFileSystem()
    with running_broker(tmp_path, fs=fs) as broker:
        boot_file = broker.data_dir / BOOT_FILE
        assert boot_file.read_text() == f"{system_boot_id()}\n"
        broker.kill()
        assert boot_file.read_text() == f"{system_boot_id()}\n"
        broker.start()
        with RawClient(broker) as client:
            create_topic(client, "topic")
            fs.fail_syncs_of("topic")
            client.send(produce("topic"), version=PRODUCE_VERSION)
            assert client.is_closed_by_peer()
        assert_halted(broker, "sync of topic-0 failed")
        assert boot_file.read_text() == ""


def test_a_failed_sync_of_the_metadata_halts_before_the_topic_is_seen(tmp_path: Path) -> None:
    fs = WatchedFileSystem()
    with running_broker(tmp_path, fs=fs) as broker:
        with RawClient(broker) as client:
            fs.fail_syncs_of("__cluster_metadata")
            topic = CreatableTopic(name="topic", num_partitions=1, replication_factor=1)
            client.send(CreateTopicsRequest(topics=[topic]))
            assert client.is_closed_by_peer()
        assert_halted(broker, "sync of __cluster_metadata-0 failed")
        assert broker.broker.metadata.image.topics == {}


def test_a_sync_that_ends_well_after_another_failed_acknowledges_nothing(tmp_path: Path) -> None:
    """The broker has halted: whoever waits for it has to find out at the next start."""
    fs = WatchedFileSystem()
    with running_broker(tmp_path, fs=fs) as broker:
        with RawClient(broker) as slow, RawClient(broker) as client:
            create_topic(client, "slow")
            create_topic(client, "topic")
            gate = fs.hold_syncs_of("slow")
            slow.send(produce("slow"), version=PRODUCE_VERSION)
            gate.wait_for_arrival()
            fs.fail_syncs_of("topic")
            client.send(produce("topic"), version=PRODUCE_VERSION)
            assert client.is_closed_by_peer()
            gate.let_through()
            assert slow.is_closed_by_peer()
        assert_halted(broker, "sync of topic-0 failed")


def test_a_full_disk_refuses_writes_and_serves_everything_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fs = WatchedFileSystem()
    # Checkpoints are written all the time, which fails as well.
    properties = {"replica.high.watermark.checkpoint.interval.ms": "20"}
    with running_broker(tmp_path, properties, fs=fs) as broker, RawClient(broker) as client:
        create_topic(client, "topic")
        assert produce_to(client, "topic").error_code == 0
        fs.fail_appends(errno.ENOSPC)
        for _ in range(3):
            refused = produce_to(client, "topic")
            assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert refused.base_offset == -1
        response = client.call(
            CreateTopicsRequest(
                topics=[CreatableTopic(name="new", num_partitions=1, replication_factor=1)]
            )
        )
        assert response.topics[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert len(fetch_from(client, "topic").records) > 0
        while not any("checkpoints" in record.getMessage() for record in caplog.records):
            describe_topic(client, "topic")
        # Space again: no restart is needed.
        fs.fail_appends(0)
        assert produce_to(client, "topic").base_offset == 1
        create_topic(client, "new")
        assert produce_to(client, "new").error_code == 0


def test_checkpoints_that_cannot_be_written_for_another_reason_halt(tmp_path: Path) -> None:
    fs = WatchedFileSystem()
    properties = {"replica.high.watermark.checkpoint.interval.ms": "20"}
    with running_broker(tmp_path, properties, fs=fs) as broker:
        with RawClient(broker) as client:
            fs.fail_appends(errno.EIO, ending="checkpoint.tmp")
            assert client.is_closed_by_peer()
        assert_halted(broker, "the checkpoints can't be written")


def test_a_kill_leaves_the_directory_unclean_and_a_stop_clean(tmp_path: Path) -> None:
    marker = tmp_path / CLEAN_SHUTDOWN_FILE
    with running_broker(tmp_path) as broker:
        broker.kill()
        assert not marker.exists()
        broker.start()
        assert not marker.exists()
        broker.stop()
        assert marker.exists()
        broker.start()
        assert not marker.exists()
