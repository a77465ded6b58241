"""Valid batches with one thing changed: a header field, or something inside the records.

Each mutation has a name for the report. Checksums fit what was changed, so that exactly one thing
is wrong: a broker that looks only at the checksum accepts all of them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping

from compat_tests.twin.batches import (
    BASE_TIMESTAMP_MS,
    COMPRESSORS,
    GZIP,
    LZ4,
    SNAPPY,
    ZSTD,
    R,
    batch,
    encode_record,
    varint,
)
from compat_tests.twin.codec import Plain

INT16 = (-(1 << 15), (1 << 15) - 1)
INT32 = (-(1 << 31), (1 << 31) - 1)
INT64 = (-(1 << 63), (1 << 63) - 1)

RECORDS = (R(b"one", b"a"), R(b"two", b"b", timestamp_delta=5), R(b"three", b"c"))

# What to put into each header field; `batch_length` and `crc` are changed relative to the truth.
HEADER_VALUES: Mapping[str, tuple[int, ...]] = {
    "base_offset": (-1, 1, 7, *INT64),
    "partition_leader_epoch": (0, 1, -2, *INT32),
    "magic": (-1, 0, 1, 3, 127, -128),
    "attributes": (5, 6, 7, 8, 0x20, 0x28, 0x40, 0x80, 0x100, *INT16),
    "last_offset_delta": (-1, 0, 1, 3, *INT32),
    "base_timestamp": (-1, 0, -2, *INT64),
    "max_timestamp": (-1, 0, BASE_TIMESTAMP_MS, BASE_TIMESTAMP_MS + 6, *INT64),
    "producer_id": (0, 1, -2, *INT64),
    "producer_epoch": (0, 1, -2, *INT16),
    "base_sequence": (0, 1, -2, *INT32),
    "record_count": (-1, 0, 1, 2, 4, *INT32),
}
IDEMPOTENT = {"producer_id": 4000, "producer_epoch": 3, "base_sequence": 10}
IDEMPOTENT_VALUES: Mapping[str, tuple[int, ...]] = {
    "producer_id": (-1, -2, 0, *INT64),
    "producer_epoch": (-1, -2, 0, *INT16),
    "base_sequence": (-1, -2, 0, *INT32),
    "attributes": (0x20, 0x40),
}

# Mutations of a record that are another matter when nothing follows it.
REACHES_BEYOND = ("length", "trailing", "value length", "header count")

Mutations = Iterator[tuple[str, bytes]]


def header_mutations(field: str, codec: int) -> Mutations:
    """Every value of one header field, alone and in an otherwise idempotent batch."""
    for value in HEADER_VALUES[field]:
        # The codec is part of the attributes: it stays what it is unless it is what is changed.
        fitting = value | codec if field == "attributes" and not value & 7 else value
        fields: Plain = {"max_timestamp": BASE_TIMESTAMP_MS + 5, field: fitting}
        yield f"{field}={value}", batch(*RECORDS, codec=codec, **fields)
    for value in IDEMPOTENT_VALUES.get(field, ()):
        fitting = value | codec if field == "attributes" else value
        fields = {**IDEMPOTENT, field: fitting}
        yield f"idempotent, {field}={value}", batch(*RECORDS, codec=codec, **fields)


def size_and_checksum_mutations(codec: int) -> Mutations:
    valid = batch(*RECORDS, codec=codec)
    size = len(valid) - 12
    for length in (size - 1, size + 1, 0, -1, 48, 49, 50, 13, 14, *INT32):
        yield f"batch_length={length}", batch(*RECORDS, codec=codec, batch_length=length)
    (crc,) = struct.unpack_from(">I", valid, 17)
    for wrong in (0, crc ^ 1, crc ^ (1 << 31), (1 << 32) - 1):
        yield f"crc={wrong}", batch(*RECORDS, codec=codec, crc=wrong)


def record_mutations(codec: int) -> Mutations:
    """The records of a batch changed; the header still says three of them."""
    for name, payload in _payloads():
        packed = COMPRESSORS[codec](payload) if codec else payload
        yield name, batch(*RECORDS, codec=codec, payload=packed)


def _payloads() -> Iterator[tuple[str, bytes]]:
    first, second, third = (encode_record(record, index) for index, record in enumerate(RECORDS))
    for name, changed in _changed_records():
        yield f"second record: {name}", first + changed + third
        if name.startswith(REACHES_BEYOND):
            yield f"last record: {name}", first + second + changed
    yield "one record too few", first + second
    yield "one record too many", first + second + third + encode_record(R(b"four"), 3)
    yield "no records", b""
    yield "one byte behind", first + second + third + b"\x00"
    yield "the last byte missing", (first + second + third)[:-1]
    yield "in another order", second + first + third
    yield "without the first", second + third
    yield "a garbage payload", b"\xff" * 40
    yield "a zero payload", bytes(40)


def _changed_records() -> Iterator[tuple[str, bytes]]:
    def record(
        *,
        attributes: bytes = b"\x00",
        timestamp_delta: int = 5,
        offset_delta: int = 1,
        key: bytes = varint(1) + b"b",
        value: bytes = varint(3) + b"two",
        headers: bytes = varint(0),
        length: int | None = None,
        length_delta: int = 0,
    ) -> bytes:
        body = attributes + varint(timestamp_delta) + varint(offset_delta) + key + value + headers
        return varint(len(body) + length_delta if length is None else length) + body

    for length in (-1, 0, 1, -(1 << 31), (1 << 31) - 1):
        yield f"length={length}", record(length=length)
    for delta in (-1, 1, 2):
        yield f"length off by {delta}", record(length_delta=delta)
    yield "length of 6 bytes", b"\x80\x80\x80\x80\x80\x01" + record()
    yield "trailing byte", record(headers=varint(0) + b"\x00")
    yield "attributes", record(attributes=b"\x7f")
    for delta in (-1, 0, 6, 1 << 40, -(1 << 40)):
        yield f"timestamp_delta={delta}", record(timestamp_delta=delta)
    for delta in (0, 1, 2, 3, -1, (1 << 31) - 1, -(1 << 31)):
        yield f"offset_delta={delta}", record(offset_delta=delta)
    for length in (-1, -2, 0, 100, 1 << 30, -(1 << 31)):
        yield f"key length={length}", record(key=varint(length) + b"b")
        yield f"value length={length}", record(value=varint(length) + b"two")
    for count in (-1, 1, 2, 1 << 30, -(1 << 31)):
        yield f"header count={count}", record(headers=varint(count))
    pair = varint(1) + b"h" + varint(1) + b"v"
    for name, headers in {
        "one header": varint(1) + pair,
        "null header key": varint(1) + varint(-1) + varint(1) + b"v",
        "empty header key": varint(1) + varint(0) + varint(1) + b"v",
        "null header value": varint(1) + varint(1) + b"h" + varint(-1),
        "header value length=-2": varint(1) + varint(1) + b"h" + varint(-2),
        "header key length=100": varint(1) + varint(100) + b"h" + varint(0),
        "header value length=100": varint(1) + varint(1) + b"h" + varint(100),
        "header key is not UTF-8": varint(1) + varint(1) + b"\xff" + varint(0),
        "one header fewer": varint(2) + pair,
        "one header more": varint(1) + pair + pair,
    }.items():
        yield name, record(headers=headers)


def compression_mutations(codec: int) -> Mutations:
    """Compressed bytes that are damaged, strange or of another codec."""
    plain = b"".join(encode_record(record, index) for index, record in enumerate(RECORDS))
    packed = COMPRESSORS[codec](plain)
    for name, payload in {
        "empty": b"",
        "one byte": b"\x00",
        "not compressed": plain,
        "the last byte missing": packed[:-1],
        "cut in the middle": packed[: len(packed) // 2],
        "a byte behind": packed + b"\x00",
        "twice": packed + packed,
        "nothing compressed": COMPRESSORS[codec](b""),
        "garbage": b"\xff" * 50,
        "a bit in the middle": _flipped(packed, len(packed) // 3),
        "a bit at the start": _flipped(packed, 0),
        "a bit at the end": _flipped(packed, len(packed) - 1),
    }.items():
        yield name, batch(*RECORDS, codec=codec, payload=payload)
    for other in (GZIP, SNAPPY, LZ4, ZSTD):
        if other != codec:
            packed = COMPRESSORS[other](plain)
            yield f"codec {other} inside", batch(*RECORDS, codec=codec, payload=packed)
    for name, pack in _UNUSUAL.get(codec, {}).items():
        yield name, batch(*RECORDS, codec=codec, payload=pack(plain))


def _flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


def _snappy_raw(data: bytes) -> bytes:
    import cramjam

    return bytes(cramjam.snappy.compress_raw(data))


def _lz4(**options: bool) -> Callable[[bytes], bytes]:
    import lz4.frame

    def pack(data: bytes) -> bytes:
        return bytes(lz4.frame.compress(data, **options))

    return pack


def _in_two(codec: int) -> Callable[[bytes], bytes]:
    pack = COMPRESSORS[codec]
    return lambda data: pack(data[:10]) + pack(data[10:])


_UNUSUAL: Mapping[int, Mapping[str, Callable[[bytes], bytes]]] = {
    GZIP: {"two members": _in_two(GZIP)},
    SNAPPY: {"raw": _snappy_raw, "two streams": _in_two(SNAPPY)},
    LZ4: {
        "two frames": _in_two(LZ4),
        "linked blocks": _lz4(block_linked=True),
        "content checksum": _lz4(block_linked=False, content_checksum=True),
        "block checksums": _lz4(block_linked=False, block_checksum=True),
        "with its size": _lz4(block_linked=False, store_size=True),
        "without its size": _lz4(block_linked=False, store_size=False),
    },
    ZSTD: {"two frames": _in_two(ZSTD)},
}
