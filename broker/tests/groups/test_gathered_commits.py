"""Commits that come in one sweep are stored in one batch, and nobody can tell by the answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from klamm.broker.testing import RunningBroker
from klamm.broker.tests.groups.conftest import FEW_PARTITIONS
from klamm.broker.tests.groups.group_client import (
    COMMIT_VERSION,
    FETCH_VERSION,
    commit,
    commit_codes,
    commit_request,
    committed,
    fetch_request,
    find_coordinator,
)
from klamm.broker.tests.raw_client import RawClient, create_topic
from klamm.coordinator.partitioning import partition_for
from klamm.log.batches import iter_headers
from klamm.log.partition_log import PartitionLog
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.list_groups import ListGroupsRequest
from klamm.wire.messages.offset_commit import OffsetCommitRequest

BATCH_BYTES_MAX = 6000


# A sweep that ends early would store them in several batches.
pytestmark = pytest.mark.usefixtures("_long_turns")


@pytest.fixture
def client(broker: RunningBroker) -> Iterator[RawClient]:
    with RawClient(broker) as connected:
        create_topic(connected, "t", 2)
        find_coordinator(connected)
        assert commit(connected, "g", {"t": {0: 0}}) is ErrorCode.NONE
        yield connected


def log_of(broker: RunningBroker, group_id: str) -> PartitionLog:
    """The log of the partition that a group belongs to."""
    index = partition_for(group_id, int(FEW_PARTITIONS["offsets.topic.num.partitions"]))
    return broker.broker.partitions.find("__consumer_offsets", index).log


def batches_of(broker: RunningBroker, group_id: str) -> list[int]:
    """The number of records in each batch of that log."""
    segment = log_of(broker, group_id).active_segment
    return [header.record_count for _, header in iter_headers(segment.file(), 0, segment.size)]


def send_and_receive(client: RawClient, *requests: Any) -> list[Any]:
    """Send requests in one piece, so that one sweep serves all of them."""
    frames = []
    for request in requests:
        is_commit = isinstance(request, OffsetCommitRequest)
        is_list = isinstance(request, ListGroupsRequest)
        version = COMMIT_VERSION if is_commit else None if is_list else FETCH_VERSION
        frames.append(client.frame(request, version))
    client.socket.sendall(b"".join(frames))
    first = client.sent - len(requests) + 1
    replies = [client.receive() for _ in requests]
    assert [number for number, _ in replies] == list(range(first, client.sent + 1))
    return [response for _, response in replies]


def test_commits_of_one_sweep_are_one_batch(broker: RunningBroker, client: RawClient) -> None:
    requests = [commit_request("g", {"t": {0: offset, 1: 2 * offset}}) for offset in (1, 2, 3)]
    for response in send_and_receive(client, *requests):
        assert commit_codes(response) == {ErrorCode.NONE}
    assert batches_of(broker, "g") == [1, 6]
    assert committed(client, "g") == {"t": {0: 3, 1: 6}}
    broker.stop()
    broker.start()
    with RawClient(broker) as again:
        assert committed(again, "g") == {"t": {0: 3, 1: 6}}


def test_whoever_reads_in_between_sees_what_came_before(client: RawClient) -> None:
    _, first, _, second = send_and_receive(
        client,
        commit_request("g", {"t": {0: 1}}),
        fetch_request("g"),
        commit_request("g", {"t": {0: 2}}),
        fetch_request("g"),
    )
    offsets = [
        response.groups[0].topics[0].partitions[0].committed_offset for response in (first, second)
    ]
    assert offsets == [1, 2]


def test_a_commit_that_makes_a_group_is_stored_before_the_next_is_decided(
    broker: RunningBroker, client: RawClient
) -> None:
    by_nobody, by_a_member, listed = send_and_receive(
        client,
        commit_request("new", {"t": {0: 1}}),
        commit_request("new", {"t": {0: 2}}, member_id="m", generation=1),
        ListGroupsRequest(),
    )
    assert commit_codes(by_nobody) == {ErrorCode.NONE}
    # Without the group it would be GROUP_ID_NOT_FOUND.
    assert commit_codes(by_a_member) == {ErrorCode.UNKNOWN_MEMBER_ID}
    assert {group.group_id for group in listed.groups} == {"g", "new"}


def test_a_refusal_is_that_of_one_commit(broker: RunningBroker, client: RawClient) -> None:
    responses = send_and_receive(
        client,
        commit_request("g", {"t": {0: 1}}),
        commit_request("g", {"t": {0: 2}}, member_id="m", generation=1),
        commit_request("g", {"t": {1: 3}}),
    )
    codes = [code for response in responses for code in commit_codes(response)]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE]
    assert batches_of(broker, "g") == [1, 2]
    assert committed(client, "g") == {"t": {0: 1, 1: 3}}


def test_what_is_too_large_together_is_stored_one_by_one(
    broker: RunningBroker, client: RawClient
) -> None:
    log = log_of(broker, "g")
    log.update_config(replace(log.config, max_message_bytes=BATCH_BYTES_MAX))
    requests = [commit_request("g", {"t": {index: 7}}) for index in (0, 1)]
    for request in requests:
        request.topics[0].partitions[0].committed_metadata = "m" * (BATCH_BYTES_MAX * 2 // 3)
    for response in send_and_receive(client, *requests):
        assert commit_codes(response) == {ErrorCode.NONE}
    assert batches_of(broker, "g") == [1, 1, 1]
    assert committed(client, "g") == {"t": {0: 7, 1: 7}}


def test_a_fault_while_storing_is_answered_to_each(
    broker: RunningBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(*args: Any) -> None:
        raise ValueError("on purpose")

    monkeypatch.setattr("klamm.broker.coordinator_shard.build_records_batch", fault)
    requests = [commit_request("g", {"t": {0: offset}}) for offset in (1, 2)]
    for response in send_and_receive(client, *requests):
        assert commit_codes(response) == {ErrorCode.UNKNOWN_SERVER_ERROR}
    monkeypatch.undo()
    assert committed(client, "g") == {"t": {0: 0}}
    assert broker.broker.dispatcher.handler_failures == 2
