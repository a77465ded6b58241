"""The header of a batch: its 61 bytes, its checksum, and what a leader changes in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.wire.errors import WireError
from klamm.wire.records.batch import (
    BATCH_HEADER_SIZE,
    CREATE_TIME,
    INT32_MAX,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    NO_SEQUENCE,
    RecordBatchHeader,
    batch_crc,
    crc_is_valid,
    decrement_sequence,
    encode_batch_header,
    increment_sequence,
    read_batch_header,
    with_log_append_time,
    with_max_timestamp,
    with_offset_and_epoch,
)
from klamm.wire.records.crc import crc32c
from klamm.wire.records.record import iter_records
from klamm.wire.tests.batches import by_codec, sample_batch

KNOWN_HEADER = bytes.fromhex(
    "0000000000000007"  # base offset
    "00000033"  # batch length: 49 of header, 2 of records
    "00000005"  # partition leader epoch
    "02"  # magic
    "1c4e9a80"  # crc-32c
    "0013"  # attributes: lz4, transactional
    "00000002"  # last offset delta
    "0000018bcfe56800"  # base timestamp
    "0000018bcfe569f4"  # max timestamp
    "00000000000003e8"  # producer id
    "0004"  # producer epoch
    "0000000a"  # base sequence
    "00000003"  # record count
)
KNOWN = RecordBatchHeader(
    base_offset=7,
    batch_length=51,
    partition_leader_epoch=5,
    magic=2,
    crc=0x1C4E9A80,
    attributes=0x13,
    last_offset_delta=2,
    base_timestamp=1_700_000_000_000,
    max_timestamp=1_700_000_000_500,
    producer_id=1000,
    producer_epoch=4,
    base_sequence=10,
    record_count=3,
)


def test_a_header_is_read_field_by_field() -> None:
    assert read_batch_header(KNOWN_HEADER) == KNOWN
    assert read_batch_header(memoryview(b"before" + KNOWN_HEADER + b"behind"), 6) == KNOWN
    assert KNOWN.size_in_bytes == 63
    assert KNOWN.last_offset == 9
    assert KNOWN.next_offset == 10
    assert KNOWN.last_sequence == 12
    assert KNOWN.codec == 3
    assert KNOWN.timestamp_type == CREATE_TIME
    assert KNOWN.is_transactional
    assert not KNOWN.is_control
    assert not KNOWN.has_delete_horizon
    assert KNOWN.has_producer_id


def test_a_header_is_written_with_the_length_and_checksum_of_its_records() -> None:
    mistaken = KNOWN._replace(batch_length=0, crc=0)
    encoded = encode_batch_header(mistaken, b"ab")
    expected_crc = crc32c(KNOWN_HEADER[21:] + b"ab")
    assert encoded[:17] == KNOWN_HEADER[:17]
    assert encoded[17:21] == expected_crc.to_bytes(4, "big")
    assert encoded[21:] == KNOWN_HEADER[21:]


@pytest.mark.parametrize(
    ("attributes", "name"),
    [
        (0x08, "timestamp_type"),
        (0x10, "is_transactional"),
        (0x20, "is_control"),
        (0x40, "has_delete_horizon"),
    ],
)
def test_each_attribute_is_one_bit(attributes: int, name: str) -> None:
    names = ("timestamp_type", "is_transactional", "is_control", "has_delete_horizon")
    header = KNOWN._replace(attributes=attributes)
    assert [n for n in names if getattr(header, n)] == [name]
    assert header.codec == 0


def test_a_batch_without_producer_has_no_sequence() -> None:
    header = KNOWN._replace(producer_id=-1, base_sequence=-1)
    assert not header.has_producer_id
    assert header.last_sequence == NO_SEQUENCE


@pytest.mark.parametrize("size", range(BATCH_HEADER_SIZE))
def test_a_header_that_ends_early_is_refused(size: int) -> None:
    with pytest.raises(WireError, match="a batch header takes 61 bytes"):
        read_batch_header(KNOWN_HEADER[:size])


def test_a_header_outside_the_data_is_refused() -> None:
    with pytest.raises(WireError):
        read_batch_header(KNOWN_HEADER, 1)
    with pytest.raises(WireError):
        read_batch_header(KNOWN_HEADER, -1)
    with pytest.raises(WireError):
        read_batch_header(KNOWN_HEADER, 1000)


@pytest.mark.parametrize("magic", [0, 1, 3, 0x7F, 0xFF])
def test_another_magic_is_refused(magic: int) -> None:
    damaged = KNOWN_HEADER[:16] + bytes([magic]) + KNOWN_HEADER[17:]
    with pytest.raises(WireError, match="magic"):
        read_batch_header(damaged)


@pytest.mark.parametrize("length", [48, 0, -1, -(2**31)])
def test_a_length_that_cannot_hold_a_header_is_refused(length: int) -> None:
    damaged = KNOWN_HEADER[:8] + length.to_bytes(4, "big", signed=True) + KNOWN_HEADER[12:]
    with pytest.raises(WireError, match="batch length"):
        read_batch_header(damaged)


def test_the_checksum_is_crc_32c() -> None:
    # The check value of CRC-32C (Castagnoli), and that of 32 zeros from RFC 3720.
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(memoryview(b"56789"), crc32c(b"1234")) == 0xE3069283


@by_codec
def test_the_checksum_covers_everything_behind_it_and_nothing_before(codec: int) -> None:
    batch = sample_batch(codec)
    header = read_batch_header(batch)
    assert crc_is_valid(batch, header)
    assert crc_is_valid(b"before" + batch + b"behind", header, 6)
    assert batch_crc(batch, 0, len(batch)) == header.crc
    for position in (*range(16), *range(21, len(batch))):
        damaged = bytearray(batch)
        damaged[position] ^= 1
        assert crc_is_valid(damaged, header) == (position < 16)


def test_a_checksum_of_a_batch_that_is_not_all_there_is_not_valid() -> None:
    batch = sample_batch()
    header = read_batch_header(batch)
    assert not crc_is_valid(batch[:-1], header)
    assert not crc_is_valid(batch, header, 1)


def test_offset_and_epoch_are_assigned_outside_the_checksum() -> None:
    batch = sample_batch()
    header = read_batch_header(batch)
    changed = with_offset_and_epoch(header, 12345, 7) + batch[16:]
    assigned = read_batch_header(changed)
    assert assigned == header._replace(base_offset=12345, partition_leader_epoch=7)
    assert crc_is_valid(changed, assigned)
    assert [record.offset for record in iter_records(changed)] == [12345, 12346, 12347]


@by_codec
def test_log_append_time_is_stamped_under_a_new_checksum(codec: int) -> None:
    batch = b"before" + sample_batch(codec)
    header = read_batch_header(batch, 6)
    stamped = with_log_append_time(
        batch,
        header,
        1_800_000_000_000,
        base_offset=5,
        partition_leader_epoch=6,
        offset=6,
    )
    changed = stamped + batch[6 + BATCH_HEADER_SIZE :]
    result = read_batch_header(changed)
    assert crc_is_valid(changed, result)
    assert result.timestamp_type == LOG_APPEND_TIME
    assert result.codec == codec
    assert (result.base_offset, result.partition_leader_epoch) == (5, 6)
    assert result.base_timestamp == header.base_timestamp
    assert {record.timestamp for record in iter_records(changed)} == {1_800_000_000_000}


def test_a_new_maximum_leaves_create_time_and_drops_unknown_attributes() -> None:
    batch = sample_batch()
    header = read_batch_header(batch)._replace(attributes=0x7F98)
    result = read_batch_header(
        with_max_timestamp(batch, header, CREATE_TIME, 42, base_offset=1, partition_leader_epoch=2)
    )
    assert result.attributes == 0x10
    assert result.max_timestamp == 42


@given(st.integers(0, INT32_MAX), st.integers(0, 2**20))
def test_sequences_wrap_after_the_largest_int32(sequence: int, step: int) -> None:
    later = increment_sequence(sequence, step)
    assert 0 <= later <= INT32_MAX
    assert later == (sequence + step if sequence + step <= INT32_MAX else sequence + step - 2**31)
    assert decrement_sequence(later, step) == sequence


def test_the_sequence_after_the_largest_is_zero() -> None:
    assert increment_sequence(INT32_MAX, 1) == 0
    assert decrement_sequence(0, 1) == INT32_MAX


def test_the_length_counts_what_follows_it() -> None:
    batch = sample_batch()
    assert read_batch_header(batch).batch_length == len(batch) - LOG_OVERHEAD
