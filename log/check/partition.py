"""One partition: its segments from the first to the last, and everything that is made of them.

After an unclean stop the log is judged by what recovery promises. Below the recovery point
everything has to be right. Above it the log may break off anywhere, which is noted as the place
where recovery will cut, and indexes and snapshots are not looked at: recovery makes them anew.
Where the operating system has run on, the log may break off only as a killed process leaves it: in
the middle of a batch that is the last of all.
"""

from dataclasses import dataclass
from uuid import UUID

from klamm.log.check.contents import Contents
from klamm.log.check.epochs import EpochCheck
from klamm.log.check.findings import Findings
from klamm.log.check.formats import Malformed
from klamm.log.check.listing import Listing, SegmentFiles, list_partition
from klamm.log.check.log_walk import LogWalk
from klamm.log.check.metadata_snapshots import check_metadata_snapshot
from klamm.log.check.producers import Producers
from klamm.log.check.snapshots import SnapshotCheck
from klamm.log.check.source import Reader
from klamm.log.check.text_files import (
    EpochLine,
    check_quorum_state,
    epoch_checkpoint,
    partition_metadata,
)
from klamm.log.check.walk import Batch, walk
from klamm.log.layout import LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA, QUORUM_STATE
from klamm.wire.records.record import Record

OFFSET_MAX = 2**63 - 1
# A coordinator writes here in the name of producers, and begins with sequence 0 in every batch.
_COMMITTED_OFFSETS = "__consumer_offsets"


@dataclass(frozen=True, slots=True)
class Expectation:
    """What the other files of the data directory say about a partition; None for nothing.

    Attributes:
        is_clean: whether the last process to write here shut down cleanly.
        is_same_boot: whether the operating system has run on since then.
        compacts: whether records may be missing between others.
        producers_expire: whether producers may be missing in a snapshot because they were idle.
    """

    is_clean: bool
    is_same_boot: bool = False
    recovery_point: int | None = None
    log_start: int | None = None
    compacts: bool | None = None
    producers_expire: bool = True

    @property
    def synced_to(self) -> int:
        """Everything below this offset has to be right."""
        return OFFSET_MAX if self.is_clean else self.recovery_point or 0


@dataclass(slots=True)
class Found:
    """What a partition turned out to be.

    Attributes:
        end_offset: None where it can't be told, because of damage or because recovery will cut.
        last_segment: the path and size of the segment that the log ends with.
        has_data: whether any segment has bytes.
    """

    topic_id: UUID | None = None
    first_offset: int = 0
    end_offset: int | None = None
    last_segment: tuple[str, int] | None = None
    has_data: bool = False


class PartitionCheck:
    """The check of one partition's directory."""

    def __init__(
        self,
        reader: Reader,
        findings: Findings,
        contents: Contents,
        directory: str,
        topic: str,
        expectation: Expectation,
    ) -> None:
        self._reader = reader
        self._findings = findings
        self._contents = contents
        self._directory = directory
        self._topic = topic
        self._expectation = expectation
        self._found = Found()

    def run(self) -> Found:
        """Read every file of the directory."""
        names = self._reader.files.list_files(self._directory)
        listing = list_partition(names, self._directory, self._findings)
        self._read_partition_metadata(listing)
        self._read_quorum_state(listing)
        applies_from = self._read_metadata_snapshots(listing)
        segments = self._effective_segments(listing)
        if not segments:
            if self._expectation.is_clean:
                self._findings.fault(self._directory, "there is no segment")
            self._found.end_offset = 0
            return self._found
        self._found.first_offset = segments[0].base_offset
        logs = [segment.log for segment in segments if segment.log is not None]
        self._found.has_data = any(
            self._reader.files.open(self._path(name)).size() > 0 for name in logs
        )
        self._check_log(segments, listing, applies_from)
        return self._found

    def _path(self, name: str) -> str:
        return f"{self._directory}/{name}"

    # --- the small files ---

    def _read_partition_metadata(self, listing: Listing) -> None:
        path = self._path(PARTITION_METADATA)
        if not listing.has_partition_metadata:
            if self._expectation.is_clean:
                self._findings.fault(path, "is missing")
            return
        try:
            self._found.topic_id = partition_metadata(self._reader.read_whole(path))
        except Malformed as bad:
            self._findings.fault(path, bad.reason, position=bad.position)

    def _read_quorum_state(self, listing: Listing) -> None:
        if not listing.has_quorum_state:
            return
        path = self._path(QUORUM_STATE)
        try:
            check_quorum_state(self._reader.read_whole(path))
        except Malformed as bad:
            self._findings.fault(path, bad.reason, position=bad.position)

    def _read_epochs(self, listing: Listing) -> list[EpochLine] | None:
        path = self._path(LEADER_EPOCH_CHECKPOINT)
        if not listing.has_epochs:
            # It is made with the first epoch.
            return []
        try:
            return epoch_checkpoint(self._reader.read_whole(path))
        except Malformed as bad:
            self._findings.fault(path, bad.reason, position=bad.position)
            return None

    def _read_metadata_snapshots(self, listing: Listing) -> int:
        """Check the snapshots of the metadata log; return the offset that the newest ends at."""
        applies_from = 0
        understands = self._contents.understands(self._topic)
        for offset, name in listing.metadata_snapshots:
            is_newest = name == listing.metadata_snapshots[-1][1]
            sees = self._see_applied if is_newest and understands else None
            check_metadata_snapshot(self._reader, self._findings, self._path(name), sees)
            applies_from = max(applies_from, offset)
        return applies_from

    def _see_applied(self, record: Record) -> str | None:
        return self._contents.see(self._topic, record, applies=True)

    # --- compaction that was cut short ---

    def _effective_segments(self, listing: Listing) -> list[SegmentFiles]:
        """Return the segments that the next start will see.

        Compaction renames its finished output to `.swap` before it removes what that replaces. A
        start goes on from there, unless the output was not finished: then `.cleaned` is there.
        """
        segments = {segment.base_offset: segment for segment in listing.segments}
        finished_below = min(listing.cleaned, default=OFFSET_MAX)
        for swap in listing.swaps:
            if self._expectation.is_clean or swap.base_offset >= finished_below:
                continue
            renamed = segments.get(swap.base_offset)
            if swap.log is not None:
                end = max(self._end_of(swap.log), swap.base_offset + 1)
                for base_offset in list(segments):
                    if swap.base_offset <= base_offset < end:
                        del segments[base_offset]
                segments[swap.base_offset] = swap
            elif renamed is not None:
                # The log has its name already, some of its indexes have not.
                segments[swap.base_offset] = SegmentFiles(
                    swap.base_offset,
                    renamed.log,
                    swap.offset_index or renamed.offset_index,
                    swap.time_index or renamed.time_index,
                    swap.txn_index or renamed.txn_index,
                )
        return [segments[base_offset] for base_offset in sorted(segments)]

    def _end_of(self, name: str) -> int:
        """Return the offset behind the last batch of a segment; 0 when there is none."""
        file = self._reader.files.open(self._path(name))
        return max(
            (
                found.header.next_offset
                for found in walk(self._reader, file, file.size())
                if isinstance(found, Batch)
            ),
            default=0,
        )

    # --- the log ---

    def _check_log(self, segments: list[SegmentFiles], listing: Listing, applies_from: int) -> None:
        expectation = self._expectation
        first_offset = segments[0].base_offset
        rebuilt_from = self._rebuilt_from(segments)
        lines = self._read_epochs(listing)
        self._check_beginning(first_offset, lines or [])
        epochs = EpochCheck(
            self._findings,
            self._path(LEADER_EPOCH_CHECKPOINT),
            lines,
            log_start=max(expectation.log_start or 0, first_offset),
            end=expectation.synced_to,
            is_clean=expectation.is_clean,
        )
        producers = Producers(
            is_complete=first_offset == 0,
            may_expire=expectation.producers_expire,
            has_sequences=self._topic != _COMMITTED_OFFSETS,
        )
        snapshots = [
            (offset, self._path(name))
            for offset, name in listing.snapshots
            if offset <= rebuilt_from
        ]
        log = LogWalk(
            self._reader,
            self._findings,
            self._contents,
            self._topic,
            epochs=epochs,
            producers=producers,
            snapshots=SnapshotCheck(
                self._reader, self._findings, producers, snapshots, first_offset
            ),
            first_offset=first_offset,
            synced_to=expectation.synced_to,
            is_same_boot=expectation.is_same_boot,
            compacts=expectation.compacts,
            applies_from=applies_from,
        )
        for index, segment in enumerate(segments):
            compares = segment.base_offset < rebuilt_from
            later = len(segments) - index - 1
            next_base_offset = segments[index + 1].base_offset if later else None
            log.run(self._directory, segment, next_base_offset, later, compares=compares)
            if log.is_cut:
                return
        self._found.last_segment = log.last_segment
        if log.is_certain:
            self._found.end_offset = log.next_offset
        log.at_end()
        epochs.at_end(log.next_offset, has_gaps=producers.has_gaps)

    def _check_beginning(self, first_offset: int, lines: list[EpochLine]) -> None:
        """Look for segments that are missing before the first one, after an unclean stop.

        The log start is on disk before segments go; Kafka leaves it out, and lets the epochs follow
        a moment later. After a clean stop the epochs are compared with the batches anyway.
        """
        expectation = self._expectation
        known = lines[0].start_offset if lines else first_offset
        if expectation.is_clean or max(known, expectation.log_start or 0) >= first_offset:
            return
        report = self._findings.fault if expectation.is_same_boot else self._findings.note
        what = f"the first segment begins here, the log at {known}: what was before it is missing"
        report(self._directory, what, offset=first_offset)

    def _rebuilt_from(self, segments: list[SegmentFiles]) -> int:
        """Return the base offset of the first segment that recovery reads again."""
        if self._expectation.is_clean:
            return OFFSET_MAX
        last_synced = max(self._expectation.synced_to - 1, 0)
        below = [s.base_offset for s in segments if s.base_offset <= last_synced]
        return below[-1] if below else segments[0].base_offset
