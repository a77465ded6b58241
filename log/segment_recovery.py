"""Reading what may not have been synced: pass 5 of recovery.py.

Indexes are built anew, and the log is cut at the first bad batch, if a crash can have left it.
Below the recovery point none can: a crash tears only bytes that were not synced. Above it, a crash
of the operating system can leave anything, because any part of what was not synced may be lost.

A killed process loses nothing of what it has written. An append is one write, files only ever grow
by appends, and a new segment comes when the one before it is complete. So a kill leaves the
beginning of a write, at the end of the last segment: whole batches, and of one more the first
bytes. What is whole by its length and has a wrong checksum, what is no batch at all, and whatever
has a whole batch or a segment behind it, is damage. Nothing is cut there, either.

A record may hold what looks like a whole batch that could follow. If a kill cuts just this record
short, it is taken for damage: somebody has to look, but nothing is lost.
"""

import logging

from klamm.log.batch_search import BatchSearch, crc_of_range
from klamm.log.batches import BadBatch, iter_batches
from klamm.log.checkpoint_files import Checkpoints
from klamm.log.config import INT32_MAX, INT64_MAX, LogConfig
from klamm.log.layout import SEGMENT_SUFFIXES
from klamm.log.leader_epochs import LeaderEpochCache
from klamm.log.local_log import LocalLog
from klamm.log.producer_state import ProducerState
from klamm.log.replay import apply_batch, marker_of, rebuild_producers
from klamm.log.segment import Segment
from klamm.log.segments import Segments
from klamm.wire.errors import WireError
from klamm.wire.records.batch import (
    ATTRIBUTES_OFFSET,
    BATCH_HEADER_SIZE,
    RecordBatchHeader,
    read_batch_header,
)

logger = logging.getLogger(__name__)


class SegmentRecovery:
    """One walk over the segments of one log, up to its end.

    Args:
        local: the files, with all segments that were found.
        producers: are brought to the state at the log's end.
        epochs: those of the checkpoint, which are brought there, too.
        is_same_boot: whether the operating system has run on since the log was written.
    """

    def __init__(
        self,
        local: LocalLog,
        config: LogConfig,
        checkpoints: Checkpoints,
        producers: ProducerState,
        epochs: LeaderEpochCache,
        now_ms: int,
        *,
        is_same_boot: bool,
    ) -> None:
        self._local = local
        self._segments = local.segments
        self._unsynced = local.unsynced
        self._config = config
        self._checkpoints = checkpoints
        self._producers = producers
        self._epochs = epochs
        self._checkpointed_epochs = LeaderEpochCache()
        self._now_ms = now_ms
        self._is_same_boot = is_same_boot

    def run(self, first_without_indexes: int | None, *, clean: bool) -> None:
        """Read every batch that may not have been synced.

        The walk begins with the segment that holds the last synced offset: when the log rolled just
        behind it, the indexes of that segment may be the unsynced part.

        Args:
            first_without_indexes: the segment from which on indexes have to be built.
            clean: everything is synced.

        Raises:
            CorruptLogError: the log is damaged where no crash can have done it.
        """
        recovery_point = self._checkpoints.recovery_point
        first = max(self._segments.floor_index(max(recovery_point - 1, 0)), 0)
        if clean:
            first = len(self._segments)
        if first_without_indexes is not None:
            first = min(first, first_without_indexes)
        self._rebuild_before(first)
        if clean:
            # Everything is synced, so nothing may be cut.
            recovery_point = INT64_MAX
        # The checkpoint of the epochs may be older than a truncation; the batches know better.
        self._epochs.truncate_from_end(recovery_point)
        # What the walk adds to them says nothing about the checkpoint.
        self._checkpointed_epochs = LeaderEpochCache(self._epochs.entries)
        index = first
        while index < len(self._segments):
            segment = self._segments[index]
            if index > first:
                path = self._local.snapshots.write(segment.base_offset, self._producers)
                self._unsynced.add_paths([path])
            expected, bad = self._recover_segment(segment, index)
            if bad is None and expected >= recovery_point:
                bad = self._missing_tail(index, expected)
            if bad is not None:
                if expected < recovery_point:
                    raise segment.corrupt(bad, expected)
                if self._is_same_boot and not self._is_half_written(index, bad, expected):
                    self._sync_from(first)
                    raise segment.corrupt(bad, expected)
                self._cut(index, bad, expected)
            # Its indexes, too: a roll or shutdown that was cut short may have left some.
            self._unsynced.add_paths([segment.path(suffix) for suffix in SEGMENT_SUFFIXES])
            if index + 1 < len(self._segments):
                self._unsynced.add_paths(segment.write_indexes())
                segment.deactivate()
            index += 1
        # Whatever names are there may not be synced, either.
        self._unsynced.add_directory()
        self._local.indexes_changed = True

    def _rebuild_before(self, first: int) -> None:
        """Bring the producers to where the walk begins."""
        base_offset = self._segments[first].base_offset
        snapshots, producers = self._local.snapshots, self._producers
        earlier = Segments()
        for index in range(first):
            earlier.add(self._segments[index])
        if earlier:
            rebuild_producers(earlier, snapshots, producers, base_offset, self._now_ms)
            return
        snapshots.load_newest(producers, base_offset, self._now_ms)
        if producers.entries and base_offset not in snapshots.offsets:
            # It is older than the first segment, and will go.
            self._unsynced.add_paths([snapshots.write(base_offset, producers)])

    def _recover_segment(self, segment: Segment, index: int) -> tuple[int, BadBatch | None]:
        """Read a whole segment; return the offset behind its last good batch, and what is bad."""
        producers, epochs = self._producers, self._epochs
        segment.activate()
        segment.reset_indexes()
        is_last = index + 1 == len(self._segments)
        # Offsets are not under the checksum. What shows damage to them is an overlap, with the next
        # segment, too, and in the last segment, which was never compacted, a gap.
        has_gaps = self._is_compacted(segment) or not is_last
        end = INT64_MAX if is_last else self._segments[index + 1].base_offset
        end = min(end, segment.base_offset + INT32_MAX + 1)
        interval = self._config.index_interval_bytes
        expected = segment.base_offset
        try:
            for position, header, batch in iter_batches(segment.file(), 0, segment.size):
                base_offset = header.base_offset
                if base_offset < expected or (base_offset > expected and not has_gaps):
                    raise BadBatch(position, f"offset {base_offset} where {expected} was due")
                if header.next_offset > end:
                    raise BadBatch(position, f"offset {header.last_offset} is out of range")
                self._check_epoch(position, header)
                expected = header.next_offset
                segment.note_batch(position, header, interval)
                segment.verified_to = position + header.size_in_bytes
                epoch = header.partition_leader_epoch
                latest = epochs.latest_epoch
                if epoch >= 0 and (latest is None or epoch > latest):
                    epochs.assign(epoch, base_offset)
                if header.producer_id >= 0:
                    marker = marker_of(batch) if header.is_control else None
                    apply_batch(
                        producers, segment, header, base_offset, header.max_timestamp, marker
                    )
        except BadBatch as bad:
            return expected, bad
        return expected, None

    def _is_compacted(self, segment: Segment) -> bool:
        """Say whether batches may be missing in a segment, now or before the policy changed."""
        cleaner_offset = self._checkpoints.cleaner_offset
        return self._config.compacts or (
            cleaner_offset is not None and segment.base_offset < cleaner_offset
        )

    def _missing_tail(self, index: int, expected: int) -> BadBatch | None:
        """Say whether unsynced batches are missing before the next segment.

        A crash may lose the end of a segment and keep the one behind it. What is left has to be a
        prefix of what was written. Compaction leaves such gaps, too.
        """
        if index + 1 == len(self._segments) or self._is_compacted(self._segments[index]):
            return None
        following = self._segments[index + 1].base_offset
        if following == expected:
            return None
        return BadBatch(
            self._segments[index].size, f"{expected} is due, the next segment begins at {following}"
        )

    def _check_epoch(self, position: int, header: RecordBatchHeader) -> None:
        """Compare a synced batch with the checkpoint: its epoch is not under the checksum."""
        if header.base_offset >= self._checkpoints.recovery_point:
            return
        known = self._checkpointed_epochs.epoch_for_offset(header.base_offset)
        if known is not None and header.partition_leader_epoch not in (known, -1):
            raise BadBatch(
                position,
                f"epoch {header.partition_leader_epoch}, the checkpoint has {known}",
            )

    def _is_half_written(self, index: int, bad: BadBatch, expected: int) -> bool:
        """Say whether a process that was killed can have left this."""
        segment = self._segments[index]
        if index + 1 < len(self._segments):
            return False
        if segment.size - bad.position < BATCH_HEADER_SIZE:
            return True
        file = segment.file()
        try:
            header = read_batch_header(file.pread(BATCH_HEADER_SIZE, bad.position))
        except WireError:
            return False
        if bad.position + header.size_in_bytes <= segment.size:
            return False
        # The length is not under the checksum: it may be what is wrong, here and further on.
        start = bad.position + ATTRIBUTES_OFFSET
        if crc_of_range(file, start, segment.size) == header.crc:
            return False
        search = BatchSearch(file, segment.size, expected)
        return next(search.batches(bad.position), None) is None and not search.gave_up

    def _sync_from(self, first: int) -> None:
        """Sync what is there, damage and all, so that a later crash adds nothing of its own."""
        for index in range(first, len(self._segments)):
            self._segments[index].file().datasync()
        self._local.sync_names()

    def _cut(self, index: int, bad: BadBatch, expected: int) -> None:
        """Cut the log at a bad batch, and drop the segments behind it."""
        segment = self._segments[index]
        logger.warning(
            "%s: cut at byte %d of %d after an unclean stop: %s; %d later segments removed%s",
            segment.slot.path,
            bad.position,
            segment.size,
            bad.reason,
            len(self._segments) - index - 1,
            "" if self._is_same_boot else self._dropped(index, bad, expected),
        )
        while len(self._segments) > index + 1:
            self._local.drop_last_segment()
        segment.cut_at(bad.position)

    def _dropped(self, index: int, bad: BadBatch, expected: int) -> str:
        """Name the whole batches that go with what is bad: nothing is dropped in silence."""
        count = 0
        first_offset = last_offset = -1
        gave_up = False
        for number in range(index, len(self._segments)):
            segment = self._segments[number]
            least_offset = max(expected, segment.base_offset)
            search = BatchSearch(segment.file(), segment.size, least_offset)
            for header in search.batches(bad.position if number == index else 0):
                count += 1
                first_offset = header.base_offset if first_offset < 0 else first_offset
                last_offset = header.last_offset
            gave_up = gave_up or search.gave_up
        if not count:
            return ""
        return (
            f"; {'at least ' if gave_up else ''}{count} whole batches with offsets from"
            f" {first_offset} to {last_offset} are dropped, which were not known to be synced"
        )
