"""The handler of ListConfigResources: which resources there are, of which kinds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.raw_client import RawClient, create_topic
from klamm.log.memory_fs import MemoryFileSystem
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from klamm.wire.messages.stored.metadata import ConfigRecord

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32


@pytest.fixture
def broker() -> Iterator[RunningBroker]:
    with running_broker(fs=MemoryFileSystem()) as broker:
        yield broker


@pytest.fixture
def client(broker: RunningBroker) -> Iterator[RawClient]:
    with RawClient(broker) as client:
        create_topic(client, "topic")
        for kind, name, value in (
            (GROUP, "group", "46000"),
            (METRICS, "subscription", "100"),
            (METRICS, "removed", "100"),
            (METRICS, "removed", None),
        ):
            broker.broker.metadata.image.replay(
                ConfigRecord(resource_type=kind, resource_name=name, name="any", value=value)
            )
        yield client


def listed(client: RawClient, *kinds: int, version: int = 1) -> list[tuple[int, str]]:
    request = ListConfigResourcesRequest(resource_types=list(kinds))
    response = client.call(request, version)
    assert isinstance(response, ListConfigResourcesResponse)
    assert response.error_code == ErrorCode.NONE
    return [(one.resource_type, one.resource_name) for one in response.config_resources]


def test_every_kind(client: RawClient) -> None:
    everything = [
        (TOPIC, "topic"),
        (BROKER, "1"),
        (LOGGER, "1"),
        (METRICS, "subscription"),
        (GROUP, "group"),
    ]
    assert listed(client) == everything
    for resource in everything:
        assert listed(client, resource[0]) == [resource]


def test_a_kind_counts_once(client: RawClient) -> None:
    assert listed(client, GROUP, TOPIC, GROUP) == [(TOPIC, "topic"), (GROUP, "group")]


def test_the_first_version_knows_client_metrics_only(client: RawClient) -> None:
    assert listed(client, version=0) == [(METRICS, "subscription")]


@pytest.mark.parametrize("kind", [0, 1, 3, 64, -1])
def test_kinds_without_settings(client: RawClient, kind: int) -> None:
    response = client.call(ListConfigResourcesRequest(resource_types=[TOPIC, kind]))
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert response.config_resources == []
