"""Data that expands without measure is refused before it has taken the memory."""

import gzip
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable

import lz4.frame
import pytest
import zstandard

from klamm.wire.errors import WireError
from klamm.wire.records.codecs import Codec, DecompressionTooLarge, compress, decompress
from klamm.wire.tests.cost import peak_of, steps_of

MIB = 1 << 20
BUDGET = MIB
# What one step may give beyond the budget: see _ZSTD_STEP_BYTES and _LZ4_OUTPUT_STEP_BYTES.
STEP = 9 * MIB

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)


def gzip_zeros(mebibytes: int) -> bytes:
    writer = zlib.compressobj(9, zlib.DEFLATED, 31)
    zeros = bytes(MIB)
    return b"".join(writer.compress(zeros) for _ in range(mebibytes)) + writer.flush()


def zstd_frame(*blocks: bytes, window_log: int = 17) -> bytes:
    """Give a frame that states no content size; the last block must be marked as such."""
    return ZSTD_MAGIC + b"\x00" + bytes([(window_log - 10) << 3]) + b"".join(blocks)


def zstd_run(size: int, *, last: bool = False) -> bytes:
    """Give a block of size zeros, in four bytes."""
    return (size << 3 | 1 << 1 | last).to_bytes(3, "little") + b"\x00"


def uvarint(value: int) -> bytes:
    output = bytearray()
    while value > 0x7F:
        output.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*output, value])


def snappy_copies(copies: int) -> bytes:
    """Give the block that expands most: copies of 64 bytes, each told in three."""
    literal = bytes([63 << 2]) + bytes(64)
    return uvarint(64 * (copies + 1)) + literal + b"\xfe\x01\x00" * copies


BOMBS: dict[str, tuple[Codec, bytes]] = {
    "gzip": (Codec.GZIP, gzip_zeros(64)),
    "gzip in many members": (Codec.GZIP, gzip_zeros(1) * 64),
    "raw snappy": (Codec.SNAPPY, snappy_copies(200_000)),
    "xerial snappy": (
        Codec.SNAPPY,
        XERIAL_HEADER + (struct.pack(">i", len(snappy_copies(1000))) + snappy_copies(1000)) * 200,
    ),
    "lz4 without a content size": (
        Codec.LZ4,
        lz4.frame.compress(bytes(64 * MIB), store_size=False),
    ),
    "lz4 with a content size": (Codec.LZ4, lz4.frame.compress(bytes(64 * MIB))),
    "zstd": (Codec.ZSTD, zstandard.ZstdCompressor(19).compress(bytes(64 * MIB))),
    "zstd without a content size": (Codec.ZSTD, zstd_frame(zstd_run(1 << 17) * 5000)),
    "zstd in many frames": (Codec.ZSTD, zstd_frame(zstd_run(1 << 17, last=True)) * 5000),
}


@pytest.mark.parametrize(("codec", "bomb"), BOMBS.values(), ids=BOMBS)
def test_a_bomb_is_refused_within_the_budget(codec: int, bomb: bytes) -> None:
    with pytest.raises(DecompressionTooLarge):
        decompress(codec, bomb, BUDGET)
    assert peak_of(lambda: decompress(codec, bomb, BUDGET)) <= BUDGET + STEP


@pytest.mark.parametrize(("codec", "bomb"), BOMBS.values(), ids=BOMBS)
def test_a_budget_of_nothing_refuses_everything(codec: int, bomb: bytes) -> None:
    with pytest.raises(DecompressionTooLarge):
        decompress(codec, bomb, 0)


@pytest.mark.parametrize("codec", list(Codec)[1:])
def test_only_the_outermost_layer_is_opened(codec: int) -> None:
    inner = compress(codec, bytes(4 * MIB))
    assert decompress(codec, compress(codec, inner), BUDGET) == inner


LIES: dict[str, tuple[Codec, bytes]] = {
    "raw snappy that declares a gigabyte": (Codec.SNAPPY, uvarint(1 << 30) + bytes(100)),
    "xerial block that declares a gigabyte": (
        Codec.SNAPPY,
        XERIAL_HEADER + struct.pack(">i", 10) + uvarint(1 << 30) + bytes(5),
    ),
    "snappy that declares one byte more than it can give": (
        Codec.SNAPPY,
        uvarint(64 * 4 + 1) + bytes(12),
    ),
    "zstd that declares an exabyte": (
        Codec.ZSTD,
        ZSTD_MAGIC + b"\xe0" + (1 << 60).to_bytes(8, "little"),
    ),
    "zstd with a window of 256 MiB": (
        Codec.ZSTD,
        zstd_frame(zstd_run(5, last=True), window_log=28),
    ),
    "zstd with the largest window": (
        Codec.ZSTD,
        zstd_frame(zstd_run(5, last=True), window_log=41),
    ),
}


@pytest.mark.parametrize(("codec", "lie"), LIES.values(), ids=LIES)
def test_a_declared_size_is_not_believed(codec: int, lie: bytes) -> None:
    with pytest.raises(WireError):
        decompress(codec, lie, 1 << 40)
    assert peak_of(lambda: decompress(codec, lie, 1 << 40)) < MIB


def test_the_largest_window_of_kafka_is_read() -> None:
    assert decompress(Codec.ZSTD, zstd_frame(zstd_run(5, last=True), window_log=27), 5) == bytes(5)


FLOODS: dict[str, tuple[Codec, Callable[[int], bytes]]] = {
    "gzip members": (Codec.GZIP, lambda count: gzip.compress(b"") * count),
    "xerial headers": (Codec.SNAPPY, lambda count: XERIAL_HEADER * count),
    "xerial blocks": (
        Codec.SNAPPY,
        lambda count: XERIAL_HEADER + b"\x00\x00\x00\x03\x01\x00x" * count,
    ),
    "zstd frames": (Codec.ZSTD, lambda count: zstd_frame(zstd_run(0, last=True)) * count),
    "zstd blocks": (
        Codec.ZSTD,
        lambda count: zstd_frame(zstd_run(0) * count, zstd_run(0, last=True)),
    ),
}


@pytest.mark.parametrize(("codec", "flood"), FLOODS.values(), ids=FLOODS)
def test_floods_of_tiny_parts_take_steps_in_proportion(
    codec: int, flood: Callable[[int], bytes]
) -> None:
    small, large = flood(500), flood(2000)
    few = steps_of(lambda: decompress(codec, small, BUDGET))
    many = steps_of(lambda: decompress(codec, large, BUDGET))
    assert many <= 4 * few + 100


PEAK_MEMORY = """
import resource, sys
from klamm.wire.errors import WireError
from klamm.wire.records.codecs import decompress
codec, data = int(sys.argv[1]), bytes.fromhex(sys.argv[2])
decompress(codec, bytes.fromhex(sys.argv[3]), 100)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    decompress(codec, data, 1 << 20)
except WireError:
    pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_zstd_window_takes_no_memory_that_is_not_filled() -> None:
    """The library's own memory is not Python's, so a process of its own tells how much it was."""
    frames = zstd_frame(zstd_run(5, last=True), window_log=27) * 50
    warm_up = compress(Codec.ZSTD, b"x")
    result = subprocess.run(
        [sys.executable, "-c", PEAK_MEMORY, str(int(Codec.ZSTD)), frames.hex(), warm_up.hex()],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert int(result.stdout) * 1024 < 16 * MIB
