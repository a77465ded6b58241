"""Loading groups after a start: what is said meanwhile, and what can't be loaded.

Method: the log of a shard is written by the broker's own code, and its reader is held up.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from klamm.broker.groups import loading
from klamm.broker.groups.batches import build_records_batch
from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.groups.conftest import FEW_PARTITIONS
from klamm.broker.tests.groups.group_client import (
    JOIN_VERSION,
    become_leader,
    commit,
    committed,
    fetch_request,
    find_coordinator,
    heartbeat,
    join_request,
    listed,
    until,
)
from klamm.broker.tests.raw_client import RawClient, create_topic, delete_topic
from klamm.coordinator.partitioning import partition_for
from klamm.coordinator.ports import CoordinatorRecord, OpenTransaction
from klamm.log.append_origin import AppendOrigin
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.list_groups import ListGroupsRequest
from klamm.wire.messages.stored.classic_group import OffsetCommitKey, OffsetCommitValue
from klamm.wire.records.control import build_end_transaction_marker
from klamm.wire.records.record import build_batch

OFFSETS_TOPIC = "__consumer_offsets"
PATIENCE_S = 20.0
NOW_MS = 1_700_000_000_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    with running_broker(tmp_path / "data", FEW_PARTITIONS) as running:
        with RawClient(running) as client:
            create_topic(client, "t", 2)
            find_coordinator(client)
        yield running


def write(
    broker: RunningBroker,
    group_id: str,
    batch: bytes,
    origin: AppendOrigin = AppendOrigin.COORDINATOR,
) -> None:
    """Put a batch into the log of a group, behind the back of its coordinator."""
    partition = broker.broker.partitions.find(OFFSETS_TOPIC, partition_for(group_id, 4))
    broker._call(lambda: partition.append(memoryview(batch), NOW_MS, None, origin))


def offset_record(group_id: str, offset: int, partition: int = 0) -> CoordinatorRecord:
    return CoordinatorRecord(
        OffsetCommitKey(group=group_id, topic="t", partition=partition),
        OffsetCommitValue(offset=offset, commit_timestamp=NOW_MS * 10),
        4,
    )


@pytest.fixture
def held_reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Loads wait in their thread until the event is set."""
    event = threading.Event()
    event.set()
    decode: Callable[..., Any] = loading.LogReader._decode

    def decode_later(*args: Any) -> Any:
        assert event.wait(PATIENCE_S)
        return decode(*args)

    monkeypatch.setattr(loading.LogReader, "_decode", decode_later)
    yield event
    event.set()


def test_until_it_is_loaded_a_coordinator_says_so(
    broker: RunningBroker, held_reader: threading.Event
) -> None:
    with RawClient(broker) as client:
        assert commit(client, "g", {"t": {0: 5}}) is ErrorCode.NONE
        joined = become_leader(client, "g2")
    held_reader.clear()
    broker.restart()
    with RawClient(broker) as client:
        loading_ = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert find_coordinator(client, "g")[0].error_code == ErrorCode.NONE
        assert commit(client, "g", {"t": {0: 6}}) is loading_
        (group,) = client.call(fetch_request("g"), 9).groups
        assert group.error_code == loading_
        assert client.call(join_request("g"), JOIN_VERSION).error_code == loading_
        assert client.call(ListGroupsRequest()).error_code == loading_
        # So that members do not think that they have lost their group.
        assert heartbeat(client, "g2", joined) is ErrorCode.NONE
        # Groups of which nothing is stored need not be loaded.
        assert commit(client, "other", {"t": {0: 1}}) is ErrorCode.NONE
        held_reader.set()
        assert committed(client, "g") == {"t": {0: 5}}
        assert heartbeat(client, "g2", joined) is ErrorCode.NONE
        assert listed(client) == {"g": "Empty", "g2": "Stable", "other": "Empty"}


def test_a_stop_does_not_wait_for_a_load(
    broker: RunningBroker, held_reader: threading.Event
) -> None:
    with RawClient(broker) as client:
        assert commit(client, "g", {"t": {0: 5}}) is ErrorCode.NONE
    held_reader.clear()
    broker.restart()
    held_reader.set()
    broker.restart()
    with RawClient(broker) as client:
        assert committed(client, "g") == {"t": {0: 5}}


def test_very_many_records_are_loaded_without_holding_up_the_loop(broker: RunningBroker) -> None:
    records = [offset_record("g", number, number % 2) for number in range(40_000)]
    for start in range(0, len(records), 4000):
        write(broker, "g", build_records_batch(records[start : start + 4000], NOW_MS, 0))
    broker.restart()
    with RawClient(broker) as client:
        assert committed(client, "g") == {"t": {0: 39_998, 1: 39_999}}


def test_records_of_other_kinds_of_groups_are_left_alone(
    broker: RunningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    unknown = [(bytes([0, number]) + b"key", b"\0\0value", (), NOW_MS) for number in (11, 17, 11)]
    write(broker, "g", build_records_batch([offset_record("g", 1)], NOW_MS, 0))
    write(broker, "g", build_batch(unknown))
    write(broker, "g", build_records_batch([offset_record("g", 2)], NOW_MS, 0))
    with caplog.at_level(logging.WARNING):
        broker.restart()
        with RawClient(broker) as client:
            assert committed(client, "g") == {"t": {0: 2}}
    (message,) = [record.message for record in caplog.records if "unknown" in record.message]
    assert "__consumer_offsets-3 has records of unknown types, left alone: 11, 17" in message


@pytest.mark.parametrize(
    ("records", "problem"),
    [
        ([(b"\0\1nonsense", b"\0\4", (), NOW_MS)], "the record at offset 0"),
        ([(b"", b"value", (), NOW_MS)], "the record at offset 0"),
        ([(b"\0\2\0\1g", b"\0\x50", (), NOW_MS)], "the record at offset 0"),
    ],
)
def test_a_record_that_can_not_be_read_closes_its_shard_and_no_other(
    broker: RunningBroker,
    caplog: pytest.LogCaptureFixture,
    records: Sequence[Any],
    problem: str,
) -> None:
    write(broker, "g", build_batch(records))
    with RawClient(broker) as client:
        assert commit(client, "h", {"t": {0: 1}}) is ErrorCode.NONE
    broker.restart()
    with RawClient(broker) as client:
        until(lambda: commit(client, "g", {"t": {0: 1}}) is ErrorCode.NOT_COORDINATOR)
        assert committed(client, "h") == {"t": {0: 1}}
        assert listed(client) == {"h": "Empty"}
    (error,) = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert error.startswith(f"the groups in __consumer_offsets-3 are not served: {problem}")


# --- transactions in the log ---


def write_transactional(broker: RunningBroker, producer_id: int, offset: int) -> None:
    """A commit in a transaction, as the coordinator of the group would write it."""
    partition = broker.broker.partitions.find(OFFSETS_TOPIC, partition_for("g", 4))
    transaction = OpenTransaction(producer_id, producer_epoch=0)
    batch = build_records_batch([offset_record("g", offset)], NOW_MS, 0, transaction)

    def append() -> None:
        guard = partition.log.producers.start_verification(
            producer_id, -1, 0, supports_epoch_bump=False, now_ms=NOW_MS
        )
        partition.append(memoryview(batch), NOW_MS, None, AppendOrigin.COORDINATOR, guard=guard)

    broker._call(append)


def marker(producer_id: int, *, commit: bool) -> bytes:
    return build_end_transaction_marker(
        producer_id=producer_id,
        producer_epoch=0,
        commit=commit,
        coordinator_epoch=0,
        timestamp=NOW_MS,
    )


def stability(client: RawClient) -> list[tuple[int, ErrorCode]]:
    """The offset of the only partition, and why it is none."""
    request = fetch_request("g")
    request.require_stable = True
    (group,) = client.call(request, 9).groups
    return [
        (partition.committed_offset, ErrorCode(partition.error_code))
        for topic in group.topics
        for partition in topic.partitions
    ]


def test_a_transaction_without_its_marker_is_pending_after_a_start(broker: RunningBroker) -> None:
    with RawClient(broker) as client:
        assert commit(client, "g", {"t": {0: 1}}) is ErrorCode.NONE
    write_transactional(broker, 7, 5)
    broker.restart()
    with RawClient(broker) as client:
        assert committed(client, "g") == {"t": {0: 1}}
        assert stability(client) == [(-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)]


@pytest.mark.parametrize(("is_commit", "offset"), [(True, 5), (False, 1)])
def test_a_marker_ends_a_transaction_found_or_appended(
    broker: RunningBroker, is_commit: bool, offset: int
) -> None:
    with RawClient(broker) as client:
        assert commit(client, "g", {"t": {0: 1}}) is ErrorCode.NONE
    write_transactional(broker, 7, 5)
    broker.restart()
    with RawClient(broker) as client:
        assert committed(client, "g") == {"t": {0: 1}}
        write(broker, "g", marker(7, commit=is_commit))
        index = partition_for("g", 4)
        groups = broker.broker.groups
        broker._call(lambda: groups.on_transaction_marker(index, 7, 0, is_commit))
        assert stability(client) == [(offset, ErrorCode.NONE)]
    broker.restart()
    with RawClient(broker) as client:
        assert committed(client, "g") == {"t": {0: offset}}
        assert stability(client) == [(offset, ErrorCode.NONE)]


def test_a_marker_that_comes_while_a_shard_loads_counts_once(
    broker: RunningBroker, held_reader: threading.Event
) -> None:
    write_transactional(broker, 7, 5)
    held_reader.clear()
    broker.restart()
    groups = broker.broker.groups
    write(broker, "g", marker(7, commit=True))
    broker._call(lambda: groups.on_transaction_marker(partition_for("g", 4), 7, 0, True))
    held_reader.set()
    with RawClient(broker) as client:
        assert committed(client, "g") == {"t": {0: 5}}


def test_offsets_of_topics_that_went_meanwhile_are_removed(
    broker: RunningBroker, held_reader: threading.Event
) -> None:
    with RawClient(broker) as client:
        create_topic(client, "u")
        assert commit(client, "g", {"t": {0: 5}, "u": {0: 6}}) is ErrorCode.NONE
    held_reader.clear()
    broker.restart()
    with RawClient(broker) as client:
        delete_topic(client, "u")
        held_reader.set()
        until(lambda: committed(client, "g") == {"t": {0: 5}})
