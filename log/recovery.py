"""Opening the log of a partition: numbered passes, each with the crash that it repairs.

After a clean shutdown passes 1 to 4 find nothing to do and pass 5 is skipped; only the end of the
last segment is read. After anything else, every segment from the recovery point on is read.

What counts as synced is what lies below the recovery point in its checkpoint, which moves only
after a successful sync. The checkpoint lags behind: batches above it may have been synced and
acknowledged, too. Cutting at the first bad batch above it keeps them all the same, because a crash
can only tear bytes that were not synced, and those lie behind every byte that was. Below the
recovery point nothing is ever cut: damage there is not the mark of a crash, and the partition stays
closed (CorruptLogError) until somebody decides. The same holds above it for what a killed process
can't have left, when the operating system has run on (segment_recovery.py).
"""

import logging
from collections.abc import Callable

from klamm.log.batches import BadBatch, iter_headers
from klamm.log.checkpoint import read_partition_metadata
from klamm.log.checkpoint_files import Checkpoints
from klamm.log.config import INT64_MAX, LogConfig
from klamm.log.environment import LogEnvironment
from klamm.log.errors import CorruptFileError, CorruptLogError, StorageError
from klamm.log.fs import read_file
from klamm.log.layout import (
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_CHECKPOINT,
    OFFSET_INDEX_SUFFIX,
    PARTITION_METADATA,
    STRAY_SUFFIX,
    TIME_INDEX_SUFFIX,
)
from klamm.log.leader_epochs import EpochEntry, LeaderEpochCache
from klamm.log.leftovers import Leftovers
from klamm.log.loaded_log import LoadedLog
from klamm.log.local_log import LocalLog
from klamm.log.partition_log import PartitionLog
from klamm.log.producer_state import PRODUCER_ID_EXPIRATION_MS, ProducerState
from klamm.log.replay import REPLAY_WINDOW_BYTES, rebuild_producers
from klamm.log.segment import Segment
from klamm.log.segment_recovery import SegmentRecovery
from klamm.log.sync import Unsynced

logger = logging.getLogger(__name__)

_INDEXES_ALWAYS_WRITTEN = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)


def open_log(
    environment: LogEnvironment,
    directory: str,
    topic: str,
    partition: int,
    config: LogConfig,
    *,
    clean: bool,
    is_same_boot: bool = False,
    checkpoints: Checkpoints,
    now_ms: int,
    producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
    on_recovery_point_lowered: Callable[[], None] = lambda: None,
) -> PartitionLog:
    """Open the log in an existing directory, repairing what a crash may have left.

    Args:
        clean: whether the last process to write here shut down cleanly.
        is_same_boot: whether the operating system has run on since then.

    Raises:
        CorruptLogError: data is damaged or missing, and no crash can have done it.
        CorruptFileError: a metadata file can't be understood.
    """
    topic_id = read_partition_metadata(environment.fs, f"{directory}/{PARTITION_METADATA}")
    recovery = Recovery(
        environment, directory, config, checkpoints, now_ms, is_same_boot=is_same_boot
    )
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
        *,
        is_same_boot: bool,
    ) -> None:
        self._fs = environment.fs
        self._directory = directory
        self._config = config
        self._checkpoints = checkpoints
        self._now_ms = now_ms
        self._is_same_boot = is_same_boot
        self._unsynced = Unsynced()
        self._leftovers = Leftovers(self._fs, directory, self._unsynced)
        self._local = LocalLog(environment, directory, self._leftovers.names, self._unsynced)
        self._segments = self._local.segments
        # The first segment whose indexes can't be taken from its files.
        self._first_without_indexes: int | None = None

    def run(self, producers: ProducerState, *, clean: bool) -> LoadedLog:
        self._leftovers.pass_1_remove_unfinished()
        self._leftovers.pass_2_remove_replaced_segments()
        self._leftovers.pass_3_finish_swaps()
        self.pass_4_load_segments()
        was_closed = clean
        clean = clean and self._ends_as_synced()
        snapshots = self._local.snapshots
        epochs = self.load_epochs()
        known_epochs = epochs.entries if epochs is not None else ()
        if epochs is None:
            epochs = self._rebuild_epochs(clean=clean)
        if not clean or self._first_without_indexes is not None:
            self.pass_5_recover_segments(producers, epochs, clean=clean)
        ended_at = self._segments.active
        end_offset = self.pass_6_find_end(was_closed=was_closed)
        if self._segments.active is not ended_at and producers.entries:
            # No batch is left to tell of the producers.
            self._unsynced.add_paths([snapshots.write(end_offset, producers)])
        start_offset = self._find_start(known_epochs, was_closed=was_closed)
        # In this order: an empty log has no epoch, and recovering it again changes nothing.
        epochs.truncate_from_start(start_offset)
        epochs.truncate_from_end(end_offset)
        if epochs.entries != known_epochs:
            self._unsynced.add_epoch()
        self.pass_7_load_producers(producers, end_offset, clean=clean)
        recovery_point = end_offset if clean else min(self._checkpoints.recovery_point, end_offset)
        high_watermark = min(max(self._checkpoints.high_watermark, start_offset), end_offset)
        producers.on_high_watermark_updated(high_watermark)
        return LoadedLog(
            local=self._local,
            producers=producers,
            leader_epochs=epochs,
            log_start_offset=start_offset,
            log_end_offset=end_offset,
            high_watermark=high_watermark,
            recovery_point=recovery_point,
        )

    def pass_4_load_segments(self) -> None:
        """A roll or removal was cut short: remove indexes without a log, note missing ones."""
        base_offsets = self._leftovers.remove_orphaned_indexes()
        present = set(self._leftovers.names)
        for base_offset in base_offsets:
            segment = self._local.new_segment(base_offset, self._now_ms)
            segment.load()
            self._segments.add(segment)
            names = {segment.path(s).rpartition("/")[2] for s in _INDEXES_ALWAYS_WRITTEN}
            has_indexes = names <= present and self._has_usable_txn_index(segment)
            if not has_indexes and self._first_without_indexes is None:
                self._first_without_indexes = len(self._segments) - 1
        if not self._segments:
            self._local.begin_at(self._checkpoints.log_start_offset, self._now_ms)

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

    def pass_5_recover_segments(
        self, producers: ProducerState, epochs: LeaderEpochCache, *, clean: bool
    ) -> None:
        """The process or the machine stopped: read every batch that may not have been synced."""
        recovery = SegmentRecovery(
            *(self._local, self._config, self._checkpoints, producers, epochs, self._now_ms),
            is_same_boot=self._is_same_boot,
        )
        recovery.run(self._first_without_indexes, clean=clean)

    # --- the ends of the log and its state ---

    def pass_6_find_end(self, *, was_closed: bool) -> int:
        """Find the log's end; when it lies below the log start, begin anew at the log start.

        Records may be deleted up to an offset that was not synced yet; when the system then stops
        and loses what was not synced, the log ends below its start. Nothing else can do that: after
        a clean stop or a kill, the checkpoint is damaged. The segments are only set aside, because
        it has no checksum that would tell the one from the other.

        Raises:
            CorruptLogError: the log ends before what was synced, or before its start.
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
        if was_closed or self._is_same_boot:
            raise CorruptLogError(
                active.slot.path,
                end_offset,
                active.size,
                f"the log ends here, but {LOG_START_CHECKPOINT} lets it begin at {start_offset}",
            )
        logger.warning(
            "%s: ends at %d, below its start %d; it begins anew there, and what it had is set aside"
            " in files that end in %s",
            self._directory,
            end_offset,
            start_offset,
            STRAY_SUFFIX,
        )
        while self._segments:
            self._local.set_last_segment_aside()
        self._local.begin_at(start_offset, self._now_ms)
        return start_offset

    def _find_start(self, known_epochs: tuple[EpochEntry, ...], *, was_closed: bool) -> int:
        """Return where the log begins.

        A log start is on disk before any segment goes, and the epochs follow it. So after a clean
        stop they begin where the log begins, and at no time before its first segment. Only an
        Apache Kafka that stops in the wrong moment leaves this, too, so the log is served, and
        nothing of it is hidden.
        """
        first = self._segments.first.base_offset
        checkpointed = self._checkpoints.log_start_offset
        start = max(checkpointed, first)
        known = known_epochs[0].start_offset if known_epochs else start
        if known >= start:
            return start
        names = f"{LOG_START_CHECKPOINT} has {checkpointed}, {LEADER_EPOCH_CHECKPOINT} {known}"
        if checkpointed < first:
            logger.warning(
                "%s: the first segment begins at %d, but %s: what was before it is missing",
                self._directory,
                first,
                names,
            )
        elif was_closed and max(known, first) < self._local.batch_start(start):
            start = max(known, first)
            logger.warning("%s: begins at %d, because %s", self._directory, start, names)
        return start

    def load_epochs(self) -> LeaderEpochCache | None:
        """Read the leader epochs; None without them. A file of no bytes is as Kafka makes it."""
        if LEADER_EPOCH_CHECKPOINT not in self._leftovers.names:
            return None
        path = f"{self._directory}/{LEADER_EPOCH_CHECKPOINT}"
        data = read_file(self._fs, path)
        try:
            return LeaderEpochCache.decode(data) if data else None
        except StorageError as error:
            raise CorruptFileError(path, str(error)) from error

    def _rebuild_epochs(self, *, clean: bool) -> LeaderEpochCache:
        """Take the epochs from the batches, as far as pass 5 will not read them anyway."""
        epochs = LeaderEpochCache()
        synced_to = INT64_MAX if clean else self._checkpoints.recovery_point
        try:
            for segment in self._segments:
                if segment.size == 0 or segment.base_offset >= synced_to:
                    break
                headers = iter_headers(segment.file(), 0, segment.size, REPLAY_WINDOW_BYTES)
                for _, header in headers:
                    epoch, latest = header.partition_leader_epoch, epochs.latest_epoch
                    if epoch >= 0 and (latest is None or epoch > latest):
                        epochs.assign(epoch, header.base_offset)
        except BadBatch as bad:
            # Whoever reads what is there will tell more of it.
            logger.warning("%s: the epochs behind it are not known", segment.corrupt(bad))
        if epochs.entries:
            path = f"{self._directory}/{LEADER_EPOCH_CHECKPOINT}"
            logger.warning("%s is missing or empty; it is made anew", path)
        return epochs

    def pass_7_load_producers(
        self, producers: ProducerState, end_offset: int, *, clean: bool
    ) -> None:
        """Remove snapshots of what is no more; after a clean stop, load the newest one."""
        snapshots = self._local.snapshots
        base_offsets = self._segments.base_offsets
        if snapshots.remove_above(end_offset):
            # One that came back after the next crash would describe batches that never were.
            self._fs.sync_directory(self._directory)
        if not clean:
            # A roll or shutdown that was cut short may have left one, torn or not synced.
            kept = snapshots.remove_torn(base_offsets[-1])
            self._unsynced.add_paths([snapshots.path(offset) for offset in kept])
        snapshots.remove_below(base_offsets[0])
        snapshots.remove_stray(base_offsets)
        if not clean or self._first_without_indexes is not None:
            return
        if snapshots.latest_offset is not None:
            rebuild_producers(self._segments, snapshots, producers, end_offset, self._now_ms)
