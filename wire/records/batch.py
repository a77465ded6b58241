"""The 61-byte header of a record batch (magic 2), read and rewritten without opening the records.

    offset  size  field                      offset  size  field
         0     8  base offset                    27     8  base timestamp
         8     4  batch length (from 12 on)      35     8  max timestamp
        12     4  partition leader epoch         43     8  producer id
        16     1  magic = 2                      51     2  producer epoch
        17     4  CRC-32C of 21 to the end       53     4  base sequence
        21     2  attributes                     57     4  record count
        23     4  last offset delta              61        records

The first sixteen bytes lie outside the checksum, so that a leader can assign the offset and its
epoch without reading the rest. Attributes: bits 0-2 codec, 3 timestamp type (1 = log append time),
4 transactional, 5 control, 6 the base timestamp is the delete horizon (KIP-534).
"""

import struct
from typing import NamedTuple

from klamm.wire.errors import WireError
from klamm.wire.records.crc import crc32c

BATCH_HEADER_SIZE = 61
# Offset and length come first in every format Kafka ever had; the length counts what follows them.
LOG_OVERHEAD = 12
MAGIC_OFFSET = 16
ATTRIBUTES_OFFSET = 21
MAX_TIMESTAMP_OFFSET = 35
CURRENT_MAGIC = 2

CODEC_MASK = 0x07
TIMESTAMP_TYPE_MASK = 0x08
TRANSACTIONAL_MASK = 0x10
CONTROL_MASK = 0x20
DELETE_HORIZON_MASK = 0x40
_KNOWN_ATTRIBUTES = 0x7F

CREATE_TIME = 0
LOG_APPEND_TIME = 1

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_PARTITION_LEADER_EPOCH = -1

INT32_MAX = 2**31 - 1

_HEADER = struct.Struct(">qiibIhiqqqhii")
_PREFIX = struct.Struct(">qii")
_MAGIC_AND_CRC = struct.Struct(">bI")
_CHECKED_PART = struct.Struct(">hiqqqhii")
_BATCH_LENGTH_MIN = BATCH_HEADER_SIZE - LOG_OVERHEAD
assert _HEADER.size == BATCH_HEADER_SIZE
assert _PREFIX.size == MAGIC_OFFSET
assert ATTRIBUTES_OFFSET + _CHECKED_PART.size == BATCH_HEADER_SIZE

Buffer = bytes | bytearray | memoryview


def increment_sequence(sequence: int, increment: int) -> int:
    """Return the sequence number that many records later; after int32's maximum comes 0."""
    return (sequence + increment) & INT32_MAX


def decrement_sequence(sequence: int, decrement: int) -> int:
    """Return the sequence number that many records earlier; before 0 comes int32's maximum."""
    return (sequence - decrement) & INT32_MAX


class RecordBatchHeader(NamedTuple):
    """What a batch says about itself, in the order of its bytes."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_in_bytes(self) -> int:
        """The whole batch, header included."""
        return LOG_OVERHEAD + self.batch_length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def codec(self) -> int:
        """The codec's number; 5 to 7 name no codec."""
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> int:
        return LOG_APPEND_TIME if self.attributes & TIMESTAMP_TYPE_MASK else CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_MASK)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_MASK)

    @property
    def has_delete_horizon(self) -> bool:
        return bool(self.attributes & DELETE_HORIZON_MASK)

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID


def read_batch_header(data: Buffer, offset: int = 0) -> RecordBatchHeader:
    """Read the header that starts at offset.

    The records behind it need not be there: recovery and index lookups read headers alone.

    Raises:
        WireError: fewer than 61 bytes, a magic other than 2, or a length that cannot hold a header.
    """
    if offset < 0 or len(data) - offset < BATCH_HEADER_SIZE:
        raise WireError(
            f"a batch header takes {BATCH_HEADER_SIZE} bytes, {len(data) - offset} left"
        )
    # tuple.__new__ spares the keyword handling of the named tuple's constructor: this is called
    # for every batch that is produced, and for every batch that recovery walks over.
    header = tuple.__new__(RecordBatchHeader, _HEADER.unpack_from(data, offset))
    if header[3] != CURRENT_MAGIC:
        raise WireError(f"magic {header[3]} is not {CURRENT_MAGIC}")
    if header[1] < _BATCH_LENGTH_MIN:
        raise WireError(f"batch length {header[1]} is smaller than a batch header")
    return header


def batch_crc(data: Buffer, offset: int, size: int) -> int:
    """Return the checksum over the batch of that size at offset, without copying it."""
    assert size >= BATCH_HEADER_SIZE
    return crc32c(memoryview(data)[offset + ATTRIBUTES_OFFSET : offset + size])


def crc_is_valid(data: Buffer, header: RecordBatchHeader, offset: int = 0) -> bool:
    """Say whether the whole batch is there and its stored checksum is that of its bytes."""
    size = LOG_OVERHEAD + header.batch_length
    if len(data) - offset < size:
        return False
    return crc32c(memoryview(data)[offset + ATTRIBUTES_OFFSET : offset + size]) == header.crc


def with_offset_and_epoch(
    header: RecordBatchHeader, base_offset: int, partition_leader_epoch: int
) -> bytes:
    """Return the first sixteen bytes with a new offset and epoch; they are not checksummed."""
    return _PREFIX.pack(base_offset, header.batch_length, partition_leader_epoch)


def encode_batch_header(header: RecordBatchHeader, records: Buffer) -> bytes:
    """Return the 61 bytes of header, with the checksum they need before those records.

    The header's own crc and batch_length are not used: both follow from the records.
    """
    checked = _CHECKED_PART.pack(*header[5:])
    crc = crc32c(records, crc32c(checked))
    prefix = _PREFIX.pack(
        header.base_offset, _BATCH_LENGTH_MIN + len(records), header.partition_leader_epoch
    )
    return prefix + _MAGIC_AND_CRC.pack(CURRENT_MAGIC, crc) + checked


def with_log_append_time(
    data: Buffer,
    header: RecordBatchHeader,
    append_time_ms: int,
    *,
    base_offset: int,
    partition_leader_epoch: int,
    offset: int = 0,
) -> bytes:
    """Return a new 61-byte header that stamps the batch at offset with the broker's clock.

    The timestamp type and the max timestamp lie under the checksum, so it is computed anew; the
    records themselves stay where they are. Attribute bits that have no meaning are dropped.
    """
    return with_max_timestamp(
        data,
        header,
        LOG_APPEND_TIME,
        append_time_ms,
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        offset=offset,
    )


def with_max_timestamp(
    data: Buffer,
    header: RecordBatchHeader,
    timestamp_type: int,
    max_timestamp: int,
    *,
    base_offset: int,
    partition_leader_epoch: int,
    offset: int = 0,
) -> bytes:
    """Return a new 61-byte header for the batch at offset, with that timestamp type and maximum."""
    assert timestamp_type in (CREATE_TIME, LOG_APPEND_TIME)
    attributes = header.attributes & _KNOWN_ATTRIBUTES & ~TIMESTAMP_TYPE_MASK
    if timestamp_type == LOG_APPEND_TIME:
        attributes |= TIMESTAMP_TYPE_MASK
    records = memoryview(data)[offset + BATCH_HEADER_SIZE : offset + header.size_in_bytes]
    changed = header._replace(
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        attributes=attributes,
        max_timestamp=max_timestamp,
    )
    return encode_batch_header(changed, records)
