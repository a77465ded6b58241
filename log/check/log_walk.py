"""All batches of a log, segment by segment, and everything that follows from their order."""

from typing import NamedTuple

from klamm.log.check.contents import Contents
from klamm.log.check.epochs import EpochCheck
from klamm.log.check.findings import Findings
from klamm.log.check.listing import SegmentFiles
from klamm.log.check.producers import Producers
from klamm.log.check.records import marker_of, records_problem
from klamm.log.check.segment_indexes import SegmentIndexes
from klamm.log.check.snapshots import SnapshotCheck
from klamm.log.check.source import Reader
from klamm.log.check.walk import Batch, Damage, walk
from klamm.wire.errors import WireError
from klamm.wire.records.batch import INT32_MAX, RecordBatchHeader
from klamm.wire.records.record import iter_records


class _Gap(NamedTuple):
    """Offsets that no batch has, and where the batch behind them stands."""

    path: str
    position: int
    first: int
    end: int


class _Segment(NamedTuple):
    """The segment that is being walked over."""

    path: str
    size: int
    base_offset: int
    # The next segment begins here; a segment's offsets fit into 31 bits.
    end_offset: int
    later_segments: int
    indexes: SegmentIndexes


class LogWalk:
    """Walks over the segments of one log.

    Args:
        first_offset: where the first segment begins.
        synced_to: everything below this offset has to be right; above it recovery may cut.
        is_same_boot: it may cut only what a killed process leaves.
        compacts: whether offsets may be missing; None where that is not known.
        applies_from: records of the metadata log below this offset are in a snapshot of it.

    Attributes:
        next_offset: the offset behind the last batch.
        is_certain: whether the last batches could be read, so that next_offset is right.
        is_cut: recovery will cut the log here; nothing behind it counts.
        last_segment: path and size of the last segment walked over.
    """

    def __init__(
        self,
        reader: Reader,
        findings: Findings,
        contents: Contents,
        topic: str,
        *,
        epochs: EpochCheck,
        producers: Producers,
        snapshots: SnapshotCheck,
        first_offset: int,
        synced_to: int,
        is_same_boot: bool,
        compacts: bool | None,
        applies_from: int,
    ) -> None:
        self._reader = reader
        self._findings = findings
        self._contents = contents
        self._topic = topic
        self._understands = contents.understands(topic)
        self._epochs = epochs
        self._producers = producers
        self._snapshots = snapshots
        self._synced_to = synced_to
        self._is_same_boot = is_same_boot
        self._compacts = compacts
        self._applies_from = applies_from
        self._gaps: list[_Gap] = []
        # Behind damage nobody knows how many offsets it held.
        self._may_skip = False
        # Behind a batch with a wrong offset, the log goes on from what it is or should be.
        self._other_next_offset: int | None = None
        # Recovery stops at the first fault, so no other one decides.
        self._is_offline = False
        self.next_offset = first_offset
        self.is_certain = True
        self.is_cut = False
        self.last_segment = ("", 0)

    def run(
        self,
        directory: str,
        files: SegmentFiles,
        next_base_offset: int | None,
        later_segments: int,
        *,
        compares: bool,
    ) -> None:
        """Walk over one segment.

        Args:
            next_base_offset: where the next one begins; None for the last one.
            later_segments: how many there are behind it.
            compares: whether its indexes are compared.
        """
        assert files.log is not None
        path = f"{directory}/{files.log}"
        file = self._reader.open(path)
        end_offset = files.base_offset + INT32_MAX + 1
        if next_base_offset is not None:
            end_offset = min(end_offset, next_base_offset)
        segment = _Segment(
            path,
            file.size(),
            files.base_offset,
            end_offset,
            later_segments,
            SegmentIndexes(
                *(self._reader, self._findings, directory, files, files.log), is_compared=compares
            ),
        )
        if files.base_offset > self.next_offset and not self._begin_behind_gap(segment):
            return
        self.last_segment = (path, segment.size)
        for found in walk(self._reader, file, segment.size, lambda: self.next_offset):
            if isinstance(found, Damage):
                self._on_damage(segment, found)
            else:
                self._on_batch(segment, found)
            if self.is_cut:
                return
        segment.indexes.at_end(segment.size)

    def _begin_behind_gap(self, segment: _Segment) -> bool:
        """Take up a segment that does not begin where the last one ended; False at a cut."""
        base_offset, due = segment.base_offset, self.next_offset
        if not self._may_skip:
            if self._compacts is False and due >= self._synced_to:
                # A crash may lose the end of a segment and keep the next one.
                path, size = self.last_segment
                reason = f"the next one begins with offset {base_offset}, {due} was due"
                if not self._is_same_boot:
                    what = f"recovery will cut here and drop {segment.later_segments + 1} segments"
                    self._findings.note(path, f"{what}: {reason}", offset=due, position=size)
                    self.is_cut = True
                    return False
                self._fault(path, reason, size)
            else:
                self._on_gap(segment, 0, base_offset)
        self.next_offset = base_offset
        return True

    def at_end(self) -> None:
        """Judge what can be judged only now."""
        self._snapshots.at_end(self.next_offset if self.is_certain else None)
        for gap in self._gaps:
            what = f"offsets {gap.first} to {gap.end - 1} are missing"
            if self._compacts is not None:
                self._findings.fault(gap.path, what, offset=gap.end, position=gap.position)
                continue
            more = f" and {len(self._gaps) - 1} more gaps" if len(self._gaps) > 1 else ""
            what += f"{more}, which is right where the topic is or was compacted"
            self._findings.note(gap.path, what, offset=gap.end, position=gap.position)
            break

    # --- what is wrong ---

    def _bad(self, segment: _Segment, position: int, reason: str, *, is_torn: bool = False) -> None:
        """Name a place where no batch can be: the end of an unsynced log, or a fault."""
        is_left_by_kill = is_torn and segment.later_segments == 0
        if self.next_offset >= self._synced_to and (is_left_by_kill or not self._is_same_boot):
            self.is_cut = True
            later = segment.later_segments
            rest = f"{segment.size - position} bytes" + (
                f", {later} more segments" if later else ""
            )
            what = f"recovery will cut here and drop {rest}: {reason}"
            self._findings.note(segment.path, what, offset=self.next_offset, position=position)
            return
        self._fault(segment.path, reason, position)

    def _fault(self, path: str, reason: str, position: int) -> None:
        """Name a place where recovery will refuse the log."""
        if self.next_offset >= self._synced_to and not self._is_offline:
            reason = f"no killed process leaves this, so the partition will be offline: {reason}"
        self._is_offline = True
        self._findings.fault(path, reason, offset=self.next_offset, position=position)
        self._producers.has_gaps = True
        self._epochs.on_damage()
        self.is_certain = False

    def _on_damage(self, segment: _Segment, damage: Damage) -> None:
        self._bad(segment, damage.position, damage.reason, is_torn=damage.is_torn)
        is_last = damage.end >= segment.size
        segment.indexes.on_damage(damage.end, None if is_last else self.next_offset)
        self._may_skip = True
        self._other_next_offset = None

    def _on_gap(self, segment: _Segment, position: int, base_offset: int) -> None:
        """Remember missing offsets until it is clear whether compaction has taken them."""
        if self._compacts is not False:
            self._producers.has_gaps = True
        if not self._compacts:
            self._gaps.append(_Gap(segment.path, position, self.next_offset, base_offset))

    def _on_compacted(self) -> None:
        """Compaction has been at work, so gaps are right, also those before."""
        self._producers.has_gaps = True
        self._compacts = True
        self._gaps.clear()

    # --- batches ---

    def _on_batch(self, segment: _Segment, batch: Batch) -> None:
        position, header, data = batch
        problem = records_problem(header, data)
        if problem is not None:
            self._findings.fault(
                segment.path, problem, offset=header.base_offset, position=position
            )
        if header.record_count <= header.last_offset_delta:
            self._on_compacted()
        due = self.next_offset
        wrong = self._order_problem(segment, header)
        if wrong is not None:
            self._bad(segment, position, wrong)
            self.next_offset = min(due + max(header.last_offset_delta, 0) + 1, segment.end_offset)
            self._other_next_offset = header.next_offset
            segment.indexes.on_damage(position + header.size_in_bytes, self.next_offset)
            return
        if header.base_offset > due and not self._may_skip:
            self._on_gap(segment, position, header.base_offset)
            self._other_next_offset = due + header.last_offset_delta + 1
        else:
            self._other_next_offset = None
        self._may_skip = False
        self.is_certain = True
        self._snapshots.advance(header.base_offset)
        self._epochs.on_batch(segment.path, position, header, due)
        segment.indexes.on_batch(position, header)
        if header.producer_id >= 0:
            self._on_producer(segment, batch)
        if self._understands and problem is None and not header.is_control:
            self._on_content(segment, batch)
        self.next_offset = header.next_offset

    def _order_problem(self, segment: _Segment, header: RecordBatchHeader) -> str | None:
        base_offset, last_offset = header.base_offset, header.last_offset
        due = self.next_offset
        if base_offset == self._other_next_offset:
            due = base_offset
        if base_offset < due:
            return f"it begins with offset {base_offset}, {due} was due"
        if not base_offset <= last_offset < segment.end_offset:
            return f"it ends with offset {last_offset}, the segment at {segment.end_offset - 1}"
        has_gaps = segment.later_segments > 0 or self._compacts is not False or self._may_skip
        if base_offset > due >= self._synced_to and not has_gaps:
            # What was never compacted has no gaps, so recovery takes one for a torn end.
            return f"it begins with offset {base_offset}, {due} was due"
        return None

    def _on_producer(self, segment: _Segment, batch: Batch) -> None:
        position, header, data = batch
        producers = self._producers
        if not header.is_control:
            problem = producers.add(header)
        else:
            problem = None
            try:
                marker = marker_of(data)
            except WireError as error:
                marker, problem = None, f"the marker can't be read: {error}"
            if marker is not None:
                is_exact = producers.is_complete and not producers.has_gaps
                aborted = producers.end_transaction(header, marker)
                if not marker.is_commit:
                    segment.indexes.on_abort_marker(header, aborted, is_exact=is_exact)
        if problem is not None:
            self._findings.fault(
                segment.path, problem, offset=header.base_offset, position=position
            )

    def _on_content(self, segment: _Segment, batch: Batch) -> None:
        for record in iter_records(batch.data):
            applies = record.offset >= self._applies_from
            what = self._contents.see(self._topic, record, applies=applies)
            if what is not None:
                self._findings.fault(
                    segment.path, what, offset=record.offset, position=batch.position
                )
