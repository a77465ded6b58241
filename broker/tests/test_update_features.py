"""The handler of UpdateFeatures: up, down, off, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from klamm.broker.testing import running_broker
from klamm.broker.tests.raw_client import RawClient
from klamm.log.memory_fs import MemoryFileSystem
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.api_versions import ApiVersionsRequest
from klamm.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from klamm.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

GROUPS, METADATA = "group.version", "metadata.version"
# What no test here changes.
OTHERS = {METADATA: 30, "transaction.version": 2}
UPGRADE, SAFE, UNSAFE = 1, 2, 3


@pytest.fixture
def client() -> Iterator[RawClient]:
    with running_broker(fs=MemoryFileSystem()) as broker, RawClient(broker) as client:
        yield client


def update(
    client: RawClient, *updates: tuple[str, int, int], version: int = 2, **fields: Any
) -> UpdateFeaturesResponse:
    keys = [
        FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
        for name, level, kind in updates
    ]
    response = client.call(UpdateFeaturesRequest(feature_updates=keys, **fields), version)
    assert isinstance(response, UpdateFeaturesResponse)
    return response


def finalized(client: RawClient) -> dict[str, int]:
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    features = client.call(request).finalized_features
    return {feature.name: feature.max_version_level for feature in features}


def heartbeat_code(client: RawClient) -> int:
    request = ConsumerGroupHeartbeatRequest(
        group_id="group",
        member_id="member",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["topic"],
        topic_partitions=[],
    )
    return int(client.call(request).error_code)


@pytest.mark.parametrize("kind", [SAFE, UNSAFE])
def test_off_and_on_again(client: RawClient, kind: int) -> None:
    assert update(client, (GROUPS, 0, kind)).error_code == ErrorCode.NONE
    assert finalized(client) == OTHERS
    assert heartbeat_code(client) == ErrorCode.UNSUPPORTED_VERSION
    assert update(client, (GROUPS, 1, UPGRADE)).error_code == ErrorCode.NONE
    assert finalized(client) == {**OTHERS, GROUPS: 1}
    assert heartbeat_code(client) != ErrorCode.UNSUPPORTED_VERSION


def test_what_is_off_stays_off(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker, RawClient(broker) as client:
        assert update(client, (GROUPS, 0, SAFE)).error_code == ErrorCode.NONE
    with running_broker(tmp_path) as broker, RawClient(broker) as client:
        assert finalized(client) == OTHERS


def test_validation_changes_nothing(client: RawClient) -> None:
    assert update(client, (GROUPS, 0, SAFE), validate_only=True).error_code == ErrorCode.NONE
    assert finalized(client) == {**OTHERS, GROUPS: 1}


@pytest.mark.parametrize(
    ("name", "level", "kind"),
    [
        (GROUPS, 0, UPGRADE),
        (GROUPS, 2, UPGRADE),
        (GROUPS, -1, SAFE),
        (GROUPS, 1, 0),
        (GROUPS, 1, 4),
        (METADATA, 29, SAFE),
        (METADATA, 31, UPGRADE),
        ("nothing", 1, UPGRADE),
        ("nothing", 0, SAFE),
    ],
)
def test_one_mistake_refuses_all(client: RawClient, name: str, level: int, kind: int) -> None:
    if name == METADATA:
        updates = [(GROUPS, 0, SAFE), (name, level, kind)]
    else:
        updates = [(METADATA, 30, UPGRADE), (name, level, kind)]
    response = update(client, *updates)
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert repr(name) in (response.error_message or "")
    assert finalized(client) == {**OTHERS, GROUPS: 1}


def test_a_downgrade_to_more(client: RawClient) -> None:
    update(client, (GROUPS, 0, SAFE))
    assert update(client, (GROUPS, 1, SAFE)).error_code == ErrorCode.INVALID_UPDATE_VERSION


def test_the_last_of_several_counts(client: RawClient) -> None:
    update(client, (GROUPS, 1, UPGRADE), (GROUPS, 0, SAFE))
    assert finalized(client) == OTHERS


def test_results_of_single_features(client: RawClient) -> None:
    for version, names in ((0, [GROUPS, METADATA]), (1, [GROUPS, METADATA]), (2, [])):
        response = update(client, (GROUPS, 1, UPGRADE), (METADATA, 30, UPGRADE), version=version)
        assert [result.feature for result in response.results] == names
