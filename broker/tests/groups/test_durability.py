"""When replies about groups leave: after the disk has what they tell, and not before.

Method: the syncs of `__consumer_offsets` are held up at a gate, or made to fail.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from klamm.broker.broker import BrokerHaltedError
from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.groups.conftest import FEW_PARTITIONS
from klamm.broker.tests.groups.group_client import (
    COMMIT_VERSION,
    FETCH_VERSION,
    become_leader,
    commit,
    commit_codes,
    commit_request,
    committed,
    fetch_request,
    find_coordinator,
    heartbeat,
    until,
)
from klamm.broker.tests.raw_client import RawClient, create_topic
from klamm.broker.tests.watched_fs import WatchedFileSystem
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.api_versions import ApiVersionsRequest
from klamm.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from klamm.wire.messages.delete_groups import DeleteGroupsRequest
from klamm.wire.messages.describe_groups import DescribeGroupsRequest
from klamm.wire.messages.list_groups import ListGroupsRequest
from klamm.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from klamm.wire.messages.offset_fetch import OffsetFetchRequest
from klamm.wire.schema import Message

OFFSETS_TOPIC = "__consumer_offsets"


@pytest.fixture
def fs() -> WatchedFileSystem:
    return WatchedFileSystem()


@pytest.fixture
def broker(tmp_path: Path, fs: WatchedFileSystem) -> Iterator[RunningBroker]:
    with running_broker(tmp_path / "data", FEW_PARTITIONS, fs=fs) as running:
        with RawClient(running) as client:
            create_topic(client, "t", 2)
            find_coordinator(client)
        yield running


def is_silent(client: RawClient) -> bool:
    client.socket.settimeout(0.1)
    try:
        return not client.socket.recv(1)
    except TimeoutError:
        return True
    finally:
        client.socket.settimeout(20)


def test_a_commit_is_answered_after_its_sync(broker: RunningBroker, fs: WatchedFileSystem) -> None:
    gate = fs.hold_syncs_of(OFFSETS_TOPIC)
    with RawClient(broker) as client:
        client.send(commit_request("g", {"t": {0: 5}}), version=COMMIT_VERSION)
        gate.wait_for_arrival()
        assert is_silent(client)
        gate.let_through(10)
        _, response = client.receive()
        assert commit_codes(response) == {ErrorCode.NONE}


def test_nobody_reads_what_a_crash_could_take_back(
    broker: RunningBroker, fs: WatchedFileSystem
) -> None:
    gate = fs.hold_syncs_of(OFFSETS_TOPIC)
    with RawClient(broker) as writer, RawClient(broker) as reader, RawClient(broker) as other:
        writer.send(commit_request("g", {"t": {0: 5}}), version=COMMIT_VERSION)
        gate.wait_for_arrival()
        reader.send(fetch_request("g"), version=FETCH_VERSION)
        assert is_silent(reader)
        # The rest of the broker does not wait.
        assert other.call(ApiVersionsRequest(), 0).error_code == ErrorCode.NONE
        gate.let_through(10)
        _, response = reader.receive()
        assert response.groups[0].topics[0].partitions[0].committed_offset == 5


def delete_offsets_request(group_id: str) -> OffsetDeleteRequest:
    partition = OffsetDeleteRequestPartition(partition_index=0)
    topic = OffsetDeleteRequestTopic(name="t", partitions=[partition])
    return OffsetDeleteRequest(group_id=group_id, topics=[topic])


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (OffsetFetchRequest(group_id="g", topics=None), 7),
        (fetch_request("other", "g"), FETCH_VERSION),
        (ListGroupsRequest(), 5),
        (DescribeGroupsRequest(groups=["g"]), 6),
        (ConsumerGroupDescribeRequest(group_ids=["g"]), 1),
        (delete_offsets_request("g"), 0),
        (DeleteGroupsRequest(groups_names=["g"]), 2),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Message) else f"v{value}",
)
def test_every_reply_waits_for_what_it_rests_on(
    broker: RunningBroker, fs: WatchedFileSystem, request_: Message, version: int
) -> None:
    """Nothing is on disk of the group when others ask about it, or remove it."""
    gate = fs.hold_syncs_of(OFFSETS_TOPIC)
    with RawClient(broker) as writer, RawClient(broker) as reader:
        writer.send(commit_request("g", {"t": {0: 5}}), version=COMMIT_VERSION)
        gate.wait_for_arrival()
        reader.send(request_, version=version)
        assert is_silent(reader)
        gate.let_through(10)
        reader.receive()


def test_many_commits_share_a_sync(broker: RunningBroker, fs: WatchedFileSystem) -> None:
    before = len(fs.synced)
    gate = fs.hold_syncs_of(OFFSETS_TOPIC)
    with RawClient(broker) as client:
        client.send(
            *(commit_request("g", {"t": {0: offset}}) for offset in range(20)),
            version=COMMIT_VERSION,
        )
        gate.wait_for_arrival()
        until(lambda: broker.broker.partitions.find(OFFSETS_TOPIC, 3).log.log_end_offset == 20)
        gate.let_through(100)
        for _ in range(20):
            assert commit_codes(client.receive()[1]) == {ErrorCode.NONE}
        assert committed(client, "g") == {"t": {0: 19}}
    assert len([path for path in fs.synced[before:] if path.endswith(".log")]) <= 3


def test_with_flush_before_ack_off_nothing_waits(tmp_path: Path, fs: WatchedFileSystem) -> None:
    properties = {**FEW_PARTITIONS, "flush.before.ack": "false"}
    with (
        running_broker(tmp_path / "lazy", properties, fs=fs) as running,
        RawClient(running) as client,
    ):
        create_topic(client, "t")
        find_coordinator(client)
        gate = fs.hold_syncs_of(OFFSETS_TOPIC)
        assert commit(client, "g", {"t": {0: 5}}) is ErrorCode.NONE
        assert committed(client, "g") == {"t": {0: 5}}
        gate.let_through(100)


def test_a_failed_sync_halts_and_nothing_is_answered(
    broker: RunningBroker, fs: WatchedFileSystem
) -> None:
    with RawClient(broker) as client:
        assert commit(client, "g", {"t": {0: 1}}) is ErrorCode.NONE
        fs.fail_syncs_of(OFFSETS_TOPIC)
        client.send(commit_request("g", {"t": {0: 2}}), version=COMMIT_VERSION)
        assert client.is_closed_by_peer()
    with suppress(BrokerHaltedError):
        broker.stop()
    fs.fail_syncs_of("nothing")
    broker.start()
    with RawClient(broker) as client:
        # It was not acknowledged, and it was not refused either.
        assert committed(client, "g") in ({"t": {0: 1}}, {"t": {0: 2}})


def test_a_full_disk_refuses_and_leaves_no_trace(
    broker: RunningBroker, fs: WatchedFileSystem
) -> None:
    with RawClient(broker) as client:
        assert commit(client, "g", {"t": {0: 1}}) is ErrorCode.NONE
        joined = become_leader(client, "members")
        fs.fail_appends(errno.ENOSPC, ".log")
        assert commit(client, "g", {"t": {0: 2}}) is ErrorCode.NOT_COORDINATOR
        assert commit(client, "new", {"t": {0: 2}}) is ErrorCode.NOT_COORDINATOR
        assert committed(client, "g") == {"t": {0: 1}}
        assert heartbeat(client, "members", joined) is ErrorCode.NONE
        fs.fail_appends(0)
        assert commit(client, "g", {"t": {0: 3}}) is ErrorCode.NONE
    broker.kill()
    broker.start()
    with RawClient(broker) as client:
        assert committed(client, "g") == {"t": {0: 3}}
        assert committed(client, "new") == {}


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_what_was_acknowledged_survives(broker: RunningBroker, ending: str) -> None:
    with RawClient(broker) as client:
        for offset in range(30):
            for group_id in ("a", "b", "c"):
                assert commit(client, group_id, {"t": {0: offset, 1: 2 * offset}}) is ErrorCode.NONE
        joined = become_leader(client, "members")
        assert (
            commit(
                client,
                "members",
                {"t": {0: 8}},
                member_id=joined.member_id,
                generation=joined.generation_id,
            )
            is ErrorCode.NONE
        )
    getattr(broker, ending)()
    broker.start()
    with RawClient(broker) as client:
        for group_id in ("a", "b", "c"):
            assert committed(client, group_id) == {"t": {0: 29, 1: 58}}
        # The group is the same, with its member, its generation and what was assigned.
        assert heartbeat(client, "members", joined) is ErrorCode.NONE
        assert committed(client, "members") == {"t": {0: 8}}


def test_a_commit_behind_a_rebalance_is_refused_and_stores_nothing(broker: RunningBroker) -> None:
    with RawClient(broker) as client:
        joined = become_leader(client, "g")
        member = {"member_id": joined.member_id, "generation": joined.generation_id - 1}
        assert commit(client, "g", {"t": {0: 1}}, **member) is ErrorCode.ILLEGAL_GENERATION
        assert committed(client, "g") == {}
