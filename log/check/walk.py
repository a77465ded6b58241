"""Walking over a file of batches, past damage where that is possible.

The walk trusts nothing: a batch is one when its header can be read, it ends inside the file and
its checksum is right. Behind damage it looks for the next batch, so that one bad byte does not
hide the faults that follow. How far it looks is bounded, in bytes compared and summed.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from klamm.log.check.source import ReadableFile, Reader
from klamm.wire.errors import WireError
from klamm.wire.records.batch import (
    BATCH_HEADER_SIZE,
    CURRENT_MAGIC,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    RecordBatchHeader,
    batch_crc,
    read_batch_header,
)

WINDOW_BYTES = 4 * 1024 * 1024
# Kafka's own bound for a request, and so for a batch, is 100 MiB by default.
SEARCH_BYTES_MAX = 128 * 1024 * 1024


class Batch(NamedTuple):
    """A batch whose checksum is right."""

    position: int
    header: RecordBatchHeader
    data: memoryview


class Damage(NamedTuple):
    """Bytes from position up to end that are no batch.

    `is_torn` says that they are the beginning of one that was not written to its end.
    """

    position: int
    end: int
    reason: str
    is_torn: bool


def walk(
    reader: Reader,
    file: ReadableFile,
    size: int,
    least_offset: Callable[[], int] = lambda: 0,
) -> Iterator[Batch | Damage]:
    """Yield what lies in the first `size` bytes of a file, in order and without gaps.

    Args:
        least_offset: asked behind damage. What is below it is no batch of the file: it is in a
            record.
    """
    walker = _Walker(reader, file, size)
    position = 0
    while position < size:
        found = walker.batch_at(position)
        if isinstance(found, str):
            end = walker.next_batch(position, least_offset())
            yield Damage(position, end, found, end == size and walker.is_torn(position))
            position = end
        else:
            yield found
            position += found.header.size_in_bytes


class _Walker:
    """One walk, with the part of the file that it has in memory."""

    def __init__(self, reader: Reader, file: ReadableFile, size: int) -> None:
        self._reader = reader
        self._file = file
        self._size = size
        self._window = memoryview(b"")
        self._start = 0
        self._search_bytes_left = SEARCH_BYTES_MAX

    def _bytes(self, position: int, size: int) -> memoryview:
        """Return up to `size` bytes from position; fewer at the end of the file."""
        size = min(size, self._size - position)
        at = position - self._start
        if at < 0 or at + size > len(self._window):
            wanted = min(max(size, WINDOW_BYTES), self._size - position)
            self._window = memoryview(self._reader.read(self._file, wanted, position))
            self._start = position
            at = 0
        return self._window[at : at + size]

    def batch_at(self, position: int) -> Batch | str:
        """Return the batch at position, or why there is none."""
        head = self._bytes(position, BATCH_HEADER_SIZE)
        if len(head) < BATCH_HEADER_SIZE:
            return f"the file ends after {len(head)} bytes of a batch"
        try:
            header = read_batch_header(head)
        except WireError as error:
            return str(error)
        size = header.size_in_bytes
        if position + size > self._size:
            return f"a batch of {size} bytes, the file ends after {self._size - position}"
        data = self._bytes(position, size)
        if len(data) < size:
            return f"a batch of {size} bytes, {len(data)} could be read"
        crc = batch_crc(data, 0, size)
        if crc != header.crc:
            return f"the checksum is {header.crc:#010x}, the bytes have {crc:#010x}"
        return Batch(position, header, data)

    def is_torn(self, position: int) -> bool:
        """Say whether the file ends before the batch does that begins at position."""
        head = self._bytes(position, BATCH_HEADER_SIZE)
        if len(head) < BATCH_HEADER_SIZE:
            return True
        rest = self._size - position
        if self._search_bytes_left <= 0:
            return False
        try:
            header = read_batch_header(head)
        except WireError:
            return False
        # Nothing protects the length, and the checksum tells when only that is wrong.
        return header.size_in_bytes > rest and self._crc(position, rest) != header.crc

    def _crc(self, position: int, size: int) -> int:
        return batch_crc(self._bytes(position, size), 0, size)

    def next_batch(self, damaged: int, least_offset: int) -> int:
        """Return where the first batch behind damage begins; the file's end when none is found."""
        if damaged + LOG_OVERHEAD <= self._size:
            # Mostly the length is right, and something else is not.
            length = int.from_bytes(self._bytes(damaged, LOG_OVERHEAD)[8:12], "big", signed=True)
            following = damaged + LOG_OVERHEAD + length
            if damaged < following < self._size and self._is_batch(following, least_offset):
                return following
        position = damaged + 1
        while position + BATCH_HEADER_SIZE <= self._size and self._search_bytes_left > 0:
            part = bytes(self._bytes(position, WINDOW_BYTES))
            for candidate in self._candidates(part):
                if self._is_batch(position + candidate, least_offset):
                    return position + candidate
                if self._search_bytes_left <= 0:
                    return self._size
            # A batch may begin in the last bytes of this part, and have its magic in the next.
            position += max(1, len(part) - BATCH_HEADER_SIZE + 1)
        return self._size

    def _is_batch(self, position: int, least_offset: int) -> bool:
        found = self.batch_at(position)
        return not isinstance(found, str) and found.header.base_offset >= least_offset

    def _candidates(self, part: bytes) -> Iterator[int]:
        """Yield where, by magic and length, a batch could begin."""
        self._search_bytes_left -= len(part)
        magic = bytes([CURRENT_MAGIC])
        at = part.find(magic, MAGIC_OFFSET)
        while at >= 0:
            start = at - MAGIC_OFFSET
            length = int.from_bytes(part[start + 8 : start + 12], "big", signed=True)
            # The offset's first byte is 0 in every log that fits on a disk.
            if part[start] == 0 and BATCH_HEADER_SIZE - LOG_OVERHEAD <= length < self._size:
                self._search_bytes_left -= length
                yield start
            at = part.find(magic, at + 1)
