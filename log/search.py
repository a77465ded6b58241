"""Searching a log by timestamp, and for aborted transactions.

These are the only reads that open records: a timestamp search returns the record's own offset and
timestamp, so the one batch that holds it is decompressed.
"""

from collections.abc import Callable, Generator
from functools import partial
from typing import NamedTuple

from klamm.log.batches import BadBatch, iter_batches
from klamm.log.errors import LogError
from klamm.log.fs import File
from klamm.log.segment import Segment
from klamm.log.segments import Segments
from klamm.log.txn_index import AbortedTransactionEntry
from klamm.wire.errors import ErrorCode, WireError
from klamm.wire.records.batch import RecordBatchHeader
from klamm.wire.records.record import iter_records


class TimestampAndOffset(NamedTuple):
    """A record found by its timestamp; the epoch is -1 when its batch has none."""

    timestamp: int
    offset: int
    leader_epoch: int


class AbortedTransaction(NamedTuple):
    """What a fetch of committed data tells the consumer to drop."""

    producer_id: int
    first_offset: int


# Opening a batch may take long (it is decompressed, and walked in Python), so a search hands out
# each opening as a function of its own: whoever runs the search may do that in a thread, and sends
# the result back.
Opening = Callable[[], TimestampAndOffset | None]
Search = Generator[Opening, TimestampAndOffset | None, TimestampAndOffset | None]


def run_inline(search: Search) -> TimestampAndOffset | None:
    """Run a search to its end, opening batches here and now."""
    try:
        opening = next(search)
        while True:
            try:
                result = opening()
            except Exception as error:
                opening = search.throw(error)
            else:
                opening = search.send(result)
    except StopIteration as end:
        found: TimestampAndOffset | None = end.value
        return found


def search_timestamp(segments: Segments, timestamp: int, log_start_offset: int) -> Search:
    """Find the first record at or above log_start_offset that is not older than timestamp."""
    offset = log_start_offset
    while True:
        # While a batch was opened, compaction may have put one segment in the place of several.
        index = max(segments.floor_index(offset), 0)
        segment = segments[index]
        following = segments[index + 1].base_offset if index + 1 < len(segments) else None
        if segment.max_timestamp >= timestamp:
            found = yield from _search_segment(segment, timestamp, offset)
            # Kafka stops at the first such segment, and misses what follows when all of its
            # matching records have been deleted.
            if found is not None:
                return found
        if following is None:
            return None
        offset = following


def _search_segment(segment: Segment, timestamp: int, start_offset: int) -> Search:
    indexed_offset = segment.search_from(timestamp)
    file = segment.file()
    try:
        for position, header in segment.headers_from(max(indexed_offset, start_offset)):
            if header.max_timestamp < timestamp or header.last_offset < start_offset:
                continue
            found = yield partial(_first_record, file, position, header, timestamp, start_offset)
            if found is not None:
                return found
    except BadBatch as bad:
        raise segment.corrupt(bad) from bad
    return None


def search_max_timestamp(segments: Segments) -> Search:
    """Find the first record with the greatest timestamp of the log."""
    # max() keeps the first of equal ones.
    segment = max(segments, key=lambda candidate: candidate.max_timestamp)
    timestamp = segment.max_timestamp
    try:
        for position, header in segment.headers_from(segment.offset_of_max_timestamp):
            if header.max_timestamp == timestamp:
                return (yield partial(_first_record, segment.file(), position, header, timestamp))
    except BadBatch as bad:
        raise segment.corrupt(bad) from bad
    return None


def _first_record(
    file: File, position: int, header: RecordBatchHeader, timestamp: int, log_start_offset: int = 0
) -> TimestampAndOffset | None:
    """Open the batch at position, after its checksum was verified; safe in any thread.

    Raises:
        BadBatch: the batch is damaged.
        LogError: CORRUPT_MESSAGE. The checksum is right, so this is what the producer sent, and
            no damage of the disk.
    """
    end = position + header.size_in_bytes
    try:
        for _, _, batch in iter_batches(file, position, end):
            for record in iter_records(batch):
                if record.timestamp >= timestamp and record.offset >= log_start_offset:
                    epoch = header.partition_leader_epoch
                    return TimestampAndOffset(record.timestamp, record.offset, epoch)
    except WireError as error:
        raise LogError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    return None


def collect_aborted_transactions(
    segments: Segments, fetch_offset: int, upper_bound_offset: int
) -> list[AbortedTransaction]:
    """Return the aborted transactions that overlap [fetch_offset, upper_bound_offset)."""
    found: list[AbortedTransactionEntry] = []
    for index in range(max(segments.floor_index(fetch_offset), 0), len(segments)):
        if segments[index].txn_index.collect(fetch_offset, upper_bound_offset, found):
            break
    return [AbortedTransaction(entry.producer_id, entry.first_offset) for entry in found]
