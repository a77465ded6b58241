"""One segment: a file of batches, and the indexes that make it searchable.

Only the last segment of a log is written to. Its indexes live in memory and are written out when
it rolls or closes; those of older segments are loaded on demand (index_cache.py).
"""

import logging
import zlib
from collections.abc import Iterator, Sequence
from itertools import chain

from klamm.log.batches import BadBatch, iter_headers
from klamm.log.config import DEFAULT_CONFIG, INT32_MAX, LogConfig
from klamm.log.errors import CorruptFileError, CorruptLogError
from klamm.log.fs import Buffer, File, read_file
from klamm.log.index_cache import IndexCache
from klamm.log.layout import (
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    segment_file,
)
from klamm.log.offset_index import ENTRY_SIZE as OFFSET_INDEX_ENTRY_SIZE
from klamm.log.offset_index import OffsetIndex
from klamm.log.open_files import OpenFiles
from klamm.log.time_index import ENTRY_SIZE as TIME_INDEX_ENTRY_SIZE
from klamm.log.time_index import NO_TIMESTAMP, TimeIndex
from klamm.log.time_index_check import last_time_entry_is_wrong, time_entry_is_wrong
from klamm.log.txn_index import TransactionIndex
from klamm.wire.records.batch import RecordBatchHeader

logger = logging.getLogger(__name__)

# Batch starts that readers asked for lately: a consumer that follows the log asks next for the
# offset where its last read ended, and this spares it the index and the scan.
KNOWN_POSITIONS_MAX = 32


class Segment:
    """The batches from base_offset on, up to the base offset of the next segment.

    Args:
        files: the pool that the file is opened through.
        cache: the budget for indexes of segments that are not active.
        directory: path of the partition's directory.
        created_ms: when it was made or loaded; decides when to roll without timestamps.
        name_suffix: what its file names end in while it is not, or no longer, part of a log.
    """

    __slots__ = (
        "_cache",
        "_files",
        "_is_active",
        "_known_positions",
        "_max_timestamp",
        "_name_suffix",
        "_offset_index",
        "_offset_of_max_timestamp",
        "_time_index",
        "_txn_index",
        "base_offset",
        "bytes_since_last_index_entry",
        "created_ms",
        "directory",
        "first_batch_timestamp",
        "size",
        "slot",
        "verified_from",
        "verified_to",
    )

    def __init__(
        self,
        files: OpenFiles,
        cache: IndexCache,
        directory: str,
        base_offset: int,
        created_ms: int,
        name_suffix: str = "",
    ) -> None:
        self._files = files
        self._cache = cache
        self._is_active = False
        self._known_positions: dict[int, int] = {}
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._txn_index: TransactionIndex | None = None
        # Of the batch with the greatest timestamp; None until the time index was asked.
        self._max_timestamp: int | None = None
        self._offset_of_max_timestamp = base_offset
        self._name_suffix = name_suffix
        self.directory = directory
        self.base_offset = base_offset
        self.created_ms = created_ms
        self.bytes_since_last_index_entry = 0
        # Max timestamp of the first batch, which decides when the segment is old enough to roll;
        # None until known.
        self.first_batch_timestamp: int | None = None
        self.size = 0
        self.slot = files.slot(self.path(LOG_SUFFIX))
        # Bytes whose checksums were verified in this run, or that were written in it.
        self.verified_from = 0
        self.verified_to = 0

    def __repr__(self) -> str:
        return f"Segment({self.slot.path}, size={self.size})"

    def path(self, suffix: str) -> str:
        return f"{self.directory}/{segment_file(self.base_offset, suffix)}{self._name_suffix}"

    # --- creation and loading ---

    def create(self) -> None:
        """Make the (empty) file of a new active segment; its name is not synced yet."""
        file = self.slot.get(create=True)
        if file.size() > 0:
            # Left by a removal that failed before: the log ends here, so nothing in it counts.
            file.truncate(0)
        self.size = 0
        self.activate()
        self.reset_indexes()

    def load(self) -> None:
        """Take the file that is there."""
        self.size = self._files.fs.size(self.slot.path)

    def activate(self) -> None:
        """Keep the indexes in memory from now on."""
        self._is_active = True
        self._cache.remove(self)

    def reset_indexes(self) -> None:
        """Forget what the index files say and start with empty indexes."""
        self._offset_index = OffsetIndex(self.base_offset)
        self._time_index = TimeIndex(self.base_offset)
        self._txn_index = TransactionIndex()
        self._max_timestamp = NO_TIMESTAMP
        self._offset_of_max_timestamp = self.base_offset
        self.bytes_since_last_index_entry = 0

    # --- indexes ---

    @property
    def offset_index(self) -> OffsetIndex:
        index = self._offset_index
        if index is None:
            index = self._load_offset_index()
            self._touch_cache()
        return index

    @property
    def time_index(self) -> TimeIndex:
        index = self._time_index
        if index is None:
            index = self._load_time_index()
            self._touch_cache()
        return index

    @property
    def txn_index(self) -> TransactionIndex:
        index = self._txn_index
        if index is None:
            index = self.load_txn_index()
            self._touch_cache()
        return index

    def _touch_cache(self) -> None:
        if not self._is_active:
            self._cache.touch(self)

    def index_bytes(self) -> int:
        indexes = (self._offset_index, self._time_index, self._txn_index)
        return 256 + sum(index.size_in_bytes for index in indexes if index is not None)

    def forget_indexes(self) -> None:
        self._offset_index = None
        self._time_index = None
        self._txn_index = None

    def _load_offset_index(self) -> OffsetIndex:
        path = self.path(OFFSET_INDEX_SUFFIX)
        try:
            data = read_file(self._files.fs, path)
            index = OffsetIndex.decode(data, self.base_offset, self.size, path)
        except (CorruptFileError, FileNotFoundError):
            self._rebuild_from_headers()
            assert self._offset_index is not None
            return self._offset_index
        self._offset_index = index
        return index

    def _load_time_index(self) -> TimeIndex:
        path = self.path(TIME_INDEX_SUFFIX)
        try:
            index = TimeIndex.decode(read_file(self._files.fs, path), self.base_offset, path)
        except (CorruptFileError, FileNotFoundError):
            self._rebuild_from_headers()
            assert self._time_index is not None
            return self._time_index
        self._time_index = index
        return index

    def load_txn_index(self) -> TransactionIndex:
        """Read the transaction index; there is none when there is no file.

        Raises:
            CorruptFileError: the caller recovers the segment, which needs producer state.
        """
        path = self.path(TXN_INDEX_SUFFIX)
        if self._files.fs.exists(path):
            data = read_file(self._files.fs, path)
            self._txn_index = TransactionIndex.decode(data, self.base_offset, path)
        else:
            self._txn_index = TransactionIndex()
        return self._txn_index

    def _rebuild_from_headers(self) -> None:
        """Make the offset and time index anew; the interval is Kafka's default, which is legal."""
        txn_index = self._txn_index
        self.reset_indexes()
        self._txn_index = txn_index
        interval = DEFAULT_CONFIG.index_interval_bytes
        try:
            for position, header in iter_headers(self.slot.get(), 0, self.size):
                self.note_batch(position, header, interval)
        except BadBatch as bad:
            # Half of them would make the segment look older than it is.
            self._offset_index = self._time_index = self._max_timestamp = None
            raise self.corrupt(bad) from bad
        self.add_last_time_entry()

    def corrupt(self, bad: BadBatch, offset: int | None = None) -> CorruptLogError:
        """Return the error that names the damaged place."""
        if offset is None:
            offset = self.base_offset if bad.offset is None else bad.offset
        return CorruptLogError(self.slot.path, offset, bad.position, bad.reason)

    def note_batch(self, position: int, header: RecordBatchHeader, index_interval: int) -> None:
        """Index a batch that lies at this position. Batches come in the order of the file."""
        last_offset = header.base_offset + header.last_offset_delta
        if position == 0:
            self.first_batch_timestamp = header.max_timestamp
        self._note(last_offset, header.max_timestamp, position, index_interval)
        self.bytes_since_last_index_entry += header.size_in_bytes

    def _note(
        self, last_offset: int, max_timestamp: int, position: int, index_interval: int
    ) -> None:
        if max_timestamp > self.max_timestamp:
            self._max_timestamp = max_timestamp
            self._offset_of_max_timestamp = last_offset
        if self.bytes_since_last_index_entry > index_interval:
            self.offset_index.append(last_offset, position)
            self.time_index.maybe_append(self.max_timestamp, self._offset_of_max_timestamp)
            self.bytes_since_last_index_entry = 0

    @property
    def max_timestamp(self) -> int:
        """The greatest timestamp in the segment, -1 when it has none."""
        if self._max_timestamp is None:
            self._max_timestamp, self._offset_of_max_timestamp = self._last_time_entry()
        return self._max_timestamp

    @property
    def largest_timestamp(self) -> int:
        """The age of the segment: its greatest timestamp, or when its file was last written."""
        timestamp = self.max_timestamp
        return timestamp if timestamp >= 0 else self._files.fs.modified_ms(self.slot.path)

    @property
    def first_timestamp(self) -> int:
        """The greatest timestamp of the first batch; -1 when there is none."""
        if self.size == 0:
            return NO_TIMESTAMP
        if self.first_batch_timestamp is None:
            self.first_batch_timestamp = self.header_at(0).max_timestamp
        return self.first_batch_timestamp

    @property
    def offset_of_max_timestamp(self) -> int:
        """Last offset of the first batch that holds the greatest timestamp."""
        if self._max_timestamp is None:
            self._max_timestamp, self._offset_of_max_timestamp = self._last_time_entry()
        return self._offset_of_max_timestamp

    def _last_time_entry(self) -> tuple[int, int]:
        """Return the greatest timestamp by the time index, which is made anew if it is wrong."""
        timestamp, offset = self._read_last_time_entry()
        if self.size == 0 or not last_time_entry_is_wrong(self, timestamp, offset):
            return timestamp, offset
        self._rebuild_time_index()
        return self.time_index.last_entry

    def _read_last_time_entry(self) -> tuple[int, int]:
        """Return the last time index entry, reading no more than it when that is possible."""
        if self._time_index is None and not self._is_active:
            data = self._last_bytes_of(TIME_INDEX_SUFFIX, TIME_INDEX_ENTRY_SIZE)
            if data is not None:
                entry = TimeIndex.decode_entry(data, self.base_offset)
                if entry[0] >= 0 and entry[1] >= self.base_offset:
                    return entry
        return self.time_index.last_entry

    def _last_bytes_of(self, suffix: str, entry_size: int) -> bytes | None:
        """Return the last entry of an index file; None where there is none."""
        path = self.path(suffix)
        fs = self._files.fs
        if not fs.exists(path):
            return None
        file = fs.open(path)
        size = file.size()
        if size < entry_size or size % entry_size:
            return None
        return file.pread(entry_size, size - entry_size)

    def last_headers(self) -> Iterator[tuple[int, RecordBatchHeader]]:
        """Yield (position, header) from the last offset index entry on, without the whole index."""
        if self._offset_index is None:
            data = self._last_bytes_of(OFFSET_INDEX_SUFFIX, OFFSET_INDEX_ENTRY_SIZE)
            if data is not None:
                offset, position = OffsetIndex.decode_entry(data, self.base_offset)
                if 0 < position < self.size:
                    headers = iter_headers(self.slot.get(), position, self.size)
                    first = next(headers, None)
                    if first is not None and first[1].last_offset == offset:
                        return chain((first,), headers)
        return self.headers_from(INT32_MAX + self.base_offset)

    def _rebuild_time_index(self) -> None:
        path = self.path(TIME_INDEX_SUFFIX)
        logger.warning("%s does not fit its segment; it is made anew", path)
        self._rebuild_from_headers()

    def search_from(self, timestamp: int) -> int:
        """Return an offset before which no batch has that timestamp or a greater one."""
        entry = self.time_index.floor_entry(timestamp)
        if entry is not None and time_entry_is_wrong(self, *entry):
            self._rebuild_time_index()
        return self.time_index.lookup(timestamp)

    # --- writing ---

    def append(
        self,
        chunks: Sequence[Buffer],
        size: int,
        last_offset: int,
        max_timestamp: int,
        index_interval: int,
    ) -> None:
        """Write batches at the end and index them as one.

        Raises:
            OSError: the write failed; some of the bytes may be in the file (see restore_size).
        """
        assert self._is_active
        position = self.size
        slot = self.slot
        slot.used = True
        (slot.file or slot.get()).append(chunks, size)
        if position == 0:
            self.first_batch_timestamp = max_timestamp
        if (
            self.bytes_since_last_index_entry > index_interval
            or self._max_timestamp is None
            or max_timestamp > self._max_timestamp
        ):
            self._note(last_offset, max_timestamp, position, index_interval)
        self.bytes_since_last_index_entry += size
        if self.verified_to == position:
            self.verified_to = position + size
        self.size = position + size

    def write(self, chunks: Sequence[Buffer], size: int) -> None:
        """Write batches at the end, which the caller indexes one by one (note_batch).

        Raises:
            OSError: as append.
        """
        assert self._is_active
        if self._max_timestamp is None:
            # The time index knows nothing of what comes now.
            self._max_timestamp, self._offset_of_max_timestamp = self._last_time_entry()
        position = self.size
        self.slot.get().append(chunks, size)
        if self.verified_to == position:
            self.verified_to = position + size
        self.size = position + size

    def restore_size(self) -> None:
        """Cut off what a failed append may have left behind the last batch."""
        self.slot.get().truncate(self.size)

    def should_roll(
        self, size: int, max_timestamp: int, last_offset: int, now_ms: int, config: LogConfig
    ) -> bool:
        """Say whether a batch of that size, time and last offset belongs into a new segment."""
        if self.size > config.segment_bytes - size:
            return True
        if last_offset - self.base_offset > INT32_MAX:
            return True
        if self.size == 0:
            return False
        first = self.first_batch_timestamp
        if first is None:
            first = self.first_timestamp
        waited_ms = max_timestamp - first if first >= 0 else now_ms - self.created_ms
        if waited_ms > config.segment_ms:
            return True
        if waited_ms > config.max_compaction_lag_ms and config.compacts:
            # Only what is not active can be compacted.
            return True
        if config.segment_jitter_ms and waited_ms > config.segment_ms - self._jitter_ms(config):
            return True
        index_bytes_max = config.segment_index_bytes
        return self.offset_index.is_full(index_bytes_max) or self.time_index.is_full(
            index_bytes_max
        )

    def _jitter_ms(self, config: LogConfig) -> int:
        """Return how much earlier this segment rolls, so that not all partitions roll at once."""
        # Any number will do that differs from segment to segment and stays the same for each.
        return zlib.crc32(self.slot.path.encode()) % min(
            config.segment_jitter_ms, config.segment_ms
        )

    def add_last_time_entry(self) -> None:
        self.time_index.maybe_append(self.max_timestamp, self.offset_of_max_timestamp)

    def write_indexes(self) -> list[str]:
        """Write the index files from memory; return their paths, which are not synced yet."""
        self.add_last_time_entry()
        written = [
            self._write_index(OFFSET_INDEX_SUFFIX, self.offset_index.encode()),
            self._write_index(TIME_INDEX_SUFFIX, self.time_index.encode()),
        ]
        txn_index = self.txn_index.encode()
        if txn_index or self._files.fs.exists(self.path(TXN_INDEX_SUFFIX)):
            written.append(self._write_index(TXN_INDEX_SUFFIX, txn_index))
        return written

    def _write_index(self, suffix: str, data: bytes) -> str:
        path = self.path(suffix)
        file = self._files.fs.open(path, create=True)
        file.truncate(0)
        file.append([data], len(data))
        return path

    def deactivate(self) -> None:
        """Leave the indexes to the cache: the next segment is the active one."""
        self._is_active = False
        self._cache.touch(self)

    def truncate_to(self, offset: int, created_ms: int) -> None:
        """Drop all batches that end at or above offset, and their index entries."""
        position = self.position_of(offset)
        offset_index, time_index, txn_index = self.offset_index, self.time_index, self.txn_index
        self.activate()
        self._offset_index, self._time_index, self._txn_index = offset_index, time_index, txn_index
        offset_index.truncate_to(offset)
        time_index.truncate_to(offset)
        txn_index.truncate_to(offset)
        self._known_positions.clear()
        if position is not None:
            self.slot.get().truncate(position)
            self.size = position
            self.verified_to = min(self.verified_to, position)
        if self.size == 0:
            self.created_ms = created_ms
            self.first_batch_timestamp = None
        self.bytes_since_last_index_entry = 0
        self._find_max_timestamp()

    def cut_at(self, position: int) -> None:
        """Drop the bytes from position on, which no index knows."""
        self.slot.get().truncate(position)
        self.size = position
        self.verified_to = min(self.verified_to, position)
        self._known_positions.clear()
        if position == 0:
            self.first_batch_timestamp = None

    def _find_max_timestamp(self) -> None:
        """Find the greatest timestamp behind the last time index entry, too."""
        timestamp, offset = self.time_index.last_entry
        for _, header in self.headers_from(offset):
            if header.max_timestamp > timestamp:
                timestamp, offset = header.max_timestamp, header.last_offset
        self._max_timestamp, self._offset_of_max_timestamp = timestamp, offset

    # --- reading ---

    def position_of(self, offset: int) -> int | None:
        """Return where the first batch that ends at or above offset begins; None without one."""
        position = self._known_positions.get(offset)
        if position is not None:
            return position if position < self.size else None
        try:
            for position, header in self.headers_from(offset):
                if header.base_offset + header.last_offset_delta >= offset:
                    return position
        except BadBatch as bad:
            raise self.corrupt(bad, offset) from bad
        return None

    def headers_from(self, offset: int) -> Iterator[tuple[int, RecordBatchHeader]]:
        """Yield (position, header) of the batches from the index entry at or below offset on.

        The entry says where its batch ends; when the batch says otherwise, the index is damaged (it
        has no checksum) and is made anew, so that no reader is led past what it asked for.

        Raises:
            BadBatch: there is no valid batch at some position.
        """
        indexed_offset, start = self.offset_index.lookup(offset)
        headers = iter_headers(self.slot.get(), start, self.size)
        if start == 0:
            return headers
        try:
            first = next(headers, None)
        except BadBatch:
            first = None
        if first is not None and first[1].last_offset == indexed_offset:
            return chain((first,), headers)
        logger.warning("%s does not fit its segment; it is made anew", self.path(".index"))
        self._rebuild_from_headers()
        return iter_headers(self.slot.get(), self.offset_index.lookup(offset)[1], self.size)

    def remember_position(self, offset: int, position: int) -> None:
        """Keep a batch's start for the reader that will ask for it next.

        The position may be the segment's end: the batch that comes next will begin there.
        """
        known = self._known_positions
        if offset not in known:
            if len(known) >= KNOWN_POSITIONS_MAX:
                del known[next(iter(known))]
            known[offset] = position

    def header_at(self, position: int) -> RecordBatchHeader:
        try:
            for _, header in iter_headers(self.slot.get(), position, self.size, 64):
                return header
        except BadBatch as bad:
            raise self.corrupt(bad) from bad
        raise AssertionError("no batch begins at the end of a segment")

    def next_offset(self) -> int:
        """Return the offset that follows the last batch, found behind the last index entry.

        Raises:
            BadBatch: the file does not end with a whole batch.
        """
        next_offset = self.base_offset
        for _, header in self.headers_from(INT32_MAX + self.base_offset):
            next_offset = header.next_offset
        return next_offset

    def file(self) -> File:
        return self.slot.get()

    # --- removal ---

    def close(self) -> None:
        self.slot.close()
        self._cache.remove(self)

    def rename_files(self, name_suffix: str) -> list[str]:
        """Give all files of the segment another last suffix; return their new paths.

        Readers may go on: the segment finds its files under the new names. The log file is the
        first: when a crash comes in between, index files without one are orphans that start-up
        removes, while a log file without indexes would have to be read.
        """
        fs = self._files.fs
        old_paths = [self.path(suffix) for suffix in SEGMENT_SUFFIXES]
        self._name_suffix = name_suffix
        self.slot.path = self.path(LOG_SUFFIX)
        renamed = [self.slot.path]
        fs.rename(old_paths[0], self.slot.path)
        for old_path, suffix in zip(old_paths[1:], INDEX_SUFFIXES, strict=True):
            new_path = self.path(suffix)
            try:
                fs.rename(old_path, new_path)
            except FileNotFoundError:
                continue
            renamed.append(new_path)
        return renamed

    def remove_files(self) -> None:
        """Remove the segment's files; removing again after a crash is fine."""
        self.close()
        fs = self._files.fs
        # The log file goes last: index files without one are orphans that start-up removes.
        for suffix in reversed(SEGMENT_SUFFIXES):
            path = self.path(suffix)
            if fs.exists(path):
                fs.remove(path)
