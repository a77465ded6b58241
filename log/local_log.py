"""The files of one log: how segments and producer snapshots come and go.

What is to go is decided elsewhere; here it happens in an order that a crash can't spoil. A log ends
with its last segment, so segments are dropped from the end one by one, each removal synced before
the next: if a crash could bring a later segment back without an earlier one, the log would have a
stale end behind a gap.

Segments that are taken out at the beginning or in the middle, for good or in exchange for what
compaction made of them, are renamed, which is quick: readers and writers of the log never see it in
between. An error in the middle leaves files that only the next start can sort out: the caller takes
the log offline.
"""

from klamm.log.environment import LogEnvironment
from klamm.log.layout import CLEANED_SUFFIX, DELETED_SUFFIX, LOG_SUFFIX, STRAY_SUFFIX, SWAP_SUFFIX
from klamm.log.producer_state import ProducerState
from klamm.log.segment import Segment
from klamm.log.segments import Segments
from klamm.log.snapshots import ProducerSnapshots
from klamm.log.sync import Unsynced


class LocalLog:
    """The files of one log.

    Args:
        names: of the files in the directory. The snapshots among them are taken as they are; the
            segments are for recovery to add.

    Attributes:
        segments: those of the log; the last one is active.
        snapshots: the producer state at the beginning of segments.
        unsynced: what the next sync has to do besides the active segment.
        indexes_changed: the active segment's index files are not what its indexes are in memory.
    """

    def __init__(
        self, environment: LogEnvironment, directory: str, names: list[str], unsynced: Unsynced
    ) -> None:
        self.directory = directory
        self.segments = Segments()
        self.snapshots = ProducerSnapshots(environment.fs, directory, names)
        self.unsynced = unsynced
        self.indexes_changed = False
        self._environment = environment
        self._fs = environment.fs

    def new_segment(self, base_offset: int, created_ms: int, name_suffix: str = "") -> Segment:
        """Return a segment of this log that has no file and is not part of it yet."""
        environment = self._environment
        return Segment(
            environment.files,
            environment.index_cache,
            self.directory,
            base_offset,
            created_ms,
            name_suffix,
        )

    def batch_start(self, offset: int) -> int:
        """Return the base offset of the batch that holds offset; offset itself without one."""
        index = self.segments.floor_index(offset)
        if index < 0:
            return offset
        segment = self.segments[index]
        position = segment.position_of(offset)
        return offset if position is None else min(offset, segment.header_at(position).base_offset)

    # --- the end ---

    def begin_at(self, offset: int, now_ms: int) -> None:
        """Make the first segment of a log that has none."""
        assert not self.segments
        segment = self.new_segment(offset, now_ms)
        segment.create()
        self.segments.add(segment)
        self.unsynced.add_names()
        self.indexes_changed = True

    def roll(self, base_offset: int, producers: ProducerState, now_ms: int) -> None:
        """Make the segment that begins at base_offset; the old one is closed for writing.

        The new file comes last: whatever fails, the old segment may go on beyond base_offset. A
        file that was made before would have to be removed again, and where that fails, or a crash
        undoes it, the next start would take the old segment to end at base_offset. Indexes and a
        snapshot without a new segment are what a clean stop leaves, too.

        Args:
            producers: what the log knows of them at base_offset.

        Raises:
            OSError: the disk refuses; no segment has come or gone.
        """
        old = self.segments.active
        # A roll that fails may leave its index files half written.
        self.indexes_changed = True
        written = old.write_indexes()
        written.append(self.snapshots.write(base_offset, producers))
        self.unsynced.add_paths([old.path(LOG_SUFFIX), *written])
        new = self.new_segment(base_offset, now_ms)
        new.create()
        old.deactivate()
        self.segments.add(new)

    def truncate_to(self, offset: int, now_ms: int) -> int:
        """Drop everything at or above offset, where a batch begins; return where the log ends."""
        segments = self.segments
        if offset < segments.first.base_offset:
            self._drop_segments_above(0)
            segments.pop_last().remove_files()
            self.begin_at(offset, now_ms)
            end_offset = offset
        else:
            self._drop_segments_above(offset)
            active = segments.active
            active.truncate_to(offset, now_ms)
            end_offset = min(offset, active.next_offset() if active.size else active.base_offset)
        self.unsynced.add_paths([segments.active.path(LOG_SUFFIX)])
        self.indexes_changed = True
        return end_offset

    def _drop_segments_above(self, offset: int) -> None:
        """Drop whole segments, but never the first."""
        while self.segments.active.base_offset > offset and len(self.segments) > 1:
            self.drop_last_segment()
        self.segments.active.activate()

    def drop_last_segment(self) -> None:
        self.segments.pop_last().remove_files()
        self.sync_names()

    def set_last_segment_aside(self) -> None:
        """Let the last segment be no part of the log any more, and keep its files."""
        segment = self.segments.pop_last()
        # What recovery has cut off its end must not come back with a crash.
        segment.file().datasync()
        segment.close()
        segment.rename_files(STRAY_SUFFIX)
        self.sync_names()

    def sync_names(self) -> None:
        self._fs.sync_directory(self.directory)

    def drop_snapshots_above(self, offset: int) -> None:
        """Drop the snapshots above the log's end.

        One that came back after a crash would describe batches that are no more.
        """
        self.snapshots.remove_above(offset)
        self.sync_names()

    # --- the beginning and the middle ---

    def remove_below(self, offset: int, delay_ms: int, segments_max: int | None) -> int:
        """Take out the segments that lie wholly below an offset; return how many.

        The oldest goes first, so that what a crash leaves is always the end of the log.

        Args:
            delay_ms: how long their files stay.
            segments_max: how many may go.

        Raises:
            OSError: a file can't be renamed.
        """
        segments = self.segments
        removed = 0
        while (
            len(segments) > 1
            and segments[1].base_offset <= offset
            and (segments_max is None or removed < segments_max)
        ):
            self._put_away(segments.pop_first(), delay_ms)
            removed += 1
        if removed:
            self.snapshots.remove_below(segments.first.base_offset)
        return removed

    def _put_away(self, segment: Segment, delay_ms: int) -> None:
        segment.close()
        paths = segment.rename_files(DELETED_SUFFIX)
        self._environment.deletions.add(paths, delay_ms)
        self.unsynced.add_names()

    def begin_swap(self, base_offset: int, created_ms: int) -> Segment:
        """Rename what compaction has written and synced from `.cleaned` to `.swap`.

        From here on a crash finishes the exchange: see leftovers.py.

        Raises:
            OSError: a file can't be renamed; nothing has changed.
        """
        new = self.new_segment(base_offset, created_ms, CLEANED_SUFFIX)
        try:
            new.rename_files(SWAP_SUFFIX)
        except OSError:
            # Half of it renamed counts as nothing. The rest goes with the other `.cleaned` files.
            new.remove_files()
            raise
        return new

    def finish_swap(self, new: Segment, originals: list[Segment], delay_ms: int) -> None:
        """Put a segment that begin_swap has renamed in the place of its originals.

        Raises:
            OSError: a file can't be renamed.
        """
        first = self.segments.index_of(new.base_offset)
        for original in originals:
            self._put_away(original, delay_ms)
        new.rename_files("")
        self.unsynced.add_names()
        self.segments.replace(first, len(originals), new)
        # The state before the first of them stays; without the others, replay begins there.
        self.snapshots.remove_at([original.base_offset for original in originals[1:]])
