"""Opening the log of a partition: numbered passes, each with the crash that it repairs.

After a clean shutdown passes 1 to 4 find nothing to do and pass 5 is skipped; only the end of the
last segment is read. After anything else, every segment from the recovery point on is read.

What counts as synced is what lies below the recovery point in its checkpoint, which moves only
after a successful sync. The checkpoint lags behind: batches above it may have been synced and
acknowledged, too. Cutting at the first bad batch above it keeps them all the same, because a crash
can only tear bytes that were not synced, and those lie behind every byte that was. Below the
recovery point nothing is ever cut: damage there is not the mark of a crash, and the partition stays
closed (CorruptLogError) until somebody decides.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from klamm.log.batches import BadBatch, iter_batches
from klamm.log.checkpoint import read_partition_metadata
from klamm.log.config import INT32_MAX, INT64_MAX, LogConfig
from klamm.log.environment import LoadedLog, LogEnvironment
from klamm.log.errors import CorruptFileError, CorruptLogError, StorageError
from klamm.log.fs import read_file
from klamm.log.layout import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    PARTITION_METADATA,
    SWAP_SUFFIX,
    TEMPORARY_SUFFIX,
    TIME_INDEX_SUFFIX,
    parse_segment_file,
    parse_snapshot_file,
)
from klamm.log.leader_epochs import LeaderEpochCache
from klamm.log.partition_log import PartitionLog
from klamm.log.producer_state import PRODUCER_ID_EXPIRATION_MS, ProducerState
from klamm.log.replay import apply_batch, marker_of, rebuild_producers
from klamm.log.segment import Segment
from klamm.log.segments import Segments
from klamm.log.snapshots import ProducerSnapshots
from klamm.log.sync import Unsynced
from klamm.wire.records.batch import RecordBatchHeader

logger = logging.getLogger(__name__)

_INDEXES_ALWAYS_WRITTEN = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """What the checkpoint files of the data directory say about one partition.

    cleaner_offset is where its last compaction ended; None when it had none.
    """

    log_start_offset: int = 0
    recovery_point: int = 0
    high_watermark: int = 0
    cleaner_offset: int | None = None


def open_log(
    environment: LogEnvironment,
    directory: str,
    topic: str,
    partition: int,
    config: LogConfig,
    *,
    clean: bool,
    checkpoints: Checkpoints,
    now_ms: int,
    producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
    on_recovery_point_lowered: Callable[[], None] = lambda: None,
) -> PartitionLog:
    """Open the log in an existing directory, repairing what a crash may have left.

    Args:
        clean: whether the last process to write here shut down cleanly.

    Raises:
        CorruptLogError: synced data is damaged or missing.
        CorruptFileError: a metadata file can't be understood.
    """
    topic_id = read_partition_metadata(environment.fs, f"{directory}/{PARTITION_METADATA}")
    recovery = Recovery(environment, directory, config, checkpoints, now_ms)
    producers = ProducerState(producer_id_expiration_ms=producer_id_expiration_ms)
    loaded = recovery.run(producers, clean=clean)
    log = PartitionLog(
        environment, topic, partition, topic_id, config, loaded, on_recovery_point_lowered
    )
    log.cleaner_offset = checkpoints.cleaner_offset
    return log


class Recovery:
    """One opening of one log."""

    def __init__(
        self,
        environment: LogEnvironment,
        directory: str,
        config: LogConfig,
        checkpoints: Checkpoints,
        now_ms: int,
    ) -> None:
        self._environment = environment
        self._fs = environment.fs
        self._directory = directory
        self._config = config
        self._checkpoints = checkpoints
        self._now_ms = now_ms
        self._names = self._fs.list_files(directory)
        self._segments = Segments()
        self._unsynced = Unsynced()
        self._indexes_changed = False
        # The first segment whose indexes can't be taken from its files.
        self._first_without_indexes: int | None = None

    def run(self, producers: ProducerState, *, clean: bool) -> LoadedLog:
        self.pass_1_remove_leftovers()
        self.pass_2_remove_replaced_segments()
        self.pass_3_finish_swaps()
        self.pass_4_load_segments()
        clean = clean and self._ends_as_synced()
        snapshots = ProducerSnapshots(self._fs, self._directory, self._names)
        epochs = self.load_epochs()
        known_epochs = epochs.entries
        if not clean or self._first_without_indexes is not None:
            self.pass_5_recover_segments(snapshots, producers, epochs, clean=clean)
        ended_at = self._segments.active
        end_offset = self.pass_6_find_end()
        if self._segments.active is not ended_at and producers.entries:
            # No batch is left to tell of the producers.
            self._unsynced.add_paths([snapshots.write(end_offset, producers)])
        start_offset = max(self._checkpoints.log_start_offset, self._segments.first.base_offset)
        # In this order: an empty log has no epoch, and recovering it again changes nothing.
        epochs.truncate_from_start(start_offset)
        epochs.truncate_from_end(end_offset)
        if epochs.entries != known_epochs:
            self._unsynced.add_epoch()
        self.pass_7_load_producers(snapshots, producers, end_offset, clean=clean)
        recovery_point = end_offset if clean else min(self._checkpoints.recovery_point, end_offset)
        high_watermark = min(max(self._checkpoints.high_watermark, start_offset), end_offset)
        producers.on_high_watermark_updated(high_watermark)
        return LoadedLog(
            directory=self._directory,
            segments=self._segments,
            snapshots=snapshots,
            producers=producers,
            leader_epochs=epochs,
            log_start_offset=start_offset,
            log_end_offset=end_offset,
            high_watermark=high_watermark,
            recovery_point=recovery_point,
            unsynced=self._unsynced,
            indexes_changed=self._indexes_changed,
        )

    # --- names ---

    def _remove(self, name: str) -> None:
        self._fs.remove(f"{self._directory}/{name}")
        self._names.remove(name)
        self._unsynced.names = True

    def pass_1_remove_leftovers(self) -> None:
        """A deletion, compaction or checkpoint was cut short: remove what it had not finished.

        A `.swap` at or above the lowest `.cleaned` belongs to a compaction that had not written
        all of its output; the originals are still there.
        """
        cleaned = [
            parsed[0]
            for parsed in map(parse_segment_file, self._names)
            if parsed is not None and parsed[2] == CLEANED_SUFFIX
        ]
        for name in list(self._names):
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
        for name in list(self._names):
            parsed = parse_segment_file(name)
            if parsed is None or parsed[1:] != (LOG_SUFFIX, SWAP_SUFFIX):
                continue
            base_offset = parsed[0]
            next_offset = self._end_of_swap(name, base_offset)
            for original in list(self._names):
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
        for name in sorted(self._names, key=lambda name: LOG_SUFFIX not in name):
            parsed = parse_segment_file(name)
            if parsed is not None and parsed[2] == SWAP_SUFFIX:
                final = name.removesuffix(SWAP_SUFFIX)
                self._fs.rename(f"{self._directory}/{name}", f"{self._directory}/{final}")
                self._names.remove(name)
                self._names.append(final)
                self._unsynced.names = True

    # --- segments ---

    def _new_segment(self, base_offset: int) -> Segment:
        environment = self._environment
        return Segment(
            environment.files, environment.index_cache, self._directory, base_offset, self._now_ms
        )

    def pass_4_load_segments(self) -> None:
        """A roll or removal was cut short: remove indexes without a log, note missing ones."""
        present = set(self._names)
        parsed_names = [(name, parse_segment_file(name)) for name in sorted(self._names)]
        bases = {parsed[0] for _, parsed in parsed_names if parsed and parsed[1] == LOG_SUFFIX}
        for name, parsed in parsed_names:
            if parsed is not None and parsed[0] not in bases:
                self._remove(name)
        for base_offset in sorted(bases):
            segment = self._new_segment(base_offset)
            segment.load()
            self._segments.add(segment)
            names = {segment.path(s).rpartition("/")[2] for s in _INDEXES_ALWAYS_WRITTEN}
            if not names <= present or not self._has_usable_txn_index(segment):
                self._note_without_indexes(len(self._segments) - 1)
        if not self._segments:
            segment = self._new_segment(self._checkpoints.log_start_offset)
            segment.create()
            self._segments.add(segment)
            self._unsynced.names = True
            self._indexes_changed = True
            self._first_without_indexes = None

    def _ends_as_synced(self) -> bool:
        """Say whether the log ends where it ended when it was closed; unknown counts as yes."""
        recovery_point = self._checkpoints.recovery_point
        try:
            return recovery_point in (0, self._segments.active.next_offset())
        except BadBatch:
            return False

    def _has_usable_txn_index(self, segment: Segment) -> bool:
        try:
            segment.load_txn_index()
        except CorruptFileError as error:
            logger.warning("%s; it is built anew", error)
            return False
        segment.forget_indexes()
        return True

    def _note_without_indexes(self, index: int) -> None:
        if self._first_without_indexes is None:
            self._first_without_indexes = index

    def pass_5_recover_segments(
        self,
        snapshots: ProducerSnapshots,
        producers: ProducerState,
        epochs: LeaderEpochCache,
        *,
        clean: bool,
    ) -> None:
        """The process or the machine stopped: read every batch that may not have been synced.

        Indexes are built anew, and the log is cut at the first bad batch. The walk begins with the
        segment that holds the last synced offset: when the log rolled just behind it, the indexes
        of that segment may be the unsynced part.
        """
        recovery_point = self._checkpoints.recovery_point
        first = max(self._segments.floor_index(max(recovery_point - 1, 0)), 0)
        if clean:
            first = len(self._segments)
        if self._first_without_indexes is not None:
            first = min(first, self._first_without_indexes)
        self._rebuild_before(first, snapshots, producers)
        if clean:
            # Everything is synced, so nothing may be cut.
            recovery_point = INT64_MAX
        # The checkpoint of the epochs may be older than a truncation; the batches know better.
        epochs.truncate_from_end(recovery_point)
        index = first
        while index < len(self._segments):
            segment = self._segments[index]
            if index > first:
                path = snapshots.write(segment.base_offset, producers)
                self._unsynced.add_paths([path])
            expected, bad = self._recover_segment(segment, producers, epochs, index)
            if bad is None and expected >= recovery_point:
                bad = self._missing_tail(index, expected)
            if bad is not None:
                if expected < recovery_point:
                    raise segment.corrupt(bad, expected)
                self._cut(index, bad)
            self._unsynced.add_paths([segment.path(LOG_SUFFIX)])
            if index + 1 < len(self._segments):
                self._unsynced.add_paths(segment.write_indexes())
                segment.deactivate()
            index += 1
        # Whatever names are there may not be synced, either.
        self._unsynced.add_directory()
        self._indexes_changed = True

    def _rebuild_before(
        self, first: int, snapshots: ProducerSnapshots, producers: ProducerState
    ) -> None:
        """Bring the producers to where the walk begins."""
        base_offset = self._segments[first].base_offset
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

    def _recover_segment(
        self, segment: Segment, producers: ProducerState, epochs: LeaderEpochCache, index: int
    ) -> tuple[int, BadBatch | None]:
        """Read a whole segment; return the offset behind its last good batch, and what is bad."""
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
                self._check_epoch(position, header, epochs)
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

    def _check_epoch(
        self, position: int, header: RecordBatchHeader, epochs: LeaderEpochCache
    ) -> None:
        """Compare a synced batch with the checkpoint: its epoch is not under the checksum."""
        if header.base_offset >= self._checkpoints.recovery_point:
            return
        known = epochs.epoch_for_offset(header.base_offset)
        if known is not None and header.partition_leader_epoch not in (known, -1):
            raise BadBatch(
                position,
                f"epoch {header.partition_leader_epoch}, the checkpoint has {known}",
            )

    def _cut(self, index: int, bad: BadBatch) -> None:
        """Cut the log at a bad batch, and remove the segments behind it, the last one first.

        The removals are synced one by one: a crash must not bring a later segment back without
        the earlier ones.
        """
        segment = self._segments[index]
        logger.warning(
            "%s: cut at byte %d of %d after an unclean stop: %s; %d later segments removed",
            segment.slot.path,
            bad.position,
            segment.size,
            bad.reason,
            len(self._segments) - index - 1,
        )
        while len(self._segments) > index + 1:
            self._segments.pop_last().remove_files()
            self._fs.sync_directory(self._directory)
        segment.cut_at(bad.position)

    # --- the ends of the log and its state ---

    def pass_6_find_end(self) -> int:
        """Find the log's end; when it lies below the log start, begin anew at the log start.

        Records may be deleted up to an offset that was not synced yet; when a crash then loses
        what was not synced, the log ends below its start.

        Raises:
            CorruptLogError: the log ends before what was synced.
        """
        active = self._segments.active
        active.activate()
        try:
            end_offset = active.next_offset()
        except BadBatch as bad:
            raise active.corrupt(bad) from bad
        if end_offset < self._checkpoints.recovery_point:
            raise CorruptLogError(
                active.slot.path,
                end_offset,
                active.size,
                f"the log ends here, but everything below {self._checkpoints.recovery_point}"
                " was synced",
            )
        start_offset = self._checkpoints.log_start_offset
        if end_offset >= start_offset:
            return end_offset
        logger.warning("%s: ends below its start %d", self._directory, start_offset)
        while self._segments:
            self._segments.pop_last().remove_files()
            self._fs.sync_directory(self._directory)
        segment = self._new_segment(start_offset)
        segment.create()
        self._segments.add(segment)
        self._unsynced.names = True
        self._indexes_changed = True
        return start_offset

    def load_epochs(self) -> LeaderEpochCache:
        """Read the leader epochs; a file of no bytes is one that Kafka never wrote to."""
        if LEADER_EPOCH_CHECKPOINT not in self._names:
            return LeaderEpochCache()
        path = f"{self._directory}/{LEADER_EPOCH_CHECKPOINT}"
        data = read_file(self._fs, path)
        try:
            return LeaderEpochCache.decode(data) if data else LeaderEpochCache()
        except StorageError as error:
            raise CorruptFileError(path, str(error)) from error

    def pass_7_load_producers(
        self,
        snapshots: ProducerSnapshots,
        producers: ProducerState,
        end_offset: int,
        *,
        clean: bool,
    ) -> None:
        """Remove snapshots of what is no more; after a clean stop, load the newest one."""
        base_offsets = self._segments.base_offsets
        if snapshots.remove_above(end_offset):
            # One that came back after the next crash would describe batches that never were.
            self._fs.sync_directory(self._directory)
        if not clean:
            # A shutdown that was cut short may have left one; the next one writes it anew.
            snapshots.remove_torn(base_offsets[-1])
        snapshots.remove_below(base_offsets[0])
        snapshots.remove_stray(base_offsets)
        if not clean or self._first_without_indexes is not None:
            return
        if snapshots.latest_offset is not None:
            rebuild_producers(self._segments, snapshots, producers, end_offset, self._now_ms)
