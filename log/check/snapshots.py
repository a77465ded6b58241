"""The producer snapshots of a log, each compared when the walk comes to its offset."""

from klamm.log.check.findings import Findings
from klamm.log.check.formats import Malformed, SnapshotEntry, snapshot_entries
from klamm.log.check.producers import Producers
from klamm.log.check.source import Reader


class SnapshotCheck:
    """Compares snapshots with the fold of the batches below them.

    Args:
        snapshots: (offset, path) in the order of the offsets.
        first_offset: where the log begins. What was between an older snapshot and this is gone.
    """

    def __init__(
        self,
        reader: Reader,
        findings: Findings,
        producers: Producers,
        snapshots: list[tuple[int, str]],
        first_offset: int,
    ) -> None:
        self._reader = reader
        self._findings = findings
        self._producers = producers
        self._pending = snapshots[::-1]
        self._first_offset = first_offset

    def advance(self, offset: int) -> None:
        """Compare the snapshots up to an offset; everything below it has been followed."""
        while self._pending and self._pending[-1][0] <= offset:
            self._compare(*self._pending.pop())

    def at_end(self, end_offset: int | None) -> None:
        """Compare the rest; None where the end of the log is not known."""
        if end_offset is not None:
            self.advance(end_offset)
        for _, path in reversed(self._pending):
            self._read(path)
            if end_offset is not None:
                what = f"the log ends before it, at offset {end_offset}"
                self._findings.fault(path, what)
        self._pending.clear()

    def _compare(self, offset: int, path: str) -> None:
        entries = self._read(path)
        if entries is None or offset < self._first_offset:
            return
        producers = self._producers
        for entry, what in producers.problems(entries):
            position = None if entry is None else entry.at
            self._findings.fault(path, what, offset=offset, position=position)
        if not producers.is_complete:
            producers.load(entries)

    def _read(self, path: str) -> list[SnapshotEntry] | None:
        try:
            return snapshot_entries(self._reader.read_whole(path))
        except Malformed as bad:
            self._findings.fault(path, bad.reason, position=bad.position)
            return None
