"""Whether the time index of a segment says what its batches say.

Index files have no checksum, and by a time index a segment is deleted or passed over in a search. A
batch that is damaged itself says nothing about an index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klamm.log.batches import BadBatch, iter_batches
from klamm.wire.records.batch import RecordBatchHeader

if TYPE_CHECKING:
    from klamm.log.segment import Segment


def last_time_entry_is_wrong(segment: Segment, timestamp: int, offset: int) -> bool:
    """Compare the last entry with the batch that it names, and with the last ones.

    Mostly one read answers: the greatest timestamp is near the end of a segment.
    """
    is_near = False
    named = None
    try:
        for position, header in segment.last_headers():
            is_near = is_near or header.base_offset <= offset
            if header.max_timestamp > timestamp:
                # The last entries are missing.
                return _is_whole(segment, position, header)
            if is_near and named is None and header.last_offset >= offset:
                named = position, header
    except BadBatch:
        return False
    if not is_near:
        return time_entry_is_wrong(segment, timestamp, offset)
    return named is None or (named[1].max_timestamp != timestamp and _is_whole(segment, *named))


def time_entry_is_wrong(segment: Segment, timestamp: int, offset: int) -> bool:
    """Say whether the batch that an entry names has another timestamp."""
    try:
        for position, header in segment.headers_from(offset):
            if header.last_offset >= offset:
                return header.max_timestamp != timestamp and _is_whole(segment, position, header)
    except BadBatch:
        return False
    return True


def _is_whole(segment: Segment, position: int, header: RecordBatchHeader) -> bool:
    end = position + header.size_in_bytes
    try:
        return next(iter_batches(segment.file(), position, end), None) is not None
    except BadBatch:
        return False
