"""Writing a segment that will take the place of others."""

from klamm.log.cleaner.batch_filter import Kept
from klamm.log.cleaner.pace import Pace
from klamm.log.cleaner.plan import CleaningPlan
from klamm.log.fs import FileSystem
from klamm.log.index_cache import IndexCache
from klamm.log.layout import CLEANED_SUFFIX
from klamm.log.open_files import OpenFiles
from klamm.log.segment import Segment
from klamm.log.txn_index import AbortedTransactionEntry

WRITE_BYTES = 1024 * 1024
# No operating system takes more chunks in one vectored write.
CHUNKS_MAX = 1000


class SegmentWriter:
    """Writes the batches of one segment, and its indexes, under names that end in `.cleaned`."""

    def __init__(self, fs: FileSystem, plan: CleaningPlan, base_offset: int, pace: Pace) -> None:
        self._fs = fs
        self._pace = pace
        self._index_interval_bytes = plan.config.index_interval_bytes
        # Nobody shares these with the thread.
        files, cache = OpenFiles(fs, 1), IndexCache(0)
        self._segment = Segment(files, cache, plan.directory, base_offset, 0, CLEANED_SUFFIX)
        self._segment.create()
        self._position = 0
        self._chunks: list[bytes | memoryview] = []
        self._pending = 0

    def write(self, kept: Kept) -> None:
        size = len(kept.data)
        self._segment.note_batch(self._position, kept.header, self._index_interval_bytes)
        self._position += size
        self._chunks.append(kept.data)
        self._pending += size
        if self._pending >= WRITE_BYTES or len(self._chunks) >= CHUNKS_MAX:
            self._write_pending()

    def _write_pending(self) -> None:
        if self._chunks:
            self._segment.write(self._chunks, self._pending)
            self._pace.moved(self._pending)
            self._chunks = []
            self._pending = 0

    def close(self, aborted: list[AbortedTransactionEntry]) -> int:
        """Write the rest and the indexes, and sync all of it; return the segment's size."""
        self._write_pending()
        self._pace.check()
        for entry in aborted:
            self._segment.txn_index.append(entry)
        paths = self._segment.write_indexes()
        self._segment.file().datasync()
        for path in paths:
            self._fs.open(path).datasync()
        return self._segment.size
