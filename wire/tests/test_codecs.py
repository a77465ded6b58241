"""Each codec reads what it writes, what other libraries write, and writes what they read."""

import gzip
import struct
from collections.abc import Callable
from contextlib import suppress

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from klamm.wire.errors import WireError
from klamm.wire.records.codecs import Codec, DecompressionTooLarge, compress, decompress
from klamm.wire.tests.batches import CODECS, by_codec
from klamm.wire.tests.values import some_examples

BUDGET = 1 << 20
XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
payloads = st.binary(max_size=300) | st.sampled_from(
    [bytes(100_000), bytes(range(256)) * 300, b"x" * (32 * 1024), b"y" * (32 * 1024 + 1)]
)


@by_codec
@some_examples(4)
@given(payloads)
def test_what_is_compressed_is_decompressed(codec: int, data: bytes) -> None:
    for buffer in (data, bytearray(data), memoryview(data)):
        assert decompress(codec, compress(codec, buffer), BUDGET) == data
    assert decompress(codec, memoryview(compress(codec, data)), len(data)) == data


@pytest.mark.parametrize(
    ("codec", "levels"),
    [(Codec.GZIP, range(1, 10)), (Codec.LZ4, range(1, 18)), (Codec.ZSTD, (-131072, -1, 1, 3, 22))],
)
def test_every_level_that_kafka_knows(codec: int, levels: tuple[int, ...]) -> None:
    data = bytes(range(256)) * 100
    for level in levels:
        assert decompress(codec, compress(codec, data, level), BUDGET) == data


def raw_snappy(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


def xerial(*blocks: bytes) -> bytes:
    """Frame raw blocks as the Java library does, but with blocks of any size."""
    return XERIAL_HEADER + b"".join(struct.pack(">i", len(block)) + block for block in blocks)


FOREIGN_WRITERS: dict[str, tuple[Codec, Callable[[bytes], bytes]]] = {
    "gzip module": (Codec.GZIP, gzip.compress),
    "gzip of cramjam": (Codec.GZIP, lambda data: bytes(cramjam.gzip.compress(data))),
    "raw snappy": (Codec.SNAPPY, raw_snappy),
    "xerial snappy in one block": (Codec.SNAPPY, lambda data: xerial(raw_snappy(data))),
    "xerial snappy in two": (
        Codec.SNAPPY,
        lambda data: xerial(raw_snappy(data[:7]), raw_snappy(data[7:])),
    ),
    "xerial snappy in two streams": (
        Codec.SNAPPY,
        lambda data: xerial(raw_snappy(data[:7])) + xerial(raw_snappy(data[7:])),
    ),
    "lz4 of cramjam": (Codec.LZ4, lambda data: bytes(cramjam.lz4.compress(data))),
    "lz4 with everything on": (
        Codec.LZ4,
        lambda data: lz4.frame.compress(
            data,
            block_linked=True,
            content_checksum=True,
            block_checksum=True,
            store_size=True,
            block_size=lz4.frame.BLOCKSIZE_MAX4MB,
        ),
    ),
    "lz4 without a content size": (
        Codec.LZ4,
        lambda data: lz4.frame.compress(data, store_size=False),
    ),
    "zstd of cramjam": (Codec.ZSTD, lambda data: bytes(cramjam.zstd.compress(data))),
    "zstd without a content size": (
        Codec.ZSTD,
        lambda data: zstandard.ZstdCompressor(write_content_size=False).compress(data),
    ),
    "zstd with a checksum": (
        Codec.ZSTD,
        lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data),
    ),
    "zstd in two frames": (
        Codec.ZSTD,
        lambda data: compress(Codec.ZSTD, data[:7]) + compress(Codec.ZSTD, data[7:]),
    ),
    "gzip in two members": (
        Codec.GZIP,
        lambda data: gzip.compress(data[:7]) + gzip.compress(data[7:]),
    ),
}


@pytest.mark.parametrize(("codec", "writer"), FOREIGN_WRITERS.values(), ids=FOREIGN_WRITERS)
@some_examples(8)
@given(payloads)
def test_what_others_write_is_read(
    codec: int, writer: Callable[[bytes], bytes], data: bytes
) -> None:
    assert decompress(codec, writer(data), BUDGET) == data
    if data:
        with pytest.raises(DecompressionTooLarge):
            decompress(codec, writer(data), len(data) - 1)


def read_xerial(data: bytes) -> bytes:
    """Read the framing as its description says it, block by block."""
    assert data[:16] == XERIAL_HEADER
    position, output = 16, b""
    while position < len(data):
        (size,) = struct.unpack_from(">i", data, position)
        output += bytes(cramjam.snappy.decompress_raw(data[position + 4 : position + 4 + size]))
        position += 4 + size
    return output


FOREIGN_READERS: dict[str, tuple[Codec, Callable[[bytes], bytes]]] = {
    "gzip module": (Codec.GZIP, gzip.decompress),
    "xerial snappy": (Codec.SNAPPY, read_xerial),
    "lz4 of cramjam": (Codec.LZ4, lambda data: bytes(cramjam.lz4.decompress(data))),
    "zstd of cramjam": (Codec.ZSTD, lambda data: bytes(cramjam.zstd.decompress(data))),
}


@pytest.mark.parametrize(("codec", "reader"), FOREIGN_READERS.values(), ids=FOREIGN_READERS)
@some_examples(8)
@given(payloads)
def test_others_read_what_is_written(
    codec: int, reader: Callable[[bytes], bytes], data: bytes
) -> None:
    assert reader(compress(codec, data)) == data


def test_lz4_is_written_as_java_can_read_it() -> None:
    info = lz4.frame.get_frame_info(compress(Codec.LZ4, bytes(100_000)))
    assert not info["block_linked"]
    assert not info["content_checksum"]
    assert info["block_size_id"] == lz4.frame.BLOCKSIZE_MAX64KB
    assert info["content_size"] == 0


def test_a_snappy_copy_is_followed_as_the_format_says() -> None:
    # Length 8; a literal of two bytes; a copy of six bytes from two bytes back.
    assert decompress(Codec.SNAPPY, b"\x08\x04ab\x09\x02", 8) == b"abababab"


@pytest.mark.parametrize("behind", [b"x", b"\x1f", b"padding"])
def test_what_lies_behind_a_gzip_or_lz4_stream_is_ignored_as_in_java(behind: bytes) -> None:
    for codec in (Codec.GZIP, Codec.LZ4):
        assert decompress(codec, compress(codec, b"data") + behind, BUDGET) == b"data"


DAMAGED = {
    "gzip that is none": (Codec.GZIP, b"not gzip at all"),
    "gzip with a bad checksum": (Codec.GZIP, gzip.compress(b"data")[:-8] + bytes(8)),
    "gzip of nothing": (Codec.GZIP, b""),
    "gzip with a bad second member": (Codec.GZIP, gzip.compress(b"data") + b"\x1f\x8bgarbage"),
    "snappy of nothing": (Codec.SNAPPY, b""),
    "snappy with an endless length": (Codec.SNAPPY, b"\xff" * 10),
    "snappy that copies from before its start": (Codec.SNAPPY, b"\x08\x04ab\x09\x05"),
    "snappy that is longer than it says": (Codec.SNAPPY, b"\x01\x04ab"),
    "snappy that is shorter than it says": (Codec.SNAPPY, b"\x03\x04ab"),
    "xerial with a negative block": (Codec.SNAPPY, XERIAL_HEADER + b"\xff\xff\xff\xff"),
    "xerial with an empty block": (Codec.SNAPPY, XERIAL_HEADER + bytes(4)),
    "xerial with a huge block": (Codec.SNAPPY, XERIAL_HEADER + b"\x7f\xff\xff\xff" + bytes(9)),
    "xerial of version 0": (Codec.SNAPPY, XERIAL_HEADER[:8] + bytes(8)),
    "xerial with half a length": (Codec.SNAPPY, XERIAL_HEADER + b"\x00\x00"),
    "lz4 that is none": (Codec.LZ4, b"not an lz4 frame, surely"),
    "lz4 of nothing": (Codec.LZ4, b""),
    "lz4 with a bad header checksum": (Codec.LZ4, b"\x04\x22\x4d\x18\x60\x40\x00" + bytes(8)),
    "zstd that is none": (Codec.ZSTD, b"not a zstd frame"),
    "zstd with something behind it": (Codec.ZSTD, compress(Codec.ZSTD, b"data") + b"x"),
}


@pytest.mark.parametrize(("codec", "data"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_data_is_refused(codec: int, data: bytes) -> None:
    with pytest.raises(WireError):
        decompress(codec, data, BUDGET)


@pytest.mark.parametrize("codec", CODECS[1:])
def test_data_that_ends_early_is_refused(codec: int) -> None:
    compressed = compress(codec, bytes(range(256)) * 3)
    whole_frames = {0} if codec == Codec.ZSTD else set()
    if codec == Codec.SNAPPY:
        whole_frames = {16}  # The header of a stream without blocks.
    for end in set(range(len(compressed))) - whole_frames:
        with pytest.raises(WireError):
            decompress(codec, compressed[:end], BUDGET)


@pytest.mark.parametrize("codec", [-1, 5, 6, 7, 8])
def test_there_are_no_other_codecs(codec: int) -> None:
    with pytest.raises(WireError, match=f"unknown compression codec {codec}"):
        decompress(codec, b"", BUDGET)


@by_codec
@some_examples(2)
@given(st.binary(max_size=80), st.integers(0, 200), st.integers(0, 255))
def test_random_and_damaged_data_is_a_value_or_refused(
    codec: int, random: bytes, place: int, byte: int
) -> None:
    damaged = bytearray(compress(codec, bytes(range(100)) * 2))
    damaged[place % len(damaged)] = byte
    for data in (random, bytes(damaged), bytes(damaged[: place % len(damaged)])):
        with suppress(WireError):
            assert len(decompress(codec, data, 1000)) <= 1000
