"""What happens before the bytes of a segment are sent: they are brought into memory, and verified.

A segment that this run did not write may have been damaged since it was written, so its batches are
verified when they are first read; a sequential reader pays once for each byte. Both may take long:
a reader that must not wait is told so (`NotReady`), takes the steps, and reads again.
"""

from collections.abc import Generator
from typing import Any

from klamm.log.batches import BadBatch, iter_batches
from klamm.log.fs import File
from klamm.log.segment import Segment
from klamm.wire.errors import WireError
from klamm.wire.records.batch import BATCH_HEADER_SIZE, read_batch_header

# So much at the end of a log is taken to be in memory: it is what readers wait for.
TAIL_BYTES = 1024 * 1024


class Load:
    """Brings a range of a file into memory; for a thread, because it waits for the disk."""

    __slots__ = ("_file", "_position", "_size")

    def __init__(self, file: File, position: int, size: int) -> None:
        self._file = file
        self._position = position
        self._size = size

    def __call__(self) -> None:
        self._file.load(self._position, self._size)


Preparation = Generator[Load | None, Any, None]


class NotReady(Exception):  # noqa: N818 - something to be done, not a fault
    """The bytes are not in memory or not verified; once `steps` are done, they are."""

    def __init__(self, steps: Preparation) -> None:
        super().__init__()
        self.steps = steps


def is_verified(segment: Segment, position: int, size: int) -> bool:
    return segment.verified_from <= position and position + size <= segment.verified_to


def check_ready(
    segment: Segment, position: int, size: int, end_offset: int, *, is_last: bool
) -> None:
    """Raise NotReady unless the range can be sent at once.

    Args:
        end_offset: where the segment ends.
        is_last: whether it is the last segment of its log.
    """
    if not is_verified(segment, position, size):
        raise NotReady(verify(segment, position, size, end_offset))
    if is_last and segment.size - position <= TAIL_BYTES:
        return
    file = segment.file()
    if not file.is_cached(position, size):
        raise NotReady(_load(file, position, size))


def verify(segment: Segment, position: int, size: int, end_offset: int) -> Preparation:
    """Check the batches in a range, one at a step.

    Offsets are not under the checksum, so each batch is compared with its neighbours, and the last
    one with where the segment ends. What lies before a damaged batch counts as verified, and can be
    sent.

    Raises:
        CorruptLogError: the first batch of the range is damaged.
    """
    # What the segment is now; it may grow between two steps.
    return _verify(segment, segment.file(), segment.size, position, position + size, end_offset)


def _load(file: File, position: int, size: int) -> Preparation:
    yield Load(file, position, size)


def _verify(
    segment: Segment, file: File, file_size: int, position: int, end: int, end_offset: int
) -> Preparation:
    start = verified_from = position
    if segment.verified_from <= position <= segment.verified_to:
        verified_from, start = segment.verified_from, segment.verified_to
    # Where the batches end that were compared with the one behind them, and with that one, too.
    compared_to = verified_to = start
    next_offset = offset = 0
    damage: BadBatch | None = None
    if start < end and not file.is_cached(start, end - start):
        yield Load(file, start, end - start)
    try:
        for at, header, _ in iter_batches(file, start, file_size):
            if header.base_offset < segment.base_offset or header.next_offset > end_offset:
                raise BadBatch(at, f"offset {header.base_offset} is out of range", end_offset)
            if at >= end:
                break
            compared_to, verified_to = at, at + header.size_in_bytes
            next_offset = header.next_offset
            yield None
    except BadBatch as bad:
        damage = bad
        offset = _offset_at(file, bad.position)
        if offset < next_offset:
            # The batch before it may be the one whose offset is wrong.
            verified_to = compared_to
    if not is_verified(segment, verified_from, verified_to - verified_from):
        segment.verified_from, segment.verified_to = verified_from, verified_to
    if damage is not None and verified_to <= position:
        is_likely = segment.base_offset <= offset < end_offset
        raise segment.corrupt(damage, offset if is_likely else damage.offset) from damage


def _offset_at(file: File, position: int) -> int:
    """Return the offset with which a damaged batch seems to begin; -1 where there is none."""
    try:
        return read_batch_header(file.pread(BATCH_HEADER_SIZE, position)).base_offset
    except WireError:
        return -1
