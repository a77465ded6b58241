"""The compression codecs of record batches, with an output budget that is kept while streaming.

Whoever sends a batch chooses how far it expands, so nothing here believes a declared size: output
is counted as it comes, and a format that states its size up front is held to the best ratio that
it can reach. Data that is refused never takes more memory than the budget and one step of output
(8 MiB for zstd, less for the others); data that is accepted is held twice while it is joined.

| codec  | what is on the wire                                                                 |
|--------|-------------------------------------------------------------------------------------|
| gzip   | one or more gzip members; bytes behind the last one are ignored, as Java does       |
| snappy | xerial framing (Java and most clients) or one raw block (accepted, never written)   |
| lz4    | one LZ4 frame; what follows it is ignored                                           |
| zstd   | any number of zstd frames, windows up to 128 MiB (the limit of Kafka's own library) |
"""

import enum
import struct
import zlib
from collections.abc import Callable

import cramjam
import lz4.frame
import zstandard

from klamm.wire.errors import WireError

Buffer = bytes | bytearray | memoryview


class Codec(enum.IntEnum):
    """Bits 0 to 2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class DecompressionTooLarge(WireError):  # noqa: N818  (it names what is wrong, as Kafka does)
    """The data expands beyond the budget."""


def decompress(codec: int, data: Buffer, max_bytes: int) -> bytes:
    """Return the decompressed data, which is at most max_bytes long.

    Raises:
        DecompressionTooLarge: there is more output than max_bytes.
        WireError: no such codec, or the data is not what the codec writes.
    """
    assert max_bytes >= 0
    reader = _DECOMPRESSORS.get(codec)
    if reader is None:
        raise WireError(f"unknown compression codec {codec}")
    return reader(memoryview(data).cast("B"), max_bytes)


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """Return data compressed as Kafka's own clients write it; None means Kafka's default level."""
    return _COMPRESSORS[Codec(codec)](data, level)


def _too_large(max_bytes: int) -> DecompressionTooLarge:
    return DecompressionTooLarge(f"the data expands to more than {max_bytes} bytes")


def _copy(data: memoryview, max_bytes: int) -> bytes:
    if len(data) > max_bytes:
        raise _too_large(max_bytes)
    return bytes(data)


# --- gzip -------------------------------------------------------------------------------------

_GZIP_WINDOW_BITS = 31
_GZIP_MAGIC = b"\x1f\x8b"
# zlib copies what lies behind the end of a member; small steps keep a flood of tiny members linear.
_GZIP_STEP_BYTES = 8 * 1024


def _gunzip(data: memoryview, max_bytes: int) -> bytes:
    output: list[bytes] = []
    left = max_bytes
    position = 0
    while True:
        member = zlib.decompressobj(_GZIP_WINDOW_BITS)
        while not member.eof:
            step = data[position : position + _GZIP_STEP_BYTES]
            if not step:
                raise WireError("the gzip stream ends early")
            position += len(step)
            try:
                piece = member.decompress(step, left + 1)
            except zlib.error as error:
                raise WireError(f"not a gzip stream: {error}") from None
            left -= len(piece)
            if left < 0:
                raise _too_large(max_bytes)
            if piece:
                output.append(piece)
        position -= len(member.unused_data)
        if data[position : position + 2] != _GZIP_MAGIC:
            return b"".join(output)


def _gzip(data: Buffer, level: int | None) -> bytes:
    writer = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, _GZIP_WINDOW_BITS)
    return writer.compress(data) + writer.flush()


# --- snappy -----------------------------------------------------------------------------------

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
# Behind the magic: the version that wrote it, and the oldest version that can read it.
_XERIAL_VERSIONS = struct.Struct(">ii")
_XERIAL_VERSION = 1
_XERIAL_HEADER = _XERIAL_MAGIC + _XERIAL_VERSIONS.pack(_XERIAL_VERSION, _XERIAL_VERSION)
_XERIAL_BLOCK_BYTES = 32 * 1024
_CHUNK_LENGTH = struct.Struct(">i")
# Three bytes of input, a copy with a two-byte offset, yield at most 64 bytes of output.
_SNAPPY_OUTPUT_PER_COPY = 64
_SNAPPY_INPUT_PER_COPY = 3


def _snappy_declared_length(block: memoryview) -> int:
    """Return the length in front of a raw block, if that block can hold it at all."""
    length = 0
    for index in range(min(5, len(block))):
        byte = block[index]
        length |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            input_bytes = len(block) - index - 1
            copies = -(-input_bytes // _SNAPPY_INPUT_PER_COPY)
            if length > copies * _SNAPPY_OUTPUT_PER_COPY:
                raise WireError(f"{input_bytes} bytes of snappy cannot expand to {length}")
            return length
    raise WireError("a snappy block without a length")


def _unsnappy(data: memoryview, max_bytes: int) -> bytes:
    blocks = _xerial_blocks(data) if data[:8] == _XERIAL_MAGIC else [data]
    sizes: list[int] = []
    left = max_bytes
    for block in blocks:
        size = _snappy_declared_length(block)
        left -= size
        if left < 0:
            raise _too_large(max_bytes)
        sizes.append(size)
    output = bytearray(max_bytes - left)
    target = memoryview(output)
    position = 0
    for block, size in zip(blocks, sizes, strict=True):
        try:
            written = cramjam.snappy.decompress_raw_into(block, target[position : position + size])
        except cramjam.DecompressionError as error:
            raise WireError(f"not a snappy block: {error}") from None
        if written != size:
            raise WireError(f"a snappy block of {written} bytes declared {size}")
        position += size
    target.release()
    return bytes(output)


def _xerial_blocks(data: memoryview) -> list[memoryview]:
    """Split xerial framing into its raw blocks; several streams in a row count as one."""
    blocks: list[memoryview] = []
    position = 0
    while position < len(data):
        if data[position : position + 8] == _XERIAL_MAGIC:
            if len(data) - position < len(_XERIAL_HEADER):
                raise WireError("the xerial stream ends inside its header")
            written_by, _ = _XERIAL_VERSIONS.unpack_from(data, position + 8)
            if written_by < _XERIAL_VERSION:
                raise WireError(f"xerial version {written_by}")
            position += len(_XERIAL_HEADER)
            continue
        if len(data) - position < 4:
            raise WireError("the xerial stream ends inside a block length")
        (length,) = _CHUNK_LENGTH.unpack_from(data, position)
        position += 4
        if not 0 < length <= len(data) - position:
            raise WireError(f"xerial block length {length}, {len(data) - position} bytes left")
        blocks.append(data[position : position + length])
        position += length
    return blocks


def _snappy(data: Buffer, level: int | None) -> bytes:
    view = memoryview(data).cast("B")
    output = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        output.append(_CHUNK_LENGTH.pack(len(block)))
        output.append(block)
    return b"".join(output)


# --- lz4 --------------------------------------------------------------------------------------

# The library copies unread input once per call, and allocates the asked-for output at once.
_LZ4_INPUT_STEP_BYTES = 64 * 1024
_LZ4_OUTPUT_STEP_BYTES = 1024 * 1024
# Level 9 stands for the fast compressor in Kafka's configuration (KIP-390), which is level 0 here.
_LZ4_KAFKA_DEFAULT_LEVEL = 9


def _unlz4(data: memoryview, max_bytes: int) -> bytes:
    reader = lz4.frame.LZ4FrameDecompressor()
    output: list[bytes] = []
    left = max_bytes
    position = 0
    while not reader.eof:
        step = data[:0]
        if reader.needs_input:
            step = data[position : position + _LZ4_INPUT_STEP_BYTES]
            if not step:
                raise WireError("the lz4 frame ends early")
            position += len(step)
        try:
            piece = reader.decompress(step, min(left + 1, _LZ4_OUTPUT_STEP_BYTES))
        except RuntimeError as error:
            raise WireError(f"not an lz4 frame: {error}") from None
        left -= len(piece)
        if left < 0:
            raise _too_large(max_bytes)
        if piece:
            output.append(piece)
    return b"".join(output)


def _lz4(data: Buffer, level: int | None) -> bytes:
    fast = level is None or level == _LZ4_KAFKA_DEFAULT_LEVEL
    # Java's reader refuses linked blocks and knows no content checksum.
    frame: bytes = lz4.frame.compress(
        data,
        compression_level=0 if fast else level,
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        content_checksum=False,
        store_size=False,
    )
    return frame


# --- zstd -------------------------------------------------------------------------------------

_ZSTD_WINDOW_BYTES_MAX = 2**27
# The smallest block takes 4 bytes and yields 128 KiB, so one step yields at most 8 MiB.
_ZSTD_STEP_BYTES = 256
_ZSTD_DEFAULT_LEVEL = 3


def _unzstd(data: memoryview, max_bytes: int) -> bytes:
    output: list[bytes] = []
    left = max_bytes
    position = 0
    context = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES_MAX)
    while position < len(data):
        frame = context.decompressobj()
        while not frame.eof:
            step = data[position : position + _ZSTD_STEP_BYTES]
            if not step:
                raise WireError("the zstd frame ends early")
            position += len(step)
            try:
                piece = frame.decompress(step)
            except zstandard.ZstdError as error:
                raise WireError(f"not a zstd frame: {error}") from None
            left -= len(piece)
            if left < 0:
                raise _too_large(max_bytes)
            if piece:
                output.append(piece)
        position -= len(frame.unused_data)
    return b"".join(output)


def _zstd(data: Buffer, level: int | None) -> bytes:
    writer = zstandard.ZstdCompressor(level=_ZSTD_DEFAULT_LEVEL if level is None else level)
    return writer.compress(data)


_DECOMPRESSORS: dict[int, Callable[[memoryview, int], bytes]] = {
    Codec.NONE: _copy,
    Codec.GZIP: _gunzip,
    Codec.SNAPPY: _unsnappy,
    Codec.LZ4: _unlz4,
    Codec.ZSTD: _unzstd,
}

_COMPRESSORS: dict[Codec, Callable[[Buffer, int | None], bytes]] = {
    Codec.NONE: lambda data, level: bytes(data),
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: _lz4,
    Codec.ZSTD: _zstd,
}
