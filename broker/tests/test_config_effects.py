"""Altered configs are obeyed at once: what clients see of topics, brokers and groups."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.alterations import (
    BROKER,
    GROUP,
    LOGGER,
    METRICS,
    NODE_ID,
    TOPIC,
    alter,
    value_of,
)
from klamm.broker.tests.groups.group_client import find_coordinator
from klamm.broker.tests.raw_client import RawClient, batch, create_topic, fetch_from, produce_to
from klamm.broker.tests.test_log_care import EAGER, earliest, keyed, readable_offsets, segment_files
from klamm.broker.tests.waiting import until
from klamm.broker.tests.watched_fs import WatchedFileSystem
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from klamm.wire.messages.list_config_resources import ListConfigResourcesRequest
from klamm.wire.records.batch import read_batch_header
from klamm.wire.records.codecs import Codec

NONE = ErrorCode.NONE
# In the middle of 2023, as the batches of these tests.
LONG_AGO = {"retention.ms": "-1"}


@pytest.fixture
def eager() -> Iterator[RunningBroker]:
    """A broker that looks after its logs all the time, but compacts only if it is told to."""
    with running_broker(properties={**EAGER, "log.cleaner.backoff.ms": "3600000"}) as broker:
        yield broker


def fill(client: RawClient, topic: str, count: int = 10) -> None:
    for _ in range(count):
        assert produce_to(client, topic, keyed(b"key", b"x" * 400)).error_code == NONE


def test_messages_that_can_never_arrive_are_told_once(
    client: RawClient, caplog: pytest.LogCaptureFixture
) -> None:
    """Kafka takes the config, too, whatever its socket.request.max.bytes is."""
    create_topic(client, "new", configs={"max.message.bytes": "30000000"})
    create_topic(client, "old")
    assert alter(client, TOPIC, "old", {"max.message.bytes": "16777216"}) == NONE
    assert alter(client, TOPIC, "old", {"max.message.bytes": "16777217"}) == NONE
    lines = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert lines == [
        f"topic {name}: max.message.bytes={size} can never arrive; "
        "raise socket.request.max.bytes above it"
        for name, size in (("new", 30000000), ("old", 16777217))
    ]


def test_segment_bytes_and_retention_of_a_topic(eager: RunningBroker) -> None:
    with RawClient(eager) as client:
        create_topic(client, "topic", configs=LONG_AGO)
        create_topic(client, "short")
        fill(client, "topic")
        assert len(segment_files(eager, "topic")) == 1
        assert alter(client, TOPIC, "topic", {"internal.segment.bytes": "1000"}) == NONE
        fill(client, "topic")
        assert len(segment_files(eager, "topic")) > 4
        # What follows the broker is old enough to go, so retention has had its run.
        fill(client, "short")
        until(lambda: earliest(client, "short") == 10)
        assert earliest(client, "topic") == 0
        assert alter(client, TOPIC, "topic", {"retention.ms": "1000"}) == NONE
        until(lambda: earliest(client, "topic") == 20)
        assert alter(client, TOPIC, "topic", {"retention.ms": "-1"}) == NONE
        fill(client, "topic")
        fill(client, "short")
        until(lambda: earliest(client, "short") == 20)
        assert earliest(client, "topic") == 20
        # By size now, and then by what the broker says again.
        assert alter(client, TOPIC, "topic", {"retention.bytes": "1500"}) == NONE
        until(lambda: earliest(client, "topic") > 22)
        assert earliest(client, "topic") < 30
        assert alter(client, TOPIC, "topic", {"retention.ms": None}) == NONE
        until(lambda: earliest(client, "topic") == 30)


def test_topics_follow_the_broker(eager: RunningBroker) -> None:
    with RawClient(eager) as client:
        assert alter(client, BROKER, "", {"log.retention.ms": "-1"}) == NONE
        create_topic(client, "follows")
        create_topic(client, "short", configs={"retention.ms": "1000"})
        fill(client, "follows")
        fill(client, "short")
        until(lambda: earliest(client, "short") == 10)
        assert earliest(client, "follows") == 0
        # Set for this broker, it comes before what is set for all.
        assert alter(client, BROKER, NODE_ID, {"log.retention.ms": "2000"}) == NONE
        until(lambda: earliest(client, "follows") == 10)
        assert alter(client, BROKER, NODE_ID, {"log.retention.ms": None}) == NONE
        fill(client, "follows")
        fill(client, "short")
        until(lambda: earliest(client, "short") == 20)
        assert earliest(client, "follows") == 10
        assert alter(client, BROKER, "", {"log.retention.ms": None}) == NONE
        until(lambda: earliest(client, "follows") == 20)


def test_the_largest_message(client: RawClient) -> None:
    create_topic(client, "topic")
    create_topic(client, "own", configs={"max.message.bytes": "300"})

    def fits(topic: str, size: int) -> bool:
        code = produce_to(client, topic, batch(b"x" * size)).error_code
        assert code in (NONE, ErrorCode.MESSAGE_TOO_LARGE)
        return bool(code == NONE)

    assert (fits("topic", 400), fits("own", 400)) == (True, False)
    assert alter(client, TOPIC, "topic", {"max.message.bytes": "200"}) == NONE
    assert (fits("topic", 400), fits("topic", 100)) == (False, True)
    assert alter(client, TOPIC, "topic", {"max.message.bytes": None}) == NONE
    assert fits("topic", 400)
    assert alter(client, BROKER, NODE_ID, {"message.max.bytes": "200"}) == NONE
    assert (fits("topic", 400), fits("own", 150)) == (False, True)
    assert alter(client, BROKER, NODE_ID, {"message.max.bytes": None}) == NONE
    assert fits("topic", 400)


def test_compaction_begins_and_ends(eager: RunningBroker) -> None:
    with RawClient(eager) as client:
        configs = {**LONG_AGO, "internal.segment.bytes": "1000"}
        create_topic(client, "topic", configs=configs)
        fill(client, "topic", 20)
        assert produce_to(client, "topic", batch()).error_code == NONE
        compacted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
        assert alter(client, TOPIC, "topic", compacted) == NONE
        assert produce_to(client, "topic", batch()).error_code == ErrorCode.INVALID_RECORD
        # The pause between two runs is an hour, and who shortens it does not wait for its end.
        faster = {"log.cleaner.backoff.ms": "10", "log.cleaner.io.max.bytes.per.second": "1e9"}
        assert alter(client, BROKER, NODE_ID, faster) == NONE
        until(lambda: len(readable_offsets(client, "topic", 21)) < 8)
        assert alter(client, TOPIC, "topic", {"cleanup.policy": None}) == NONE
        assert produce_to(client, "topic", batch()).error_code == NONE


def test_the_settings_of_compaction(broker: RunningBroker, client: RawClient) -> None:
    changes = {
        "log.cleaner.io.max.bytes.per.second": "12345",
        "log.cleaner.dedupe.buffer.size": "2000000",
        "log.cleaner.io.buffer.load.factor": "0.5",
    }
    assert alter(client, BROKER, NODE_ID, changes) == NONE
    care = broker.broker.log_care
    assert care._throttle.bytes_per_second == 12345
    assert care._cleaner.config.dedupe_buffer_size == 2_000_000
    assert care._cleaner.config.io_buffer_load_factor == 0.5


def test_timestamps(client: RawClient) -> None:
    create_topic(client, "topic")
    assert produce_to(client, "topic").log_append_time_ms == -1
    assert alter(client, TOPIC, "topic", {"message.timestamp.type": "LogAppendTime"}) == NONE
    assert produce_to(client, "topic").log_append_time_ms > 1_700_000_000_000
    changes = {"message.timestamp.type": None, "message.timestamp.before.max.ms": "1000"}
    assert alter(client, TOPIC, "topic", changes) == NONE
    assert produce_to(client, "topic").error_code == ErrorCode.INVALID_TIMESTAMP
    assert alter(client, TOPIC, "topic", {"message.timestamp.before.max.ms": None}) == NONE
    assert produce_to(client, "topic").log_append_time_ms == -1


def test_compression(client: RawClient) -> None:
    create_topic(client, "topic")
    assert alter(client, TOPIC, "topic", {"compression.type": "gzip"}) == NONE
    produce_to(client, "topic")
    assert alter(client, BROKER, "", {"compression.type": "lz4"}) == NONE
    produce_to(client, "topic")
    assert alter(client, TOPIC, "topic", {"compression.type": None}) == NONE
    produce_to(client, "topic")
    codecs = [
        read_batch_header(memoryview(fetch_from(client, "topic", offset).records)).codec
        for offset in range(3)
    ]
    assert codecs == [Codec.GZIP, Codec.GZIP, Codec.LZ4]


def test_whether_acks_all_waits_for_the_disk(tmp_path: Path) -> None:
    fs = WatchedFileSystem()
    with running_broker(tmp_path / "data", fs=fs) as broker, RawClient(broker) as client:
        create_topic(client, "topic")
        syncs = []
        for value in ("false", "true", "false", None):
            assert alter(client, TOPIC, "topic", {"flush.before.ack": value}) == NONE
            before = fs.syncs_of("topic")
            produce_to(client, "topic")
            syncs.append(fs.syncs_of("topic") > before)
        assert syncs == [False, True, False, True]


def test_how_many_connections_there_may_be(broker: RunningBroker, client: RawClient) -> None:
    assert alter(client, BROKER, NODE_ID, {"max.connections": "1"}) == NONE
    with RawClient(broker) as other:
        assert other.is_closed_by_peer()
    assert alter(client, BROKER, NODE_ID, {"max.connections": None}) == NONE
    with RawClient(broker) as other:
        assert value_of(other, BROKER, NODE_ID, "max.connections") == "10000"
    assert alter(client, BROKER, "", {"max.connections.per.ip.overrides": "127.0.0.1:1"}) == NONE
    with RawClient(broker) as other:
        assert other.is_closed_by_peer()


def test_how_producers_are_treated(broker: RunningBroker, client: RawClient) -> None:
    changes = {
        "producer.id.expiration.ms": "1234",
        "transaction.partition.verification.enable": "false",
    }
    create_topic(client, "before")
    assert alter(client, BROKER, "", changes) == NONE
    create_topic(client, "after")

    def treated() -> set[tuple[int, bool]]:
        states = [partition.log.producers for partition in broker.broker.partitions]
        return {(each.producer_id_expiration_ms, each.verification_required) for each in states}

    assert treated() == {(1234, False)}
    broker.restart()
    assert treated() == {(1234, False)}
    with RawClient(broker) as again:
        assert alter(again, BROKER, "", dict.fromkeys(changes)) == NONE
    assert treated() == {(86_400_000, True)}


def heartbeat(client: RawClient, group: str, member_epoch: int) -> Any:
    is_new = member_epoch == 0
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="member",
        member_epoch=member_epoch,
        rebalance_timeout_ms=60_000 if is_new else -1,
        subscribed_topic_names=["topic"] if is_new else None,
        topic_partitions=[] if is_new else None,
    )
    response = client.call(request, 1)
    assert response.error_code == NONE, response
    return response


def test_running_groups_have_their_new_configs(broker: RunningBroker, client: RawClient) -> None:
    create_topic(client, "topic")
    find_coordinator(client)
    epochs = {group: heartbeat(client, group, 0).member_epoch for group in ("group", "other")}

    def interval(group: str) -> int:
        told: int = heartbeat(client, group, epochs[group]).heartbeat_interval_ms
        return told

    assert (interval("group"), interval("other")) == (5000, 5000)
    assert alter(client, GROUP, "group", {"consumer.heartbeat.interval.ms": "6000"}) == NONE
    assert (interval("group"), interval("other")) == (6000, 5000)
    assert alter(client, GROUP, "group", {"consumer.heartbeat.interval.ms": None}) == NONE
    assert interval("group") == 5000
    assert alter(client, BROKER, "", {"group.consumer.assignment.interval.ms": "7000"}) == NONE
    shards = broker.broker.groups.shards()
    assert {
        shard.coordinator._shard.settings.group_consumer_assignment_interval_ms for shard in shards
    } == {7000}


def test_what_was_altered_is_listed(client: RawClient) -> None:
    def listed(kind: int) -> list[str]:
        response = client.call(ListConfigResourcesRequest(resource_types=[kind]))
        return [one.resource_name for one in response.config_resources]

    assert alter(client, GROUP, "group", {"consumer.session.timeout.ms": "50000"}) == NONE
    assert alter(client, METRICS, "subscription", {"interval.ms": "1000"}) == NONE
    assert (listed(GROUP), listed(METRICS)) == (["group"], ["subscription"])
    assert alter(client, GROUP, "group", {"consumer.session.timeout.ms": None}) == NONE
    assert (listed(GROUP), listed(METRICS)) == ([], ["subscription"])


def test_levels_of_loggers(client: RawClient, caplog: pytest.LogCaptureFixture) -> None:
    name = "klamm.broker.log_care"
    caplog.set_level(logging.WARNING)
    assert alter(client, LOGGER, NODE_ID, {name: "TRACE"}) == NONE
    try:
        assert value_of(client, LOGGER, NODE_ID, name) == "TRACE"
        assert logging.getLogger(name).isEnabledFor(logging.DEBUG)
        assert alter(client, LOGGER, NODE_ID, {name: None}) == NONE
        assert value_of(client, LOGGER, NODE_ID, name) == "WARN"
    finally:
        logging.getLogger(name).setLevel(logging.NOTSET)
