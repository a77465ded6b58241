"""FindCoordinator: the topic of the groups is made once, and ready when the answer comes."""

from __future__ import annotations

import errno
import threading
from pathlib import Path
from typing import Any

import pytest

from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.groups.group_client import (
    COMMIT_VERSION,
    commit,
    commit_codes,
    commit_request,
    committed,
    find_coordinator,
)
from klamm.broker.tests.raw_client import (
    RawClient,
    create_topic,
    delete_topic,
    describe_topic,
)
from klamm.broker.tests.watched_fs import WatchedFileSystem
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from klamm.wire.messages.find_coordinator import FindCoordinatorRequest
from klamm.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

OFFSETS_TOPIC = "__consumer_offsets"
ALL_VERSIONS = range(7)


def configs_of(client: RawClient, topic: str) -> dict[str, str]:
    """What was set for the topic itself."""
    resource = DescribeConfigsResource(resource_type=2, resource_name=topic)
    (result,) = client.call(DescribeConfigsRequest(resources=[resource])).results
    return {entry.name: entry.value for entry in result.configs if entry.config_source == 1}


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_every_version_finds_this_broker(
    broker: RunningBroker, client: RawClient, version: int
) -> None:
    request = FindCoordinatorRequest(key="g", coordinator_keys=["g", "", "h" * 5000])
    response = client.call(request, version)
    if version < 4:
        found = [response]
        assert version == 0 or response.error_message == "NONE"
    else:
        found = response.coordinators
        assert [coordinator.key for coordinator in found] == ["g", "", "h" * 5000]
    for each in found:
        assert (each.error_code, each.node_id) == (ErrorCode.NONE, 1)
        assert (each.host, each.port) == ("127.0.0.1", broker.port)


def test_the_topic_is_as_kafka_makes_it(tmp_path: Path) -> None:
    with running_broker(tmp_path / "data") as broker, RawClient(broker) as client:
        find_coordinator(client)
        topic = describe_topic(client, OFFSETS_TOPIC)
        configs = configs_of(client, OFFSETS_TOPIC)
    assert topic.is_internal
    assert len(topic.partitions) == 50
    assert configs == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(100 * 1024 * 1024),
    }


def test_metadata_makes_the_same_topic_on_the_way(client: RawClient) -> None:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=OFFSETS_TOPIC)], allow_auto_topic_creation=True
    )
    (topic,) = client.call(request, 12).topics
    assert (topic.error_code, len(topic.partitions)) == (ErrorCode.NONE, 4)
    assert configs_of(client, OFFSETS_TOPIC)["cleanup.policy"] == "compact"
    create_topic(client, "t")
    assert commit(client, "g", {"t": {0: 1}}) is ErrorCode.NONE


def test_settings_of_the_topic(tmp_path: Path) -> None:
    properties = {
        "offsets.topic.num.partitions": "3",
        # More than there are brokers; groups work all the same.
        "offsets.topic.replication.factor": "3",
        "offsets.topic.segment.bytes": "2000000",
        "offsets.topic.compression.codec": "4",
    }
    with running_broker(tmp_path / "data", properties) as broker, RawClient(broker) as client:
        create_topic(client, "t", 50)
        find_coordinator(client)
        topic = describe_topic(client, OFFSETS_TOPIC)
        assert [partition.replica_nodes for partition in topic.partitions] == [[1]] * 3
        assert configs_of(client, OFFSETS_TOPIC)["segment.bytes"] == "2000000"
        offsets = {"t": dict.fromkeys(range(50), 7)}
        assert commit(client, "g", offsets) is ErrorCode.NONE
        broker.restart()
        with RawClient(broker) as again:
            assert committed(again, "g") == offsets


def test_many_ask_at_once_and_the_topic_is_made_once(broker: RunningBroker) -> None:
    codes: list[int] = []

    def ask(number: int) -> None:
        with RawClient(broker) as client:
            codes.append(find_coordinator(client, f"group-{number}")[0].error_code)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [ErrorCode.NONE] * 10


@pytest.mark.parametrize("key_type", [2, 7, -1])
@pytest.mark.parametrize("version", [1, 3, 4, 6])
def test_shares_and_unknown_kinds_have_no_coordinator(
    client: RawClient, key_type: int, version: int
) -> None:
    request = FindCoordinatorRequest(key="g", key_type=key_type, coordinator_keys=["g", "h"])
    response = client.call(request, version)
    for each in [response] if version < 4 else response.coordinators:
        assert (each.error_code, each.node_id) == (ErrorCode.INVALID_REQUEST, -1)
        assert (each.host, each.port) == ("", -1)
    assert describe_topic(client, OFFSETS_TOPIC).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_without_the_topic_this_is_no_coordinator(client: RawClient) -> None:
    create_topic(client, "t")
    assert commit(client, "g", {"t": {0: 1}}) is ErrorCode.NOT_COORDINATOR
    # What does not exist has its own code all the same, as in Kafka.
    request = commit_request("g", {"t": {0: 1}, "none": {0: 1}})
    assert commit_codes(client.call(request, COMMIT_VERSION)) == {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_a_disk_that_refuses_the_topic(tmp_path: Path) -> None:
    fs = WatchedFileSystem()
    with running_broker(tmp_path / "data", fs=fs) as broker, RawClient(broker) as client:
        fs.fail_appends(errno.ENOSPC)
        (refused,) = find_coordinator(client)
        assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        fs.fail_appends(0)
        (found,) = find_coordinator(client)
        assert found.error_code == ErrorCode.NONE


def test_the_number_of_partitions_stays_what_it_was(tmp_path: Path) -> None:
    """A setting that changes later must not move the groups."""
    data_dir = tmp_path / "data"
    groups = [f"group-{number}" for number in range(20)]
    with (
        running_broker(data_dir, {"offsets.topic.num.partitions": "7"}) as broker,
        RawClient(broker) as client,
    ):
        create_topic(client, "t")
        find_coordinator(client)
        for number, group_id in enumerate(groups):
            assert commit(client, group_id, {"t": {0: number}}) is ErrorCode.NONE
    with (
        running_broker(data_dir, {"offsets.topic.num.partitions": "11"}) as broker,
        RawClient(broker) as client,
    ):
        for number, group_id in enumerate(groups):
            assert committed(client, group_id) == {"t": {0: number}}


def test_a_topic_that_somebody_else_made_is_used(client: RawClient) -> None:
    create_topic(client, OFFSETS_TOPIC, 2, {"cleanup.policy": "compact"})
    create_topic(client, "t")
    assert commit(client, "g", {"t": {0: 1}}) is ErrorCode.NONE
    assert committed(client, "g") == {"t": {0: 1}}


def test_when_the_topic_is_deleted_so_are_the_groups(client: RawClient) -> None:
    create_topic(client, "t")
    find_coordinator(client)
    assert commit(client, "g", {"t": {0: 1}}) is ErrorCode.NONE
    delete_topic(client, OFFSETS_TOPIC)
    assert commit(client, "g", {"t": {0: 2}}) is ErrorCode.NOT_COORDINATOR
    found: Any = find_coordinator(client, "g")[0]
    assert found.error_code == ErrorCode.NONE
    assert committed(client, "g") == {}
    assert commit(client, "g", {"t": {0: 3}}) is ErrorCode.NONE
