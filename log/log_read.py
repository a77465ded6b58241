"""Reading: from an offset to a range of bytes in one file, without touching the bytes.

As Kafka reads: a fetch is answered from one segment; it begins with the batch that holds the
offset (or the next one, when compaction removed it), ends before the upper bound, and is cut at
the byte limit, so the last batch may be partial. The first batch is returned whole even when it
alone exceeds the limit, if the caller asks for that (`min_one_batch`).
"""

from klamm.log.open_files import FileSlice
from klamm.log.segment import Segment
from klamm.log.segments import Segments


class LogRead:
    """The answer to a read.

    Attributes:
        records: the bytes to send, or b"" when there is nothing to read below the bound.
        segment: where they lie; None when there are none.
        first_batch_incomplete: there is data, but the limit is smaller than its first batch.
    """

    __slots__ = ("first_batch_incomplete", "records", "segment")

    def __init__(
        self,
        records: FileSlice | bytes,
        segment: Segment | None = None,
        first_batch_incomplete: bool = False,
    ) -> None:
        self.records = records
        self.segment = segment
        self.first_batch_incomplete = first_batch_incomplete

    def __len__(self) -> int:
        return len(self.records)


NOTHING = LogRead(b"")


def read_segments(
    segments: Segments,
    offset: int,
    max_bytes: int,
    upper_bound_offset: int,
    log_end_offset: int,
    min_one_batch: bool,
) -> LogRead:
    """Find the bytes from offset on. The offset lies between the log's start and its end.

    Raises:
        CorruptLogError: the batches there are damaged.
    """
    if offset >= upper_bound_offset:
        return NOTHING
    for index in range(segments.floor_index(offset), len(segments)):
        segment = segments[index]
        position = segment.position_of(offset)
        if position is not None:
            break
    else:
        # Everything between the offset and the end was compacted away.
        return NOTHING
    end = _end_position(segments, index, segment, upper_bound_offset, log_end_offset)
    size = end - position
    if size <= 0:
        return NOTHING
    if size > max_bytes:
        first_size = segment.header_at(position).size_in_bytes
        if first_size > max_bytes and not min_one_batch:
            return LogRead(b"", segment, first_batch_incomplete=True)
        size = min(size, max(max_bytes, first_size))
    if not segment.verified_from <= position <= position + size <= segment.verified_to:
        segment.verify(position, size)
    return LogRead(FileSlice(segment.slot.get(), position, size), segment)


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
