"""The producer snapshot files in a partition's directory.

A snapshot at offset N is the producer state after everything below N. One is written when a
segment rolls (N = base of the new segment) and one at a clean close (N = log end), so that start-up
replays at most one segment. A damaged snapshot is removed and the next older one taken; without
any, the whole log is replayed.
"""

from bisect import insort
from contextlib import suppress

from klamm.log.errors import StorageError
from klamm.log.fs import FileSystem, read_file
from klamm.log.layout import SNAPSHOT_SUFFIX, parse_snapshot_file, segment_file
from klamm.log.producer_snapshot import decode_snapshot, encode_snapshot
from klamm.log.producer_state import ProducerState


class ProducerSnapshots:
    """Which snapshots exist, in the order of their offsets.

    Args:
        names: the file names found in the directory.
    """

    def __init__(self, fs: FileSystem, directory: str, names: list[str]) -> None:
        self._fs = fs
        self._directory = directory
        found = (parse_snapshot_file(name) for name in names)
        self.offsets = sorted(entry[0] for entry in found if entry is not None and not entry[1])

    @property
    def latest_offset(self) -> int | None:
        return self.offsets[-1] if self.offsets else None

    def path(self, offset: int) -> str:
        return f"{self._directory}/{segment_file(offset, SNAPSHOT_SUFFIX)}"

    def write(self, offset: int, state: ProducerState) -> str:
        """Write the state as of offset; return the path, which is not synced yet."""
        path = self.path(offset)
        data = encode_snapshot(state.entries.values())
        file = self._fs.open(path, create=True)
        if offset in self.offsets:
            self.offsets.remove(offset)
        try:
            file.truncate(0)
            file.append([data], len(data))
        except OSError:
            # Half of one is none. If it can't be removed, the next start does it.
            with suppress(OSError):
                self._fs.remove(path)
            raise
        insort(self.offsets, offset)
        return path

    def load_newest(self, state: ProducerState, up_to_offset: int, now_ms: int) -> int | None:
        """Fill the state from the newest usable snapshot at or below an offset.

        Returns:
            The offset from which the log is to be replayed; None when no snapshot is usable.
        """
        for offset in [offset for offset in reversed(self.offsets) if offset <= up_to_offset]:
            try:
                entries = decode_snapshot(read_file(self._fs, self.path(offset)))
            except StorageError:
                self.remove(offset)
                continue
            state.load(entries, now_ms)
            return offset
        state.clear()
        return None

    def remove(self, offset: int) -> None:
        self._fs.remove(self.path(offset))
        self.offsets.remove(offset)

    def remove_at(self, offsets: list[int]) -> None:
        """Remove the snapshots at these offsets, where there are any."""
        for offset in offsets:
            if offset in self.offsets:
                self.remove(offset)

    def remove_above(self, offset: int) -> bool:
        """Remove snapshots above the log's end; say whether there were any."""
        above = [known for known in self.offsets if known > offset]
        for known in reversed(above):
            self.remove(known)
        return bool(above)

    def remove_torn(self, offset: int) -> list[int]:
        """Remove snapshots above an offset that can't be read; return where the others are."""
        above = [known for known in self.offsets if known > offset]
        for known in above:
            try:
                decode_snapshot(read_file(self._fs, self.path(known)))
            except StorageError:
                self.remove(known)
        return [known for known in above if known in self.offsets]

    def remove_below(self, offset: int) -> None:
        """Remove snapshots below the log's first segment."""
        for known in [known for known in self.offsets if known < offset]:
            self.remove(known)

    def remove_stray(self, base_offsets: list[int]) -> None:
        """Remove snapshots that belong to no segment, except the newest (that of a clean close)."""
        keep = set(base_offsets)
        for known in self.offsets[:-1]:
            if known not in keep:
                self.remove(known)
