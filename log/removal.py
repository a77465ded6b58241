"""Taking segments out of a log, for good or in exchange for what compaction made of them.

Both are renames, which are quick, so readers and writers of the log never see it in between. An
error in the middle leaves files that only the next start can sort out: the caller takes the log
offline.
"""

from klamm.log.environment import LogEnvironment
from klamm.log.layout import CLEANED_SUFFIX, DELETED_SUFFIX, SWAP_SUFFIX
from klamm.log.segment import Segment
from klamm.log.segments import Segments
from klamm.log.snapshots import ProducerSnapshots
from klamm.log.sync import Unsynced


class SegmentRemover:
    """The one who takes segments out of a log.

    Args:
        unsynced: where changed names are noted.
    """

    def __init__(
        self,
        environment: LogEnvironment,
        directory: str,
        segments: Segments,
        snapshots: ProducerSnapshots,
        unsynced: Unsynced,
    ) -> None:
        self._environment = environment
        self._directory = directory
        self._segments = segments
        self._snapshots = snapshots
        self._unsynced = unsynced

    def remove_below(self, offset: int, delay_ms: int, segments_max: int | None) -> int:
        """Take out the segments that lie wholly below an offset; return how many.

        The oldest goes first, so that what a crash leaves is always the end of the log.

        Args:
            delay_ms: how long their files stay.
            segments_max: how many may go.

        Raises:
            OSError: a file can't be renamed.
        """
        segments = self._segments
        removed = 0
        while (
            len(segments) > 1
            and segments[1].base_offset <= offset
            and (segments_max is None or removed < segments_max)
        ):
            self._put_away(segments.pop_first(), delay_ms)
            removed += 1
        if removed:
            self._snapshots.remove_below(segments.first.base_offset)
        return removed

    def _put_away(self, segment: Segment, delay_ms: int) -> None:
        segment.close()
        paths = segment.rename_files(DELETED_SUFFIX)
        self._environment.deletions.add(paths, delay_ms)
        self._unsynced.add_names()

    def begin_swap(self, base_offset: int, created_ms: int) -> Segment:
        """Rename what compaction has written and synced from `.cleaned` to `.swap`.

        From here on a crash finishes the exchange: see recovery.py, passes 1 to 3.

        Raises:
            OSError: a file can't be renamed; nothing has changed.
        """
        environment = self._environment
        new = Segment(
            environment.files,
            environment.index_cache,
            self._directory,
            base_offset,
            created_ms,
            CLEANED_SUFFIX,
        )
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
        first = self._segments.index_of(new.base_offset)
        for original in originals:
            self._put_away(original, delay_ms)
        new.rename_files("")
        self._unsynced.add_names()
        self._segments.replace(first, len(originals), new)
        # The state before the first of them stays; without the others, replay begins there.
        self._snapshots.remove_at([original.base_offset for original in originals[1:]])
