"""The thread's part of a compaction: reading segments, and writing what is left of them.

Nothing here touches the log or its objects: files are opened by their names, and what is written
ends in `.cleaned`, which every start removes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from klamm.log.batches import BadBatch, iter_batches
from klamm.log.cleaner.batch_filter import BatchFilter
from klamm.log.cleaner.key_map import KeyMap
from klamm.log.cleaner.pace import Pace
from klamm.log.cleaner.plan import CleaningPlan, SegmentToClean, group_segments
from klamm.log.cleaner.scan import scan_keys
from klamm.log.cleaner.segment_writer import SegmentWriter
from klamm.log.cleaner.transactions import CleanedTransactions
from klamm.log.errors import CorruptLogError
from klamm.log.fs import FileSystem, read_file
from klamm.log.layout import (
    CLEANED_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    parse_segment_file,
    segment_file,
)
from klamm.log.txn_index import AbortedTransactionEntry, TransactionIndex
from klamm.wire.records.batch import RecordBatchHeader
from klamm.wire.records.record import open_payload


@dataclass(slots=True)
class CleanerStats:
    """What a compaction has read and written.

    Attributes:
        map_bytes_read: read to find the last offset of each key.
        bytes_read: read to be copied.
        keyless_records: dropped because they have no key.
        keys: distinct ones in the dirty part.
    """

    map_bytes_read: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_written: int = 0
    keyless_records: int = 0
    keys: int = 0

    def __str__(self) -> str:
        keyless = f" ({self.keyless_records} had no key)" if self.keyless_records else ""
        return (
            f"{self.records_written} of {self.records_read} records"
            f" and {self.bytes_written} of {self.bytes_read} bytes are left{keyless};"
            f" {self.keys} keys were found in {self.map_bytes_read} bytes that were new"
        )


class CleanedSegment(NamedTuple):
    """What was written and synced in the place of some segments."""

    originals: tuple[int, ...]
    size: int


class Copier:
    """One round of a compaction.

    Args:
        plan: what to do.
        key_map: empty.
        pace: told of every batch.
        stats: added to.

    Attributes:
        groups: segments that are written as one, in their order.
        end_offset: the clean part ends here once all groups are swapped.
    """

    def __init__(
        self, fs: FileSystem, plan: CleaningPlan, key_map: KeyMap, pace: Pace, stats: CleanerStats
    ) -> None:
        self._fs = fs
        self._plan = plan
        self._key_map = key_map
        self._pace = pace
        self._stats = stats
        self._transactions = CleanedTransactions([])
        self._filter: BatchFilter | None = None
        self.groups: list[list[SegmentToClean]] = []
        self.end_offset = plan.first_dirty_offset

    # --- before the first group ---

    def prepare(self) -> None:
        """Build the key map and group the segments.

        Raises:
            CleaningAborted: the compaction was cancelled.
            CorruptLogError, WireError: something in the log is damaged.
        """
        plan = self._plan
        self._pace.check()
        remove_leftovers(self._fs, plan.directory)
        aborted = self._read_aborted_transactions()
        self._build_key_map(aborted)
        self.end_offset = self._key_map.last_offset + 1
        self._stats.keys += len(self._key_map)
        self._stats.keyless_records += self._key_map.keyless
        segments = [self._with_index_sizes(s) for s in plan.segments]
        read = [s for s in segments if s.base_offset < self.end_offset]
        following = segments[len(read) : len(read) + 1]
        end = following[0].base_offset if following else plan.first_uncleanable_offset
        self.groups = group_segments(read, plan.config, end)
        self._transactions = CleanedTransactions(aborted)
        self._filter = BatchFilter(
            self._key_map,
            self._transactions,
            plan.last_records,
            plan.now_ms,
            plan.config.delete_retention_ms,
        )

    def _path(self, base_offset: int, suffix: str) -> str:
        return f"{self._plan.directory}/{segment_file(base_offset, suffix)}"

    def _with_index_sizes(self, segment: SegmentToClean) -> SegmentToClean:
        sizes = []
        for suffix in (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            path = self._path(segment.base_offset, suffix)
            sizes.append(self._fs.size(path) if self._fs.exists(path) else 0)
        return SegmentToClean(segment.base_offset, segment.size, *sizes)

    def _read_aborted_transactions(self) -> list[AbortedTransactionEntry]:
        """Return those that begin below the end, wherever their markers are."""
        plan = self._plan
        aborted = list(plan.aborted)
        for base_offset in (*(s.base_offset for s in plan.segments), *plan.later_base_offsets):
            path = self._path(base_offset, TXN_INDEX_SUFFIX)
            if self._fs.exists(path):
                data = read_file(self._fs, path)
                aborted += TransactionIndex.decode(data, base_offset, path).entries
        return [entry for entry in aborted if entry.first_offset < plan.first_uncleanable_offset]

    def _build_key_map(self, aborted: list[AbortedTransactionEntry]) -> None:
        plan = self._plan
        key_map = self._key_map
        start = plan.first_dirty_offset
        transactions = CleanedTransactions(e for e in aborted if e.last_offset >= start)
        for index, segment in enumerate(plan.segments):
            is_last = index + 1 == len(plan.segments)
            end = plan.first_uncleanable_offset if is_last else plan.segments[index + 1].base_offset
            if end <= start:
                continue
            for header, batch in self._batches(segment):
                if header.last_offset < start:
                    continue
                self._stats.map_bytes_read += len(batch)
                if header.is_control:
                    transactions.on_control_batch(header, batch)
                elif not key_map.has_room(header.record_count):
                    return
                elif transactions.on_batch(header):
                    key_map.put_aborted(header.record_count)
                else:
                    payload = bytes(open_payload(batch, header))
                    key_map.put(*scan_keys(payload, header.record_count))
                key_map.last_offset = header.last_offset
            # Nothing is left of what lay between the last batch and the end.
            key_map.last_offset = end - 1

    def _batches(self, segment: SegmentToClean) -> Iterator[tuple[RecordBatchHeader, memoryview]]:
        path = self._path(segment.base_offset, LOG_SUFFIX)
        file = self._fs.open(path)
        try:
            for _, header, batch in iter_batches(file, 0, segment.size):
                yield header, batch
                self._pace.moved(len(batch))
        except BadBatch as bad:
            offset = segment.base_offset if bad.offset is None else bad.offset
            raise CorruptLogError(path, offset, bad.position, bad.reason) from bad

    # --- each group ---

    def copy(self, group: list[SegmentToClean]) -> CleanedSegment:
        """Write what is left of a group, and sync it.

        Raises:
            CleaningAborted: the compaction was cancelled.
            CorruptLogError, WireError: something in the log is damaged.
            OSError: the disk refuses.
        """
        assert self._filter is not None
        records_read, records_kept = self._filter.records_read, self._filter.records_kept
        self._pace.check()
        # What was renamed for the last group comes first on the disk, whatever follows now.
        self._fs.sync_directory(self._plan.directory)
        output = SegmentWriter(self._fs, self._plan, group[0].base_offset, self._pace)
        filled = [segment for segment in group if segment.size]
        for segment in filled:
            left = segment.size
            for header, batch in self._batches(segment):
                left -= len(batch)
                self._stats.bytes_read += len(batch)
                is_last = left == 0 and segment is filled[-1]
                kept = self._filter.keep(header, batch, is_last=is_last)
                if kept is not None:
                    output.write(kept)
        size = output.close(self._transactions.take_kept())
        self._stats.records_read += self._filter.records_read - records_read
        self._stats.records_written += self._filter.records_kept - records_kept
        self._stats.bytes_written += size
        return CleanedSegment(tuple(segment.base_offset for segment in group), size)


def remove_leftovers(fs: FileSystem, directory: str) -> None:
    """Remove what an earlier compaction could not finish.

    As long as a `.cleaned` file is there, start-up drops every `.swap` behind it. So none may be
    left when the next compaction begins, and a `.swap` goes first.
    """
    for suffix in (SWAP_SUFFIX, CLEANED_SUFFIX):
        for name in fs.list_files(directory):
            parsed = parse_segment_file(name)
            if parsed is not None and parsed[2] == suffix:
                fs.remove(f"{directory}/{name}")
