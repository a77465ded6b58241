"""Control records: markers as Kafka writes them, and the types of the metadata log."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.wire import codec
from klamm.wire.errors import WireError
from klamm.wire.messages.stored.control import (
    ControlRecordTypeSchema,
    EndTxnMarker,
    LeaderChangeMessage,
)
from klamm.wire.records.batch import (
    NO_SEQUENCE,
    crc_is_valid,
    read_batch_header,
)
from klamm.wire.records.codecs import Codec
from klamm.wire.records.control import (
    ControlRecordType,
    EndTransactionMarker,
    build_control_batch,
    build_end_transaction_marker,
    encode_control_key,
    parse_control_type,
    parse_end_transaction_marker,
    read_end_transaction_marker,
)
from klamm.wire.records.record import Record, build_batch, iter_records
from klamm.wire.tests.batches import raw_batch

COMMIT_KEY = b"\x00\x00\x00\x01"
ABORT_KEY = b"\x00\x00\x00\x00"
MARKER_VALUE = b"\x00\x00\x00\x00\x00\x2a"


def record_of(key: bytes | None, value: bytes | None) -> Record:
    return Record(0, 0, key, value, (), NO_SEQUENCE)


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_is_a_control_batch_of_one_record(commit: bool) -> None:
    batch = build_end_transaction_marker(
        producer_id=9,
        producer_epoch=3,
        commit=commit,
        coordinator_epoch=42,
        timestamp=1000,
        base_offset=7,
        partition_leader_epoch=2,
    )
    header = read_batch_header(batch)
    assert crc_is_valid(batch, header)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch) == (9, 3)
    assert header.base_sequence == header.last_sequence == NO_SEQUENCE
    assert (header.base_offset, header.last_offset) == (7, 7)
    (record,) = iter_records(batch)
    assert record.key == (COMMIT_KEY if commit else ABORT_KEY)
    assert record.value == MARKER_VALUE
    marker = read_end_transaction_marker(batch)
    assert marker is not None
    assert marker.is_commit == commit
    assert marker.coordinator_epoch == 42


def test_the_bodies_are_the_declared_messages_behind_a_version() -> None:
    declared_key = codec.encode(ControlRecordTypeSchema(type=1), 0)
    assert encode_control_key(ControlRecordType.COMMIT) == b"\x00\x00" + declared_key
    assert b"\x00\x00" + codec.encode(EndTxnMarker(coordinator_epoch=42), 0) == MARKER_VALUE


def test_a_control_batch_of_the_metadata_log_belongs_to_no_producer() -> None:
    body = codec.encode(LeaderChangeMessage(leader_id=1), 0)
    batch = build_control_batch(ControlRecordType.LEADER_CHANGE, body, timestamp=5)
    header = read_batch_header(batch)
    assert header.is_control
    assert not header.is_transactional
    assert not header.has_producer_id
    (record,) = iter_records(batch)
    assert parse_control_type(record.key) == ControlRecordType.LEADER_CHANGE
    assert record.value == body


@pytest.mark.parametrize("number", [7, 100, -2, 32767])
def test_a_type_from_the_future_is_unknown(number: int) -> None:
    key = b"\x00\x00" + number.to_bytes(2, "big", signed=True)
    assert parse_control_type(key) == ControlRecordType.UNKNOWN


def test_a_newer_version_may_have_more_behind_it() -> None:
    record = record_of(b"\x00\x01\x00\x01extra", b"\x00\x01\x00\x00\x00\x07extra")
    expected = EndTransactionMarker(ControlRecordType.COMMIT, 7)
    assert parse_end_transaction_marker(record) == expected


@pytest.mark.parametrize(
    "record",
    [
        record_of(None, MARKER_VALUE),
        record_of(b"", MARKER_VALUE),
        record_of(b"\x00\x00\x00", MARKER_VALUE),
        record_of(b"\xff\xff\x00\x01", MARKER_VALUE),
        record_of(b"\x00\x00\x00\x02", MARKER_VALUE),
        record_of(b"\x00\x00\x00\x63", MARKER_VALUE),
        record_of(COMMIT_KEY, None),
        record_of(COMMIT_KEY, MARKER_VALUE[:5]),
        record_of(COMMIT_KEY, b"\xff\xff\x00\x00\x00\x01"),
    ],
)
def test_what_is_not_a_marker_is_refused(record: Record) -> None:
    with pytest.raises(WireError):
        parse_end_transaction_marker(record)


@given(st.none() | st.binary(max_size=8), st.none() | st.binary(max_size=8))
def test_any_bytes_are_a_marker_or_refused(key: bytes | None, value: bytes | None) -> None:
    try:
        marker = parse_end_transaction_marker(record_of(key, value))
    except WireError:
        return
    assert marker.control_type in (ControlRecordType.ABORT, ControlRecordType.COMMIT)


def test_a_batch_that_compaction_emptied_has_no_marker() -> None:
    assert read_end_transaction_marker(raw_batch(b"", 0)) is None


def test_a_compressed_marker_is_read_within_a_small_budget() -> None:
    small = build_batch([(COMMIT_KEY, MARKER_VALUE, (), 0)], codec=Codec.GZIP, control=True)
    assert read_end_transaction_marker(small) == EndTransactionMarker(ControlRecordType.COMMIT, 42)
    large = build_batch([(COMMIT_KEY, bytes(1 << 20), (), 0)], codec=Codec.GZIP, control=True)
    with pytest.raises(WireError, match="expands to more than 65536 bytes"):
        read_end_transaction_marker(large)
