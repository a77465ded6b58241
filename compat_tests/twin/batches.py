"""Record batches (magic 2) whose every field a test can set, right or wrong.

`batch()` without arguments is a valid batch; an argument replaces one field after the rest has
been laid out, and the CRC is made to fit unless the test sets it, so exactly one thing is wrong.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import cramjam
import crc32c
import lz4.frame
import zstandard

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_FIELDS = (
    *("base_offset", "batch_length", "partition_leader_epoch", "magic", "crc", "attributes"),
    *("last_offset_delta", "base_timestamp", "max_timestamp", "producer_id", "producer_epoch"),
    *("base_sequence", "record_count"),
)
_CRC_START = 21

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
CODEC_MASK = 0x07
CODEC_NAMES = {0: "plain", GZIP: "gzip", SNAPPY: "snappy", LZ4: "lz4", ZSTD: "zstd"}
LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 1 << 3, 1 << 4, 1 << 5, 1 << 6

BASE_TIMESTAMP_MS = 1_700_000_000_000


def _snappy(data: bytes) -> bytes:
    """Snappy in the xerial framing that Java writes."""
    block = bytes(cramjam.snappy.compress_raw(data))
    return b"\x82SNAPPY\x00" + struct.pack(">iii", 1, 1, len(block)) + block


COMPRESSORS: Mapping[int, Callable[[bytes], bytes]] = {
    GZIP: lambda data: gzip.compress(data, mtime=0),
    SNAPPY: _snappy,
    LZ4: lambda data: bytes(lz4.frame.compress(data, block_linked=False)),
    ZSTD: lambda data: bytes(zstandard.compress(data)),
}

_XERIAL_HEADER_SIZE = 16


def _unsnappy(data: bytes) -> bytes:
    """Snappy in the xerial framing, of any number of blocks."""
    out = b""
    position = _XERIAL_HEADER_SIZE
    while position < len(data):
        (size,) = struct.unpack_from(">i", data, position)
        block = data[position + 4 : position + 4 + size]
        out += bytes(cramjam.snappy.decompress_raw(block))
        position += 4 + size
    return out


DECOMPRESSORS: Mapping[int, Callable[[bytes], bytes]] = {
    GZIP: gzip.decompress,
    SNAPPY: _unsnappy,
    LZ4: lambda data: bytes(lz4.frame.decompress(data)),
    ZSTD: lambda data: bytes(zstandard.ZstdDecompressor().decompressobj().decompress(data)),
}


def decompress(codec: int, data: bytes) -> bytes:
    return DECOMPRESSORS[codec](data)


@dataclass(frozen=True)
class R:
    """One record to write; the deltas follow its place in the batch unless they are given."""

    value: bytes | None = b"value"
    key: bytes | None = None
    headers: Sequence[tuple[bytes | None, bytes | None]] = ()
    timestamp_delta: int = 0
    offset_delta: int | None = None
    attributes: int = 0


def varint(number: int) -> bytes:
    """Zigzag, then seven bits per byte, lowest first."""
    rest = (number << 1) ^ (number >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def encode_record(record: R, index: int) -> bytes:
    delta = index if record.offset_delta is None else record.offset_delta
    body = struct.pack(">b", record.attributes) + varint(record.timestamp_delta) + varint(delta)
    body += _sized(record.key) + _sized(record.value) + varint(len(record.headers))
    body += b"".join(_sized(key) + _sized(value) for key, value in record.headers)
    return varint(len(body)) + body


def batch(
    *records: R,
    codec: int = 0,
    payload: bytes | None = None,
    size_delta: int = 0,
    **overrides: int,
) -> bytes:
    """One batch; without records it has one.

    Args:
        payload: bytes in the place of the encoded (and compressed) records.
        size_delta: added to the true batch length.
        overrides: header fields, by the names of `HEADER_FIELDS`.
    """
    held = records or (R(),)
    encoded = b"".join(encode_record(record, index) for index, record in enumerate(held))
    if codec:
        encoded = COMPRESSORS[codec](encoded)
    if payload is not None:
        encoded = payload
    fields = {
        "base_offset": 0,
        "batch_length": HEADER.size - 12 + len(encoded) + size_delta,
        "partition_leader_epoch": -1,
        "magic": 2,
        "crc": 0,
        "attributes": codec,
        "last_offset_delta": len(held) - 1,
        "base_timestamp": BASE_TIMESTAMP_MS,
        "max_timestamp": 0,
        "producer_id": -1,
        "producer_epoch": -1,
        "base_sequence": -1,
        "record_count": len(held),
    }
    assert overrides.keys() <= fields.keys(), f"unknown header field in {sorted(overrides)}"
    fields.update(overrides)
    if "max_timestamp" not in overrides:
        deltas = [record.timestamp_delta for record in held]
        fields["max_timestamp"] = fields["base_timestamp"] + max(deltas)
    raw = HEADER.pack(*(fields[name] for name in HEADER_FIELDS)) + encoded
    if "crc" not in overrides:
        raw = raw[:17] + struct.pack(">I", checksum(raw)) + raw[21:]
    return raw


def checksum(raw: bytes) -> int:
    """The CRC-32C that belongs into the header of a batch."""
    return int(crc32c.crc32c(raw[_CRC_START:]))


def read_headers(records: bytes) -> list[dict[str, int]]:
    """The headers of all whole batches, in order."""
    found = []
    position = 0
    while position + HEADER.size <= len(records):
        header = dict(zip(HEADER_FIELDS, HEADER.unpack_from(records, position), strict=True))
        header["position"] = position
        found.append(header)
        position += 12 + header["batch_length"]
    return found


def message_set(magic: int, value: bytes = b"value", key: bytes | None = None) -> bytes:
    """One message in the formats before Kafka 0.11 (magic 0 and 1), with their CRC-32."""
    import zlib

    body = struct.pack(">bb", magic, 0)
    if magic == 1:
        body += struct.pack(">q", BASE_TIMESTAMP_MS)
    for field in (key, value):
        body += struct.pack(">i", -1 if field is None else len(field)) + (field or b"")
    message = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", 0, len(message)) + message
