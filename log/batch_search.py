"""Looking for whole batches behind a place where none can be.

The length of a batch is not under its checksum, so a damaged one says nothing of where the next one
begins: it may be at any byte. How much is compared and summed up is bounded, because records may
hold whatever their producer likes, beginnings of batches among it.
"""

from collections.abc import Iterator

from klamm.log.batches import BadBatch, iter_batches
from klamm.log.config import INT32_MAX
from klamm.log.fs import File
from klamm.wire.errors import WireError
from klamm.wire.records.batch import (
    ATTRIBUTES_OFFSET,
    BATCH_HEADER_SIZE,
    CURRENT_MAGIC,
    MAGIC_OFFSET,
    RecordBatchHeader,
    read_batch_header,
)
from klamm.wire.records.crc import crc32c

WINDOW_BYTES = 1024 * 1024
# Kafka's own bound for a request, and so for a batch, is 100 MiB by default.
SEARCH_BYTES_MAX = 128 * 1024 * 1024

_MAGIC = bytes([CURRENT_MAGIC])


def crc_of_range(file: File, position: int, end: int) -> int:
    """Return the checksum of a part of a file, of which little is in memory at a time."""
    crc = 0
    while position < end:
        part = file.pread(min(WINDOW_BYTES, end - position), position)
        if not part:
            break
        crc = crc32c(part, crc)
        position += len(part)
    return crc


class BatchSearch:
    """One search in one file.

    Args:
        end: where the file ends.
        least_offset: batches below it are none that can follow, such as copies in a record.

    Attributes:
        gave_up: whether it came to its bound, so that there may be more than it has found.
    """

    def __init__(self, file: File, end: int, least_offset: int) -> None:
        self._file = file
        self._end = end
        self._least_offset = least_offset
        self._bytes_left = SEARCH_BYTES_MAX
        self.gave_up = False

    def batches(self, position: int) -> Iterator[RecordBatchHeader]:
        """Yield the headers of the whole batches from position on, past all damage."""
        found = self._find(position)
        while found is not None:
            try:
                for _, header, _ in iter_batches(self._file, found, self._end):
                    self._least_offset = header.next_offset
                    yield header
                return
            except BadBatch as bad:
                found = self._find(bad.position + 1)

    def _find(self, position: int) -> int | None:
        """Return where the next whole batch begins."""
        while position + BATCH_HEADER_SIZE <= self._end:
            window = self._file.pread(min(WINDOW_BYTES, self._end - position), position)
            if len(window) < BATCH_HEADER_SIZE:
                return None
            # The last bytes may be the beginning of a batch whose header is not in this window.
            starts = len(window) - BATCH_HEADER_SIZE + 1
            at = window.find(_MAGIC, MAGIC_OFFSET, starts + MAGIC_OFFSET)
            while at >= 0:
                start = at - MAGIC_OFFSET
                if self._is_whole(window, start, position + start):
                    return position + start
                if self._bytes_left < 0:
                    self.gave_up = True
                    return None
                at = window.find(_MAGIC, at + 1, starts + MAGIC_OFFSET)
            position += starts
        return None

    def _is_whole(self, window: bytes, at: int, position: int) -> bool:
        self._bytes_left -= BATCH_HEADER_SIZE
        try:
            header = read_batch_header(window, at)
        except WireError:
            return False
        size = header.size_in_bytes
        if (
            not 0 <= header.base_offset - self._least_offset <= INT32_MAX
            or header.last_offset_delta < 0
            or header.record_count < 0
            or size > self._end - position
        ):
            return False
        self._bytes_left -= size
        if self._bytes_left < 0:
            return False
        start, end = position + ATTRIBUTES_OFFSET, position + size
        return crc_of_range(self._file, start, end) == header.crc
