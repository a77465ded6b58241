"""Producer state is the fold of the log: bringing it to any offset.

The newest usable snapshot is loaded and the batches behind it are applied again. Batches without a
producer id cost a header; only transaction markers are opened.
"""

from klamm.log.batches import BadBatch, iter_batches, iter_headers
from klamm.log.producer_state import ProducerState
from klamm.log.segment import Segment
from klamm.log.segments import Segments
from klamm.log.snapshots import ProducerSnapshots
from klamm.log.txn_index import AbortedTransactionEntry
from klamm.wire.errors import WireError
from klamm.wire.records.batch import RecordBatchHeader
from klamm.wire.records.control import EndTransactionMarker, read_end_transaction_marker

REPLAY_WINDOW_BYTES = 64 * 1024


def rebuild_producers(
    segments: Segments,
    snapshots: ProducerSnapshots,
    producers: ProducerState,
    end_offset: int,
    now_ms: int,
) -> None:
    """Make the state what it was when the log ended at end_offset.

    Raises:
        CorruptLogError: a batch that has to be replayed is damaged.
    """
    start = snapshots.load_newest(producers, end_offset, now_ms)
    if start is None:
        start = segments.first.base_offset
    if start >= end_offset:
        return
    for index in range(max(segments.floor_index(start), 0), len(segments)):
        segment = segments[index]
        if segment.base_offset >= end_offset:
            break
        _replay_segment(segment, producers, start, end_offset)


def _replay_segment(segment: Segment, producers: ProducerState, start: int, end: int) -> None:
    position = segment.position_of(start)
    if position is None:
        return
    try:
        headers = iter_headers(segment.file(), position, segment.size, REPLAY_WINDOW_BYTES)
        for at, header in headers:
            if header.base_offset >= end:
                return
            if header.producer_id >= 0:
                marker = _marker_at(segment, at, header) if header.is_control else None
                producers.apply(header, header.base_offset, marker=marker)
    except BadBatch as bad:
        raise segment.corrupt(bad) from bad


def _marker_at(
    segment: Segment, position: int, header: RecordBatchHeader
) -> EndTransactionMarker | None:
    end = position + header.size_in_bytes
    for _, _, batch in iter_batches(segment.file(), position, end):
        return marker_of(batch)
    raise AssertionError("a batch is never empty")


def marker_of(batch: bytes | memoryview) -> EndTransactionMarker | None:
    """Return the transaction marker of a control batch; None for other control records."""
    try:
        return read_end_transaction_marker(batch)
    except WireError:
        return None


def apply_batch(
    producers: ProducerState,
    segment: Segment,
    header: RecordBatchHeader,
    base_offset: int,
    max_timestamp: int,
    marker: EndTransactionMarker | None,
) -> None:
    """Remember a batch with a producer id that lies in the segment, and a transaction it aborts."""
    completed = producers.apply(header, base_offset, max_timestamp=max_timestamp, marker=marker)
    if completed is not None and completed.is_aborted:
        segment.txn_index.append(
            AbortedTransactionEntry(
                completed.producer_id,
                completed.first_offset,
                completed.last_offset,
                completed.last_stable_offset,
            )
        )
