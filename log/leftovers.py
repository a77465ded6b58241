"""What a crash leaves among the names in a partition's directory: passes 1 to 3 of recovery.py.

A deletion, a compaction, a roll or the replacement of a checkpoint takes several names, and a crash
may come between any two of them. Each pass either takes back or finishes what was begun; they look
at names and, to tell what a compaction has replaced, at its output.
"""

from klamm.log.batches import BadBatch, iter_batches
from klamm.log.errors import CorruptLogError
from klamm.log.fs import FileSystem
from klamm.log.layout import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    LOG_SUFFIX,
    PARTITION_METADATA,
    SWAP_SUFFIX,
    TEMPORARY_SUFFIX,
    parse_segment_file,
    parse_snapshot_file,
)
from klamm.log.sync import Unsynced


class Leftovers:
    """The names in one directory.

    Args:
        unsynced: where it is noted that names have changed.

    Attributes:
        names: what is there now.
    """

    def __init__(self, fs: FileSystem, directory: str, unsynced: Unsynced) -> None:
        self.names = fs.list_files(directory)
        self._fs = fs
        self._directory = directory
        self._unsynced = unsynced

    def pass_1_remove_unfinished(self) -> None:
        """A deletion, compaction or checkpoint was cut short: remove what it had not finished.

        A `.swap` at or above the lowest `.cleaned` belongs to a compaction that had not written
        all of its output; the originals are still there.
        """
        cleaned = [
            parsed[0]
            for parsed in map(parse_segment_file, self.names)
            if parsed is not None and parsed[2] == CLEANED_SUFFIX
        ]
        for name in list(self.names):
            parsed = parse_segment_file(name)
            snapshot = parse_snapshot_file(name)
            transient = parsed[2] if parsed is not None else snapshot[1] if snapshot else ""
            is_dead_swap = (
                parsed is not None
                and transient == SWAP_SUFFIX
                and cleaned
                and parsed[0] >= min(cleaned)
            )
            if (
                transient in (DELETED_SUFFIX, CLEANED_SUFFIX)
                or is_dead_swap
                or name == LEADER_EPOCH_CHECKPOINT + TEMPORARY_SUFFIX
                or name == PARTITION_METADATA + TEMPORARY_SUFFIX
            ):
                self._remove(name)

    def pass_2_remove_replaced_segments(self) -> None:
        """A compaction had written its output, but not removed all originals: remove them."""
        for name in list(self.names):
            parsed = parse_segment_file(name)
            if parsed is None or parsed[1:] != (LOG_SUFFIX, SWAP_SUFFIX):
                continue
            base_offset = parsed[0]
            next_offset = self._end_of_swap(name, base_offset)
            for original in list(self.names):
                found = parse_segment_file(original)
                if found is not None and not found[2] and base_offset <= found[0] < next_offset:
                    self._remove(original)

    def _end_of_swap(self, name: str, base_offset: int) -> int:
        file = self._fs.open(f"{self._directory}/{name}")
        next_offset = base_offset
        try:
            for _, header, _ in iter_batches(file, 0, file.size()):
                next_offset = header.next_offset
        except BadBatch as bad:
            raise CorruptLogError(file.path, next_offset, bad.position, bad.reason) from bad
        return max(next_offset, base_offset + 1)

    def pass_3_finish_swaps(self) -> None:
        """A compaction had removed the originals, but not renamed all of its output: rename it.

        Log files first: as long as there is one to be renamed, pass 2 takes index files under their
        final names for those of the originals.
        """
        for name in sorted(self.names, key=lambda name: LOG_SUFFIX not in name):
            parsed = parse_segment_file(name)
            if parsed is not None and parsed[2] == SWAP_SUFFIX:
                final = name.removesuffix(SWAP_SUFFIX)
                self._fs.rename(f"{self._directory}/{name}", f"{self._directory}/{final}")
                self.names.remove(name)
                self.names.append(final)
                self._unsynced.names = True

    def remove_orphaned_indexes(self) -> list[int]:
        """Remove indexes without a log; return where the segments begin, in order."""
        parsed_names = [(name, parse_segment_file(name)) for name in sorted(self.names)]
        bases = {parsed[0] for _, parsed in parsed_names if parsed and parsed[1] == LOG_SUFFIX}
        for name, parsed in parsed_names:
            if parsed is not None and parsed[0] not in bases:
                self._remove(name)
        return sorted(bases)

    def _remove(self, name: str) -> None:
        self._fs.remove(f"{self._directory}/{name}")
        self.names.remove(name)
        self._unsynced.names = True
