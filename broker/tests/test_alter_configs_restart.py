"""What was altered survives a stop and a kill, and is visible only when it is on disk."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from klamm.broker import controller
from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.alterations import (
    BROKER,
    GROUP,
    METRICS,
    NODE_ID,
    TOPIC,
    alter,
    resource,
    value_of,
)
from klamm.broker.tests.raw_client import RawClient, batch, create_topic, delete_topic, produce_to
from klamm.broker.tests.test_metadata_restart import every_way_to_end
from klamm.broker.tests.watched_fs import WatchedFileSystem
from klamm.log.errors import InconsistentDirectoryError
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from klamm.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest

NONE = ErrorCode.NONE

ALTERED = [
    (TOPIC, "topic", "max.message.bytes", "200"),
    (BROKER, NODE_ID, "log.retention.ms", "123456"),
    (BROKER, "", "log.roll.ms", "234567"),
    (GROUP, "group", "consumer.heartbeat.interval.ms", "6000"),
    (METRICS, "subscription", "interval.ms", "1000"),
]


@every_way_to_end
def test_what_was_answered_is_there_again(broker: RunningBroker, end: Any) -> None:
    with RawClient(broker) as client:
        create_topic(client, "topic", configs={"retention.bytes": "5000000"})
        assert alter(client, TOPIC, "topic", {"retention.bytes": None}) == NONE
        for kind, name, config, value in ALTERED:
            assert alter(client, kind, name, {config: value}) == NONE
    end(broker)
    broker.start()
    with RawClient(broker) as client:
        for kind, name, config, value in ALTERED:
            assert value_of(client, kind, name, config) == value, config
        assert value_of(client, TOPIC, "topic", "retention.bytes") == "-1"
        assert value_of(client, TOPIC, "topic", "retention.ms") == "123456"
        assert value_of(client, BROKER, NODE_ID, "log.roll.ms") == "234567"
        too_large = produce_to(client, "topic", batch(b"x" * 400))
        assert too_large.error_code == ErrorCode.MESSAGE_TOO_LARGE
        for kind, name, config, _ in ALTERED:
            assert alter(client, kind, name, {config: None}) == NONE
    end(broker)
    broker.start()
    with RawClient(broker) as client:
        assert value_of(client, BROKER, NODE_ID, "log.retention.ms") is None
        assert value_of(client, TOPIC, "topic", "retention.ms") == "604800000"
        assert produce_to(client, "topic", batch(b"x" * 400)).error_code == NONE


@every_way_to_end
def test_what_was_replaced_is_not_there_again(broker: RunningBroker, end: Any) -> None:
    with RawClient(broker) as client:
        create_topic(client, "topic", configs={"retention.bytes": "5000000"})
        replaced = AlterConfigsResource(
            resource_type=TOPIC,
            resource_name="topic",
            configs=[AlterableConfig(name="segment.ms", value="5000")],
        )
        (response,) = client.call(AlterConfigsRequest(resources=[replaced])).responses
        assert response.error_code == NONE
    end(broker)
    broker.start()
    with RawClient(broker) as client:
        assert value_of(client, TOPIC, "topic", "segment.ms") == "5000"
        assert value_of(client, TOPIC, "topic", "retention.bytes") == "-1"


def test_a_topic_made_again_has_no_configs_of_the_old_one(broker: RunningBroker) -> None:
    with RawClient(broker) as client:
        create_topic(client, "topic")
        assert alter(client, TOPIC, "topic", {"max.message.bytes": "200"}) == NONE
        delete_topic(client, "topic")
        create_topic(client, "topic")
        assert produce_to(client, "topic", batch(b"x" * 400)).error_code == NONE
    broker.restart()
    with RawClient(broker) as client:
        assert value_of(client, TOPIC, "topic", "max.message.bytes") == "1048588"


def test_nobody_sees_a_change_before_it_is_on_disk(tmp_path: Path) -> None:
    fs = WatchedFileSystem()
    with running_broker(tmp_path / "data", fs=fs) as broker, RawClient(broker) as client:
        create_topic(client, "topic")
        gate = fs.hold_syncs_of("__cluster_metadata")
        wanted = resource(TOPIC, "topic", {"max.message.bytes": "200"})
        client.send(IncrementalAlterConfigsRequest(resources=[wanted]))
        gate.wait_for_arrival()
        with RawClient(broker) as other:
            assert value_of(other, TOPIC, "topic", "max.message.bytes") == "1048588"
            assert produce_to(other, "topic", batch(b"x" * 400), acks=1).error_code == NONE
        gate.let_through(100)
        _, response = client.receive()
        assert response.responses[0].error_code == NONE
        too_large = produce_to(client, "topic", batch(b"x" * 400))
        assert too_large.error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_a_crash_after_the_commit(broker: RunningBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    with RawClient(broker) as client:
        with monkeypatch.context() as patch:

            def crash(*_: object) -> None:
                broker.broker.halt("crashed here")

            patch.setattr(controller, "put_into_force", crash)
            wanted = resource(BROKER, NODE_ID, {"message.max.bytes": "200"})
            client.send(IncrementalAlterConfigsRequest(resources=[wanted]))
            assert client.is_closed_by_peer()
        broker.kill()
    broker.start()
    with RawClient(broker) as client:
        create_topic(client, "topic")
        too_large = produce_to(client, "topic", batch(b"x" * 400))
        assert too_large.error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_a_full_disk_refuses_the_change(tmp_path: Path) -> None:
    def refuse(path: str) -> None:
        if "__cluster_metadata" in path:
            raise OSError(errno.ENOSPC, "no space left on device")

    fs = WatchedFileSystem()
    with running_broker(tmp_path / "data", fs=fs) as broker, RawClient(broker) as client:
        create_topic(client, "topic")
        fs.before_append = refuse
        assert alter(client, TOPIC, "topic", {"max.message.bytes": "200"}) != NONE
        fs.before_append = lambda path: None
        assert produce_to(client, "topic", batch(b"x" * 400)).error_code == NONE
        assert value_of(client, TOPIC, "topic", "max.message.bytes") == "1048588"
        assert alter(client, TOPIC, "topic", {"max.message.bytes": "200"}) == NONE
        assert value_of(client, TOPIC, "topic", "max.message.bytes") == "200"


def test_a_file_that_contradicts_what_is_stored(tmp_path: Path) -> None:
    """To go on without a setting could drop data; the start says which one is meant."""
    with running_broker(tmp_path / "data") as broker, RawClient(broker) as client:
        assert alter(client, BROKER, NODE_ID, {"message.max.bytes": "2000000"}) == NONE
    smaller = {"socket.request.max.bytes": "1500000"}
    with (
        pytest.raises(InconsistentDirectoryError, match=r"message\.max\.bytes=2000000"),
        running_broker(tmp_path / "data", smaller),
    ):
        pass
