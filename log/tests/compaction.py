"""What the tests of compaction share: a writer of keyed batches, and a reader of everything."""

from collections.abc import Callable
from typing import NamedTuple

from klamm.log.append_origin import AppendOrigin
from klamm.log.cleaner.cleaner import Cleaner, CleanerConfig
from klamm.log.cleaner.copy import CleanerStats
from klamm.log.cleaner.pace import Throttle
from klamm.log.config import LogConfig
from klamm.log.manager import LogManager
from klamm.log.partition_log import PartitionLog
from klamm.log.tests.support import NOW_MS
from klamm.log.work import Step, Work, run_inline
from klamm.wire.records.batch import RecordBatchHeader, read_batch_header
from klamm.wire.records.control import build_end_transaction_marker
from klamm.wire.records.record import Record, build_batch, iter_records

COMPACT = frozenset({"compact"})
# Small enough that a few batches fill a segment; every batch gets an index entry.
CONFIG = LogConfig(
    cleanup_policy=COMPACT,
    segment_bytes=400,
    index_interval_bytes=1,
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=1000,
)

KeyValue = tuple[bytes | None, bytes | None]


class Batch(NamedTuple):
    """One batch as it lies in the log."""

    header: RecordBatchHeader
    records: tuple[Record, ...]


def write(
    log: PartitionLog,
    *records: KeyValue,
    now_ms: int = NOW_MS,
    timestamp: int = NOW_MS,
    codec: int = 0,
    producer_id: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    transactional: bool = False,
) -> int:
    """Append one batch; return its base offset."""
    data = build_batch(
        [(key, value, (), timestamp + index) for index, (key, value) in enumerate(records)],
        codec=codec,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
    )
    return log.append(data, leader_epoch=0, now_ms=now_ms).base_offset


def end_transaction(
    log: PartitionLog, producer_id: int, epoch: int, *, commit: bool, timestamp: int = NOW_MS
) -> int:
    """Write a marker; return its offset."""
    marker = build_end_transaction_marker(
        producer_id=producer_id,
        producer_epoch=epoch,
        commit=commit,
        coordinator_epoch=1,
        timestamp=timestamp,
    )
    result = log.append(marker, leader_epoch=0, now_ms=timestamp, origin=AppendOrigin.COORDINATOR)
    return result.base_offset


def settle(log: PartitionLog, *, rolls: bool = True) -> None:
    """Let everything that the log holds be compacted, if it rolls."""
    if rolls:
        log.roll(NOW_MS)
    log.flush()
    log.advance_high_watermark(log.log_end_offset)


def cleaner(manager: LogManager, **settings: int) -> Cleaner:
    return Cleaner(manager, Throttle(1e300), CleanerConfig(**settings))


def compact(manager: LogManager, now_ms: int = NOW_MS, **settings: int) -> CleanerStats | None:
    """Compact the log that is due, if any."""
    chosen = cleaner(manager, **settings)
    candidate = chosen.choose(manager, now_ms)
    return None if candidate is None else run_inline(chosen.clean(candidate, now_ms))


def run_until(work: Work[CleanerStats | None], end: Callable[[], bool]) -> Step:
    """Run a work step by step until something is true; return the step that comes next."""
    step = next(work)
    while not end():
        step = work.send(step() if step is not None else None)
    return step


def run_to_end(work: Work[CleanerStats | None], step: Step) -> CleanerStats | None:
    """Run the rest of a work, of which this step comes next."""
    try:
        while True:
            try:
                result = step() if step is not None else None
            except Exception as error:
                step = work.throw(error)
            else:
                step = work.send(result)
    except StopIteration as end:
        found: CleanerStats | None = end.value
        return found


def batches_of(log: PartitionLog) -> list[Batch]:
    """Return everything that the segments hold, control batches too."""
    found: list[Batch] = []
    for segment in log.segments:
        data = memoryview(segment.file().pread(segment.size, 0))
        while data:
            header = read_batch_header(data)
            found.append(Batch(header, tuple(iter_records(data))))
            data = data[header.size_in_bytes :]
    return found


def records_of(log: PartitionLog) -> list[tuple[int, bytes | None, bytes | None]]:
    """Return (offset, key, value) of all records that are not control records."""
    return [
        (record.offset, record.key, record.value)
        for batch in batches_of(log)
        if not batch.header.is_control
        for record in batch.records
    ]


def values(log: PartitionLog) -> list[tuple[int, bytes | None]]:
    """Return (offset, value) of all records that are not control records."""
    return [(offset, value) for offset, _, value in records_of(log)]


def committed_records(log: PartitionLog) -> list[tuple[int, bytes | None, bytes | None]]:
    """Return what a consumer of committed data gets, dropping what the log says was aborted."""
    found: list[tuple[int, bytes | None, bytes | None]] = []
    aborted = log.aborted_transactions(log.log_start_offset, log.last_stable_offset)
    upcoming = sorted(aborted, key=lambda entry: entry.first_offset)
    aborting: set[int] = set()
    for header, records in batches_of(log):
        if header.base_offset >= log.last_stable_offset:
            break
        while upcoming and upcoming[0].first_offset <= header.last_offset:
            aborting.add(upcoming.pop(0).producer_id)
        if header.is_control:
            aborting.discard(header.producer_id)
            continue
        if header.is_transactional and header.producer_id in aborting:
            continue
        found += [(record.offset, record.key, record.value) for record in records]
    return found
