"""Reading: from an offset to a range of bytes in one file, without touching the bytes.

As Kafka reads: a fetch is answered from one segment; it begins with the batch that holds the
offset (or the next one, when compaction removed it), ends before the upper bound, and is cut at
the byte limit, so the last batch may be partial. The first batch is returned whole even when it
alone exceeds the limit, if the caller asks for that (`min_one_batch`).
"""

from klamm.log.open_files import EMPTY_SLICE, FileSlice
from klamm.log.readiness import check_ready, is_verified, verify
from klamm.log.segment import Segment
from klamm.log.segments import Segments


class LogRead:
    """The answer to a read.

    Attributes:
        slice: the bytes to send; empty when there is nothing to read below the bound.
        first_batch_incomplete: there is data, but the limit is smaller than its first batch.
    """

    __slots__ = ("_bound", "_segment", "first_batch_incomplete", "slice")

    def __init__(
        self,
        slice: FileSlice,
        segment: Segment | None,
        bound: int,
        first_batch_incomplete: bool = False,
    ) -> None:
        self.slice = slice
        self._segment = segment
        self._bound = bound
        self.first_batch_incomplete = first_batch_incomplete

    def __len__(self) -> int:
        return self.slice.size

    @property
    def next_offset(self) -> int:
        """An offset above all that was returned: up to it aborted transactions are looked for.

        As in Kafka it comes from the index entry behind the returned bytes, else from the end of
        their segment. It may name transactions too many, which clients ignore, and never too few.
        """
        if self._segment is not None:
            end_position = self.slice.position + self.slice.size
            indexed = self._segment.offset_index.upper_bound_offset(end_position)
            if indexed is not None:
                return indexed
        return self._bound


def read_segments(
    segments: Segments,
    offset: int,
    max_bytes: int,
    upper_bound_offset: int,
    log_end_offset: int,
    *,
    min_one_batch: bool,
    may_wait: bool,
) -> LogRead:
    """Find the bytes from offset on. The offset lies between the log's start and its end.

    Raises:
        CorruptLogError: the first batch there is damaged.
        NotReady: the bytes must be loaded or verified first, and `may_wait` is false.
    """
    if offset >= upper_bound_offset:
        return LogRead(EMPTY_SLICE, None, offset)
    for index in range(segments.floor_index(offset), len(segments)):
        segment = segments[index]
        position = segment.position_of(offset)
        if position is not None:
            break
    else:
        # Everything between the offset and the end was compacted away.
        return LogRead(EMPTY_SLICE, None, log_end_offset)
    end = _end_position(segments, index, segment, upper_bound_offset, log_end_offset)
    size = end - position
    if size <= 0:
        return LogRead(EMPTY_SLICE, None, offset)
    if size > max_bytes:
        first_size = segment.header_at(position).size_in_bytes
        if first_size > max_bytes and not min_one_batch:
            return LogRead(EMPTY_SLICE, None, offset, first_batch_incomplete=True)
        size = min(size, max(max_bytes, first_size))
    bound = segments.end_of(index, log_end_offset)
    if not may_wait:
        check_ready(segment, position, size, bound, is_last=index == len(segments) - 1)
    elif not is_verified(segment, position, size):
        for _ in verify(segment, position, size, bound):
            pass
        # Less is verified where damage lies behind it.
        size = min(size, segment.verified_to - position)
    return LogRead(FileSlice(segment.slot.get(), position, size), segment, bound)


def _end_position(
    segments: Segments, index: int, segment: Segment, upper_bound_offset: int, log_end_offset: int
) -> int:
    """Return the position in the segment before which the upper bound allows to read."""
    if upper_bound_offset >= segments.end_of(index, log_end_offset):
        if index == len(segments) - 1:
            # A reader that follows the log will ask for exactly this offset next.
            segment.remember_position(log_end_offset, segment.size)
        return segment.size
    position = segment.position_of(upper_bound_offset)
    if position is None:
        return segment.size
    segment.remember_position(upper_bound_offset, position)
    return position
