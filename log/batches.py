"""Walking over the batches of a file, with few reads and no trust.

Two walks: headers alone (to find a position or the end offset) and whole batches (recovery,
timestamp search). Both stop with BadBatch at the first place where no batch can be; the caller
decides whether that is a torn tail or damage.
"""

from collections.abc import Iterator

from klamm.log.fs import File
from klamm.wire.errors import WireError
from klamm.wire.records.batch import (
    BATCH_HEADER_SIZE,
    LOG_OVERHEAD,
    RecordBatchHeader,
    crc_is_valid,
    read_batch_header,
)

# One index interval and a little more: most lookups take a single read.
HEADER_WINDOW_BYTES = 8 * 1024
BATCH_WINDOW_BYTES = 1024 * 1024


class BadBatch(Exception):  # noqa: N818 - a place in a file, not a fault of the program
    """At this position of the file there is no valid batch.

    `offset` is the one that was due there, where that is known.
    """

    def __init__(self, position: int, reason: str, offset: int | None = None) -> None:
        super().__init__(f"byte {position}: {reason}")
        self.position = position
        self.reason = reason
        self.offset = offset


def iter_headers(
    file: File, position: int, end: int, window_bytes: int = HEADER_WINDOW_BYTES
) -> Iterator[tuple[int, RecordBatchHeader]]:
    """Yield (position, header) of the batches between two positions.

    Raises:
        BadBatch: a header cannot be read, a batch reaches behind `end`, or offsets go back.
    """
    window = b""
    window_start = position
    next_offset = None
    while position < end:
        at = position - window_start
        if at + BATCH_HEADER_SIZE > len(window):
            window = file.pread(min(window_bytes, end - position), position)
            window_start = position
            at = 0
        header = _header_at(window, at, position, next_offset)
        following = position + LOG_OVERHEAD + header.batch_length
        if following > end:
            raise BadBatch(position, f"it ends {following - end} bytes too late", next_offset)
        next_offset = header.base_offset + header.last_offset_delta + 1
        yield position, header
        position = following


def iter_batches(
    file: File, position: int, end: int
) -> Iterator[tuple[int, RecordBatchHeader, memoryview]]:
    """Yield (position, header, bytes) of the batches between two positions, checksums verified.

    Raises:
        BadBatch: a header cannot be read, a batch reaches behind `end`, a checksum is wrong, or
            offsets go back.
    """
    window = memoryview(b"")
    window_start = position
    next_offset = None
    while position < end:
        at = position - window_start
        if at + BATCH_HEADER_SIZE > len(window):
            window = memoryview(file.pread(min(BATCH_WINDOW_BYTES, end - position), position))
            window_start = position
            at = 0
        header = _header_at(window, at, position, next_offset)
        size = LOG_OVERHEAD + header.batch_length
        if position + size > end:
            raise BadBatch(position, f"it ends {position + size - end} bytes too late", next_offset)
        if at + size > len(window):
            # The declared size is bounded by the file's size, so it may be believed here.
            window = memoryview(file.pread(max(BATCH_WINDOW_BYTES, size), position))
            window_start = position
            at = 0
        if not crc_is_valid(window, header, at):
            raise BadBatch(position, "the checksum is wrong", next_offset)
        next_offset = header.base_offset + header.last_offset_delta + 1
        yield position, header, window[at : at + size]
        position += size


def _header_at(
    window: bytes | memoryview, at: int, position: int, next_offset: int | None
) -> RecordBatchHeader:
    try:
        header = read_batch_header(window, at)
    except WireError as error:
        raise BadBatch(position, str(error), next_offset) from error
    if header.base_offset < (next_offset or 0) or header.last_offset_delta < 0:
        raise BadBatch(
            position,
            f"offset {header.base_offset} to {header.last_offset} is out of order",
            next_offset,
        )
    return header
