"""Alterations as long as the limits allow, which hold up nobody; see test_long_requests.py."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest

from klamm.broker.metadata.config_values import Operation
from klamm.broker.metadata.topics import topic_records
from klamm.broker.testing import running_broker
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
from klamm.broker.tests.raw_client import RawClient, create_topic
from klamm.broker.tests.test_long_requests import is_answered
from klamm.log.memory_fs import MemoryFileSystem
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.alter_configs import AlterableConfig as Replacing
from klamm.wire.messages.alter_configs import AlterConfigsRequest
from klamm.wire.messages.alter_configs import AlterConfigsResource as Replaced
from klamm.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

# Just below klamm.request.items.max.
MANY = 49_000
SESSION = {"consumer.session.timeout.ms": "50000"}
FREE = {f"custom.{number}": "1" for number in range(MANY)}

INCREMENTAL: dict[str, list[AlterConfigsResource]] = {
    "groups": [resource(GROUP, f"group-{number}", SESSION) for number in range(10_000)],
    "too many groups": [resource(GROUP, f"group-{number}", SESSION) for number in range(24_000)],
    "one group again and again": [resource(GROUP, "group", SESSION)] * 24_000,
    "unknown topics": [resource(TOPIC, f"topic-{number}", {}) for number in range(MANY)],
    "unknown types": [resource(99, f"name-{number}", {}) for number in range(MANY)],
    "unknown configs of a topic": [resource(TOPIC, "topic", FREE)],
    "unknown configs of a topic, deleted": [resource(TOPIC, "topic", dict.fromkeys(FREE))],
    "settings of a broker": [resource(BROKER, NODE_ID, FREE)],
    "settings of a broker, deleted": [resource(BROKER, NODE_ID, dict.fromkeys(FREE))],
    "client metrics": [resource(METRICS, "name", FREE)],
    "brokers": [resource(BROKER, f"{1:0{number}}", {}) for number in range(1, 90)],
}


@pytest.fixture
def client() -> Iterator[RawClient]:
    with running_broker(fs=MemoryFileSystem()) as broker, RawClient(broker) as connected:
        create_topic(connected, "topic")
        yield connected


@pytest.mark.parametrize("case", INCREMENTAL)
def test_an_alteration_of_the_greatest_size(client: RawClient, case: str) -> None:
    is_answered(client, IncrementalAlterConfigsRequest(resources=INCREMENTAL[case]), 1)


def test_a_replacement_of_the_greatest_size(client: RawClient) -> None:
    configs = [Replacing(name=name, value=value) for name, value in SESSION.items()]
    resources = [
        Replaced(resource_type=GROUP, resource_name=f"group-{number}", configs=configs)
        for number in range(10_000)
    ]
    is_answered(client, AlterConfigsRequest(resources=resources), 2)


@pytest.mark.parametrize("operation", [Operation.APPEND, Operation.SUBTRACT])
def test_lists_as_long_as_they_can_be(client: RawClient, operation: Operation) -> None:
    """Of sixteen thousand items each; one by one against each other, they would take seconds."""
    name = "leader.replication.throttled.replicas"
    first = ",".join(["1:1"] * 8000)
    assert alter(client, TOPIC, "topic", {name: first}) == ErrorCode.NONE
    items = ",".join(format(number, "x") for number in range(7000))
    change = AlterableConfig(name=name, config_operation=operation, value=items)
    altered = AlterConfigsResource(resource_type=TOPIC, resource_name="topic", configs=[change])
    is_answered(client, IncrementalAlterConfigsRequest(resources=[altered]), 1)


def test_a_broker_with_many_settings_and_topics() -> None:
    with running_broker(fs=MemoryFileSystem()) as broker, RawClient(broker) as client:
        image = broker.broker.metadata.image
        for number in range(10_000):
            configs = {"retention.ms": "5", "cleanup.policy": "compact", "segment.ms": "7"}
            for record in topic_records(f"{number}", uuid4(), [[1]], configs, lambda: UUID(int=1)):
                image.replay(record)
        custom = {f"custom.{number}": "1" for number in range(498)}
        for name in (NODE_ID, ""):
            assert alter(client, BROKER, name, custom) == ErrorCode.NONE
        assert alter(client, BROKER, "", {"log.roll.ms": "5"}) == ErrorCode.NONE
        for name in (NODE_ID, ""):
            assert value_of(client, BROKER, name, "log.roll.ms") == "5"
