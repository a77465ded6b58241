"""Records inside a batch: read one at a time, checked as Kafka checks them, and written.

    record = length varint | attributes int8 | timestamp delta varlong | offset delta varint
           | key length varint (negative = null) | key | value length varint | value
           | header count varint | (key length varint | key | value length varint | value)*

Nothing on the way of a produce or fetch request opens records; what does is compaction, the search
for a timestamp inside a batch, key checks on compacted topics, recompression, and the readers of
klamm's own topics. A record is decoded when the iterator reaches it, and only what it holds is
copied. Whatever the bytes, the outcome is records or a WireError.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from klamm.wire.errors import WireError
from klamm.wire.records.batch import (
    BATCH_HEADER_SIZE,
    CONTROL_MASK,
    CREATE_TIME,
    CURRENT_MAGIC,
    LOG_APPEND_TIME,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    RecordBatchHeader,
    encode_batch_header,
    increment_sequence,
    read_batch_header,
)
from klamm.wire.records.codecs import Codec, compress, decompress
from klamm.wire.records.varint import encode_varint, read_varint, read_varlong

Buffer = bytes | bytearray | memoryview
Headers = tuple[tuple[str, bytes | None], ...]
# What build_batch takes: key, value, headers, timestamp in milliseconds.
RecordToBuild = tuple[bytes | None, bytes | None, Sequence[tuple[str, bytes | None]], int]

# Kafka's limit on a whole request (socket.request.max.bytes): a batch that needs more than that
# when opened was not meant to be opened.
DECOMPRESSED_BYTES_MAX = 100 * 1024 * 1024

_NULL_LENGTH = encode_varint(-1)
_NO_ATTRIBUTES = b"\x00"
_NO_HEADERS = encode_varint(0)


class Record(NamedTuple):
    """One record with its absolute offset and timestamp."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    sequence: int


def iter_records(
    batch: Buffer, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> Iterator[Record]:
    """Yield the records of the batch that starts at the first byte; later bytes are not read.

    Raises:
        WireError: the batch is cut short, or a record is not as long as it says, has a negative
            header count or a header without a key, or bytes are left behind the last record.
        DecompressionTooLarge: the records expand beyond the budget.
    """
    header = read_batch_header(batch)
    payload = open_payload(batch, header, decompressed_bytes_max=decompressed_bytes_max)
    count = _checked_count(header)
    append_time = header.max_timestamp if header.timestamp_type == LOG_APPEND_TIME else None
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    base_sequence = header.base_sequence
    position = 0
    for index in range(count):
        offset_delta, timestamp_delta, key, value, headers, position = _read_record(
            payload, position
        )
        if index == count - 1:
            _require_end(payload, position)
        yield Record(
            base_offset + offset_delta,
            base_timestamp + timestamp_delta if append_time is None else append_time,
            key,
            value,
            headers,
            increment_sequence(base_sequence, offset_delta) if base_sequence >= 0 else NO_SEQUENCE,
        )


def open_payload(
    batch: Buffer,
    header: RecordBatchHeader,
    *,
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> bytes | memoryview:
    """Return the record bytes of a batch: a view where it is uncompressed, else decompressed."""
    size = header.size_in_bytes
    if len(batch) < size:
        raise WireError(f"a batch of {size} bytes, {len(batch)} are there")
    blob = memoryview(batch)[BATCH_HEADER_SIZE:size]
    if header.codec == Codec.NONE:
        return blob
    if header.record_count == 0:
        return b""
    return decompress(header.codec, blob, decompressed_bytes_max)


def _checked_count(header: RecordBatchHeader) -> int:
    if header.record_count < 0:
        raise WireError(f"a batch of {header.record_count} records")
    return header.record_count


def _require_end(payload: Buffer, position: int) -> None:
    if position != len(payload):
        raise WireError(f"{len(payload) - position} bytes behind the last record")


def _read_start(data: Buffer, position: int) -> tuple[int, int, int, int, int]:
    """Read up to the key; return the record's end, both deltas, the key length and its position.

    Almost all of these varints take one byte, so that case is written out: it halves the time.
    """
    byte = data[position]
    position += 1
    if byte < 0x80:
        length = (byte >> 1) ^ -(byte & 1)
    else:
        length, position = read_varint(data, position - 1)
    end = position + length
    if end > len(data):
        raise WireError(f"a record of {length} bytes, {len(data) - position} left")
    position += 1  # The attributes carry nothing in magic 2.
    byte = data[position]
    position += 1
    if byte < 0x80:
        timestamp_delta = (byte >> 1) ^ -(byte & 1)
    else:
        timestamp_delta, position = read_varlong(data, position - 1)
    byte = data[position]
    position += 1
    if byte < 0x80:
        offset_delta = (byte >> 1) ^ -(byte & 1)
    else:
        offset_delta, position = read_varint(data, position - 1)
    byte = data[position]
    position += 1
    if byte < 0x80:
        return end, timestamp_delta, offset_delta, (byte >> 1) ^ -(byte & 1), position
    key_length, position = read_varint(data, position - 1)
    return end, timestamp_delta, offset_delta, key_length, position


def _read_record(
    data: Buffer, position: int
) -> tuple[int, int, bytes | None, bytes | None, Headers, int]:
    try:
        end, timestamp_delta, offset_delta, length, position = _read_start(data, position)
        key = None
        if length >= 0:
            key = bytes(data[position : position + length])
            position += length
        byte = data[position]
        position += 1
        if byte < 0x80:
            length = (byte >> 1) ^ -(byte & 1)
        else:
            length, position = read_varint(data, position - 1)
        value = None
        if length >= 0:
            value = bytes(data[position : position + length])
            position += length
        count = data[position]
        if count == 0:
            position += 1
            headers: Headers = ()
        else:
            headers, position = _read_headers(data, position, end)
    except IndexError:
        raise WireError("the data ends inside a record") from None
    if position != end:
        raise WireError(f"a record ends {position - end} bytes off its declared length")
    return offset_delta, timestamp_delta, key, value, headers, position


def _read_headers(data: Buffer, position: int, end: int) -> tuple[Headers, int]:
    count, position = read_varint(data, position)
    if count < 0 or count > end - position:
        raise WireError(f"{count} headers in {end - position} bytes")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        length, position = read_varint(data, position)
        if length < 0:
            raise WireError(f"a header key of {length} bytes")
        # Kafka never decodes header keys on the broker; whatever bytes they hold survive here.
        key = str(data[position : position + length], "utf-8", "surrogateescape")
        position += length
        length, position = read_varint(data, position)
        value = None
        if length >= 0:
            value = bytes(data[position : position + length])
            position += length
        if position > end:
            raise WireError("a header reaches beyond its record")
        headers.append((key, value))
    return tuple(headers), position


def encode_record(
    offset_delta: int,
    timestamp_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]] = (),
) -> bytes:
    """Return one record as it stands in an uncompressed batch."""
    body = b"".join(
        (
            _NO_ATTRIBUTES,
            encode_varint(timestamp_delta),
            encode_varint(offset_delta),
            _NULL_LENGTH if key is None else encode_varint(len(key)),
            key or b"",
            _NULL_LENGTH if value is None else encode_varint(len(value)),
            value or b"",
            _encode_headers(headers) if headers else _NO_HEADERS,
        )
    )
    return encode_varint(len(body)) + body


def _encode_headers(headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    parts = [encode_varint(len(headers))]
    for key, value in headers:
        encoded = key.encode("utf-8", "surrogateescape")
        parts += (encode_varint(len(encoded)), encoded)
        parts += (_NULL_LENGTH,) if value is None else (encode_varint(len(value)), value)
    return b"".join(parts)


def build_batch(
    records: Iterable[RecordToBuild],
    *,
    base_offset: int = 0,
    codec: int = Codec.NONE,
    level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    timestamp_type: int = CREATE_TIME,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> bytes:
    """Return a batch of at least one record with consecutive offsets.

    The base timestamp is that of the first record, the max timestamp the largest. With
    timestamp_type LOG_APPEND_TIME every record reads back with the max timestamp.
    """
    encoded: list[bytes] = []
    base_timestamp = max_timestamp = 0
    for index, (key, value, headers, timestamp) in enumerate(records):
        if index == 0:
            base_timestamp = max_timestamp = timestamp
        elif timestamp > max_timestamp:
            max_timestamp = timestamp
        encoded.append(encode_record(index, timestamp - base_timestamp, key, value, headers))
    attributes = 0
    attributes |= TRANSACTIONAL_MASK if transactional else 0
    attributes |= CONTROL_MASK if control else 0
    attributes |= TIMESTAMP_TYPE_MASK if timestamp_type == LOG_APPEND_TIME else 0
    return join_records(
        encoded,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        base_offset=base_offset,
        codec=codec,
        level=level,
        attributes=attributes,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        partition_leader_epoch=partition_leader_epoch,
    )


def join_records(
    encoded: Sequence[bytes],
    *,
    base_timestamp: int,
    max_timestamp: int,
    base_offset: int = 0,
    codec: int = Codec.NONE,
    level: int | None = None,
    attributes: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> bytes:
    """Return a batch of records that `encode_record` has made, with indexes from 0 on."""
    assert encoded, "a batch holds at least one record"
    payload = b"".join(encoded)
    if codec != Codec.NONE:
        payload = compress(codec, payload, level)
    header = RecordBatchHeader(
        base_offset=base_offset,
        batch_length=0,
        partition_leader_epoch=partition_leader_epoch,
        magic=CURRENT_MAGIC,
        crc=0,
        attributes=attributes | int(codec),
        last_offset_delta=len(encoded) - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(encoded),
    )
    return encode_batch_header(header, payload) + payload
