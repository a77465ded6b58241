"""Settings, topics and features as groups see them."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from uuid import UUID

import pytest

from klamm.broker import broker as broker_module
from klamm.broker.config import load
from klamm.broker.features import FINALIZED_FEATURES, GROUP_VERSION
from klamm.broker.groups.settings import GATHERING_MS, group_configs, group_settings
from klamm.broker.groups.topics import MetadataTopics
from klamm.broker.metadata.image import MetadataImage, ResourceType
from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.raw_client import RawClient
from klamm.coordinator.settings import GroupSettings
from klamm.wire.messages.api_versions import ApiVersionsRequest
from klamm.wire.messages.stored.metadata import (
    ConfigRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

TOPIC_ID = UUID(int=5)


def test_without_settings_the_defaults_of_both_are_the_same() -> None:
    expected = GroupSettings(group_initial_rebalance_delay_ms=GATHERING_MS)
    assert group_settings(load(None, {})) == expected


@pytest.mark.parametrize(("given", "used"), [("0", 5), ("4", 5), ("5", 5), ("3000", 3000)])
def test_members_that_start_together_are_always_waited_for(given: str, used: int) -> None:
    settings = group_settings(load(None, {"group.initial.rebalance.delay.ms": given}))
    assert settings.group_initial_rebalance_delay_ms == used


def test_every_setting_of_groups_comes_from_one_of_the_broker() -> None:
    texts = {
        "group_consumer_assignors": "range",
        "group_consumer_migration_policy": "Upgrade",
        "group_consumer_session_timeout_ms": "50000",
        "group_consumer_heartbeat_interval_ms": "6000",
        "group_consumer_assignment_interval_ms": "2000",
        "offsets_retention_ms": "3",
    }
    properties = {
        field.name.replace("_", "."): texts.get(field.name, "12345")
        for field in fields(GroupSettings)
    }
    properties["offsets.retention.minutes"] = properties.pop("offsets.retention.ms")
    settings = group_settings(load(None, properties))
    for field in fields(GroupSettings):
        expected: object = texts.get(field.name, "12345")
        if field.name == "group_consumer_assignors":
            expected = ("range",)
        elif field.name == "group_consumer_migration_policy":
            expected = "upgrade"
        elif field.name == "offsets_retention_ms":
            expected = 3 * 60_000
        else:
            expected = int(str(expected))
        assert getattr(settings, field.name) == expected, field.name


@pytest.mark.parametrize(
    ("given", "used"), [("44999", 45_000), ("50000", 50_000), ("60001", 60_000)]
)
def test_the_config_of_a_group_is_moved_into_the_limits(given: str, used: int) -> None:
    image = MetadataImage()
    name = "consumer.session.timeout.ms"
    for group_id, key, value in (
        ("g", name, given),
        ("g", "share.session.timeout.ms", "1"),
        ("h", "consumer.heartbeat.interval.ms", "9000"),
    ):
        image.replay(
            ConfigRecord(
                resource_type=ResourceType.GROUP, resource_name=group_id, name=key, value=value
            )
        )
    config = load(None, {})
    assert group_configs(image, config, "g") == {name: used}
    assert group_configs(image, config, "h") == {"consumer.heartbeat.interval.ms": 9000}
    assert group_configs(image, config, "none") == {}


# --- topics ---


def add_partition(image: MetadataImage, number: int) -> None:
    image.replay(PartitionRecord(partition_id=number, topic_id=TOPIC_ID, replicas=[1], isr=[1]))


@pytest.mark.parametrize(("rack", "racks"), [(None, frozenset()), ("r", frozenset({"r"}))])
def test_topics_are_those_of_the_image(rack: str | None, racks: frozenset[str]) -> None:
    image = MetadataImage()
    topics = MetadataTopics(image, rack)
    assert (topics.find("t"), topics.find_by_id(TOPIC_ID), list(topics.names())) == (None, None, [])
    before = topics.version
    image.replay(TopicRecord(name="t", topic_id=TOPIC_ID))
    add_partition(image, 0)
    assert topics.version > before
    topic = topics.find("t")
    assert topic is not None
    assert (topic.name, topic.topic_id, topic.racks) == ("t", TOPIC_ID, (racks,))
    assert topics.find_by_id(TOPIC_ID) is topic
    add_partition(image, 1)
    grown = topics.find("t")
    assert grown is not None
    assert grown.partition_count == 2
    image.replay(RemoveTopicRecord(topic_id=TOPIC_ID))
    assert (topics.find("t"), topics.find_by_id(TOPIC_ID), list(topics.names())) == (None, None, [])


# --- features ---


def finalized(broker: RunningBroker) -> dict[str, int]:
    with RawClient(broker) as client:
        response = client.call(
            ApiVersionsRequest(client_software_name="a", client_software_version="1"), 4
        )
        return {each.name: each.max_version_level for each in response.finalized_features}


def test_an_older_data_directory_gets_the_feature_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = {name: FINALIZED_FEATURES[name] for name in FINALIZED_FEATURES if name != GROUP_VERSION}
    monkeypatch.setattr(broker_module, "FINALIZED_FEATURES", older)
    with running_broker(tmp_path / "data") as broker:
        assert finalized(broker) == older
    monkeypatch.undo()
    with running_broker(tmp_path / "data") as broker:
        assert finalized(broker) == FINALIZED_FEATURES
        end_offset = broker.broker.metadata.log.log_end_offset
        broker.restart()
        assert finalized(broker) == FINALIZED_FEATURES
        # The election that every start is, and nothing else.
        assert broker.broker.metadata.log.log_end_offset == end_offset + 1
