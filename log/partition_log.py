"""The log of one partition: append, sync, truncate.

Reading is in readable_log.py, and what becomes of the files in local_log.py.

Synchronous, without threads and without a clock. The order of an append is: validate → check the
producer → roll if needed → one vectored write → update the state. Everything that can refuse comes
before the write, so that a refused append leaves the log as it was; a write that fails is cut off
again.

What is durable: `recovery_point` is the offset below which everything, with the names and indexes
that belong to it, was synced. It moves only in `mark_synced`, after a sync that succeeded.
"""

from collections.abc import Callable, Collection
from typing import NamedTuple
from uuid import UUID

from klamm.log.append_origin import AppendOrigin
from klamm.log.checkpoint import encode_partition_metadata, replace_file
from klamm.log.cleaner.cancellation import Cancellation
from klamm.log.config import LogConfig
from klamm.log.environment import LogEnvironment
from klamm.log.errors import LogError
from klamm.log.fs import DISK_FULL, NO_DESCRIPTORS
from klamm.log.layout import LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA
from klamm.log.loaded_log import LoadedLog
from klamm.log.opening import OpenedRecords
from klamm.log.producer_entry import ProducerStateEntry
from klamm.log.producer_snapshot import decode_snapshot, encode_snapshot
from klamm.log.producer_state import VerificationGuard
from klamm.log.readable_log import ReadableLog
from klamm.log.replay import apply_batch, rebuild_producers
from klamm.log.segment import Segment
from klamm.log.sync import SyncRequest
from klamm.log.validate import validate_batch, validate_replicated
from klamm.wire.errors import ErrorCode

_REPLICATION = AppendOrigin.REPLICATION
_RAFT_LEADER = AppendOrigin.RAFT_LEADER


class AppendResult(NamedTuple):
    """Where a batch went.

    log_append_time_ms is -1 for CreateTime; for a duplicate it is the timestamp of the original.
    A duplicate was not written again: its offsets are those of the original. `rolled` says that
    the append began a new segment, so the old one should be synced soon.
    """

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    size_in_bytes: int
    duplicate: bool
    rolled: bool

    @property
    def end_offset(self) -> int:
        """The batch is durable once a SyncRequest up to this offset has run."""
        return self.last_offset + 1


class PartitionLog(ReadableLog):
    """One partition's log; made by recovery.open_log.

    Attributes:
        recovery_point: everything below is durable.
        cleaner_offset: compaction has come to here; None when it never ran.
        cleaning: the compaction that is under way, which alone takes segments out of the log then.
        is_uncleanable: a compaction failed; no other is tried in this run.
        is_moving: it is being copied to another directory (future.py).
        on_log_start_moved: is called when the log begins later than before.
    """

    def __init__(
        self,
        environment: LogEnvironment,
        topic: str,
        partition: int,
        topic_id: UUID,
        config: LogConfig,
        loaded: LoadedLog,
        on_recovery_point_lowered: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(topic, partition, config, loaded)
        self.topic_id = topic_id
        self.directory = loaded.local.directory
        self.recovery_point = loaded.recovery_point
        self.cleaner_offset: int | None = None
        self.cleaning: Cancellation | None = None
        self.is_uncleanable = False
        self.is_moving = False
        self.on_log_start_moved: Callable[[], None] = lambda: None
        self._announced_log_start = 0
        self._environment = environment
        self._local = loaded.local
        self._latest_epoch = loaded.leader_epochs.latest_epoch
        self._on_recovery_point_lowered = on_recovery_point_lowered
        self._unsynced = loaded.local.unsynced

    @property
    def active_segment(self) -> Segment:
        return self.segments.active

    @property
    def root(self) -> str:
        """The data directory that the log is in."""
        return self.directory.rpartition("/")[0]

    @property
    def is_deleted(self) -> bool:
        """Whether the directory has been renamed away; another log may have its name."""
        return self._unsynced.is_deleted

    @property
    def keeps_segments(self) -> bool:
        """Whether somebody reads its segments who must not miss any."""
        return self.is_moving or self.cleaning is not None

    def update_config(self, config: LogConfig) -> None:
        """Obey another configuration from the next operation on."""
        if self.config.compacts and not config.compacts:
            self.cancel_cleaning()
        self.config = config

    def cancel_cleaning(self) -> None:
        """Have a compaction under way end without changing the log any more."""
        if self.cleaning is not None:
            self.cleaning.cancel()

    # --- append ---

    def append(
        self,
        records: bytes | memoryview,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        guard: VerificationGuard | None = None,
        transaction_version: int = 0,
        opened: OpenedRecords | None = None,
    ) -> AppendResult:
        """Write a batch at the end of the log.

        Args:
            records: one batch; from a leader (REPLICATION, RAFT_LEADER) any number of them, which
                keep their offsets and epochs.
            leader_epoch: stamped on the batch, or the epoch of the fetch that brought it.
            guard: proof of a verified transaction (KIP-890), see ProducerState.
            transaction_version: of the coordinator that wrote a marker.
            opened: what validate.open_records made of the records, where needs_opening asked for
                it; without it they are opened here if they have to be.

        Raises:
            LogError: with the code for the client; the log is as it was before.
        """
        if self.is_offline:
            raise LogError(ErrorCode.KAFKA_STORAGE_ERROR, "the log is offline after a disk error")
        if origin is _REPLICATION or origin is _RAFT_LEADER:
            return self._append_as_follower(records, leader_epoch, now_ms, origin)
        base_offset = self.log_end_offset
        batch = validate_batch(
            records,
            config=self.config,
            origin=origin,
            base_offset=base_offset,
            leader_epoch=leader_epoch,
            now_ms=now_ms,
            opened=opened,
        )
        header = batch.header
        size = batch.size_in_bytes
        if size > self.config.segment_bytes:
            raise self._larger_than_segment(size)
        producers = self.producers
        if header.producer_id >= 0:
            duplicate = producers.check(
                header,
                origin,
                guard=guard,
                marker=batch.marker,
                transaction_version=transaction_version,
            )
            if duplicate is not None:
                return AppendResult(
                    duplicate.first_offset,
                    duplicate.last_offset,
                    duplicate.timestamp,
                    self.log_start_offset,
                    0,
                    True,
                    False,
                )
        last_offset = base_offset + header.last_offset_delta
        max_timestamp = batch.max_timestamp
        rolled = self._roll_if_needed(size, max_timestamp, last_offset, base_offset, now_ms)
        active = self.segments.active
        try:
            active.append(
                batch.chunks, size, last_offset, max_timestamp, self.config.index_interval_bytes
            )
        except OSError as error:
            raise self._refuse_after(error) from error
        self.log_end_offset = last_offset + 1
        self._local.indexes_changed = True
        if leader_epoch != self._latest_epoch:
            self._assign_epoch(leader_epoch, base_offset)
        if header.producer_id >= 0:
            apply_batch(producers, active, header, base_offset, max_timestamp, batch.marker)
        return AppendResult(
            base_offset,
            last_offset,
            batch.log_append_time_ms,
            self.log_start_offset,
            size,
            False,
            rolled,
        )

    def _append_as_follower(
        self, records: bytes | memoryview, leader_epoch: int, now_ms: int, origin: AppendOrigin
    ) -> AppendResult:
        """Write what a leader has accepted, with the offsets and epochs that it gave."""
        batches = validate_replicated(records, self.log_end_offset, leader_epoch, origin)
        if not batches.headers:
            end = self.log_end_offset
            return AppendResult(end, end - 1, -1, self.log_start_offset, 0, False, False)
        base_offset = batches.headers[0].base_offset
        last_offset = batches.headers[-1].last_offset
        max_timestamp = max(header.max_timestamp for header in batches.headers)
        size = len(batches.records)
        if size > self.config.segment_bytes:
            raise self._larger_than_segment(size)
        rolled = self._roll_if_needed(size, max_timestamp, last_offset, base_offset, now_ms)
        active = self.segments.active
        position = active.size
        try:
            active.write([batches.records], size)
        except OSError as error:
            raise self._refuse_after(error) from error
        self.log_end_offset = last_offset + 1
        self._local.indexes_changed = True
        for header, marker in zip(batches.headers, batches.markers, strict=True):
            active.note_batch(position, header, self.config.index_interval_bytes)
            position += header.size_in_bytes
            if header.partition_leader_epoch != self._latest_epoch:
                self._assign_epoch(header.partition_leader_epoch, header.base_offset)
            if header.producer_id >= 0:
                apply_batch(
                    self.producers,
                    active,
                    header,
                    header.base_offset,
                    header.max_timestamp,
                    marker,
                )
        return AppendResult(
            base_offset, last_offset, -1, self.log_start_offset, size, False, rolled
        )

    def _assign_epoch(self, epoch: int, start_offset: int) -> None:
        if epoch >= 0 and self.leader_epochs.assign(epoch, start_offset):
            self._latest_epoch = epoch
            self._unsynced.add_epoch()

    def _refuse_after(self, error: OSError) -> LogError:
        """Cut off what a failed write left, and say what the client gets.

        A full disk is a passing condition: the log goes on as before. After any other error the
        state of the file is unknown, and the log stays offline until recovery has looked at it.
        """
        if error.errno not in NO_DESCRIPTORS:
            if error.errno not in DISK_FULL:
                self.fail(error)
            try:
                self.segments.active.restore_size()
            except OSError as second:
                self.fail(second)
        return LogError(ErrorCode.KAFKA_STORAGE_ERROR, f"write failed: {error.strerror}")

    # --- roll ---

    def _roll_if_needed(
        self, size: int, max_timestamp: int, last_offset: int, base_offset: int, now_ms: int
    ) -> bool:
        config = self.config
        active = self.segments.active
        if not active.should_roll(size, max_timestamp, last_offset, now_ms, config):
            return False
        if active.size == 0 and active.base_offset == base_offset:
            return False
        try:
            self._local.roll(base_offset, self.producers, now_ms)
        except OSError as error:
            raise self._refuse_after(error) from error
        return True

    def _larger_than_segment(self, size: int) -> LogError:
        return LogError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"{size} bytes do not fit into a segment of {self.config.segment_bytes}",
        )

    def roll(self, now_ms: int) -> bool:
        """Begin a new segment now, unless the active one is empty; say whether that was done."""
        if self.segments.active.size == 0:
            return False
        self._local.roll(self.log_end_offset, self.producers, now_ms)
        return True

    # --- durability ---

    def pending_sync(self) -> SyncRequest:
        """Return what has to be synced so that everything appended until now is durable."""
        active = self.segments.active
        end_offset = self.log_end_offset
        # The high watermark will come to stand here, and readers will ask for it.
        active.remember_position(end_offset, active.size)
        has_unsynced_data = end_offset > self.recovery_point and active.size > 0
        if self._unsynced.is_deleted:
            # Its file is closed, and another partition may have the name by now.
            has_unsynced_data = False
        return SyncRequest(
            fs=self._environment.fs,
            directory=self.directory,
            end_offset=end_offset,
            unsynced=self._unsynced,
            file=active.file() if has_unsynced_data else None,
            replacement=(
                (LEADER_EPOCH_CHECKPOINT, self.leader_epochs.encode())
                if self._unsynced.epochs
                else None
            ),
        )

    def mark_synced(self, request: SyncRequest) -> None:
        """Note that a request has run without an error."""
        if self._unsynced.mark_synced(request):
            assert request.end_offset <= self.log_end_offset
            if not request.is_partial:
                self.recovery_point = max(self.recovery_point, request.end_offset)

    def flush(self) -> None:
        """Sync everything now, in this thread.

        Raises:
            OSError: the disk failed; the process must halt without trying again.
        """
        request = self.pending_sync()
        request.run()
        self.mark_synced(request)

    def write_out(self) -> None:
        """Write out and sync everything that lives in memory, as a clean shutdown needs it.

        May run in any thread, as long as nobody else uses the log.
        """
        if self.is_offline:
            # What is in memory may not fit what is on disk; recovery will look at the disk.
            return
        if self._local.indexes_changed:
            self._unsynced.add_paths(self.segments.active.write_indexes())
        if self.log_end_offset > (self._local.snapshots.latest_offset or 0):
            snapshot = self._local.snapshots.write(self.log_end_offset, self.producers)
            self._unsynced.add_paths([snapshot])
        self.flush()
        self._local.indexes_changed = False

    def close(self) -> None:
        """Write out and sync everything, and let go of all files."""
        self.write_out()
        self.close_files()

    def close_files(self) -> None:
        """Let go of all files without writing anything."""
        self.cancel_cleaning()
        for segment in self.segments:
            segment.close()

    # --- watermarks ---

    def advance_high_watermark(self, offset: int) -> bool:
        """Let readers see everything below offset; say whether that is news."""
        offset = min(offset, self.log_end_offset)
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        self.producers.on_high_watermark_updated(offset)
        return True

    @property
    def latest_epoch(self) -> int:
        """The newest epoch that has written anything; -1 when nothing was written."""
        return -1 if self._latest_epoch is None else self._latest_epoch

    # --- truncation and removal ---

    def truncate_to(self, offset: int, now_ms: int) -> bool:
        """Drop everything at or above offset, as a follower does that has diverged.

        A batch that holds the offset goes as a whole. The recovery point and the log start are
        lowered on disk first: otherwise a crash in between would look like the loss of data.

        Returns:
            Whether anything was dropped.
        """
        assert offset >= 0
        if offset >= self.log_end_offset:
            if self.leader_epochs.truncate_from_end(self.log_end_offset):
                self._unsynced.add_epoch()
                self._latest_epoch = self.leader_epochs.latest_epoch
            return False
        self.cancel_cleaning()
        offset = self._local.batch_start(offset)
        log_start_on_disk = self.log_start_to_checkpoint
        self._announced_log_start = 0
        if self.cleaner_offset is not None:
            self.cleaner_offset = min(self.cleaner_offset, offset)
        if self.recovery_point > offset or log_start_on_disk > offset:
            self.recovery_point = min(self.recovery_point, offset)
            self.log_start_offset = min(self.log_start_offset, offset)
            self._on_recovery_point_lowered()
        self._unsynced.on_truncated()
        self.log_end_offset = self._local.truncate_to(offset, now_ms)
        self.recovery_point = min(self.recovery_point, self.log_end_offset)
        self.log_start_offset = min(self.log_start_offset, self.log_end_offset)
        self.high_watermark = min(self.high_watermark, self.log_end_offset)
        self._forget_state_above(self.log_end_offset, now_ms)
        return True

    def first_batch_offset(self) -> int:
        """Return where the batch begins that holds the log start.

        Raises:
            LogError: KAFKA_STORAGE_ERROR, the disk fails.
        """
        try:
            return self._local.batch_start(self.log_start_offset)
        except OSError as error:
            raise self._refuse_read_after(error) from error

    def inherit_producers(self, entries: Collection[ProducerStateEntry], now_ms: int) -> None:
        """Know producers from the beginning on of whom no batch will tell; the log is empty yet."""
        if entries:
            # A snapshot holds copies: what it is made of may go on elsewhere.
            self.producers.load(decode_snapshot(encode_snapshot(entries)), now_ms)
            path = self._local.snapshots.write(self.log_end_offset, self.producers)
            self._unsynced.add_paths([path])

    def skip_to(self, offset: int, now_ms: int) -> None:
        """Let the next record have this offset, as in the log that this one follows."""
        assert offset > self.log_end_offset
        self._local.roll(offset, self.producers, now_ms)
        self.log_end_offset = offset

    def _forget_state_above(self, end_offset: int, now_ms: int) -> None:
        """Bring epochs, snapshots and producers back to what they were at end_offset."""
        self.leader_epochs.truncate_from_end(end_offset)
        self._latest_epoch = self.leader_epochs.latest_epoch
        self._unsynced.add_epoch()
        self._local.drop_snapshots_above(end_offset)
        rebuild_producers(self.segments, self._local.snapshots, self.producers, end_offset, now_ms)
        self.producers.on_high_watermark_updated(self.high_watermark)

    def announce_log_start(self, offset: int) -> None:
        """Let checkpoints say from now on that the log begins at offset.

        First of the three steps in which a log's start moves, so that it never moves back: it is
        announced, a checkpoint is written, and then increment_log_start_offset makes it true.

        Raises:
            LogError: OFFSET_OUT_OF_RANGE, the offset is above the high watermark.
        """
        if offset > self.high_watermark:
            raise LogError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{offset} is above the high watermark {self.high_watermark}",
            )
        self._announced_log_start = max(self._announced_log_start, offset)

    @property
    def log_start_to_checkpoint(self) -> int:
        """Where the log begins, or will begin when this is on disk."""
        return max(self.log_start_offset, self._announced_log_start)

    def increment_log_start_offset(self, offset: int) -> bool:
        """Let the log begin at offset from now on; say whether that is news.

        Raises:
            LogError: OFFSET_OUT_OF_RANGE, the offset is above the high watermark.
        """
        self.announce_log_start(offset)
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        if self.leader_epochs.truncate_from_start(offset):
            self._unsynced.add_epoch()
        self.producers.on_log_start_offset_incremented(offset)
        self.on_log_start_moved()
        return True

    def remove_segments_below_log_start(self, segments_max: int | None = None) -> int:
        """Take out the segments that lie wholly below the log start; return how many.

        A checkpoint has to know the log start before. Their files go later (deletions.py).

        Raises:
            LogError: KAFKA_STORAGE_ERROR, the disk refuses; the log is offline.
        """
        assert not self.keeps_segments, "somebody reads them"
        try:
            return self._local.remove_below(
                self.log_start_offset, self.config.file_delete_delay_ms, segments_max
            )
        except OSError as error:
            self.fail(error)
            raise LogError(ErrorCode.KAFKA_STORAGE_ERROR, f"removal failed: {error}") from error

    def snapshot_sync(self, offset: int) -> Callable[[], None]:
        """Return what makes the producer snapshot at an offset durable, in any thread."""
        fs, directory = self._environment.fs, self.directory
        path = self._local.snapshots.path(offset)

        def sync() -> None:
            if fs.exists(path):
                fs.open(path).datasync()
                fs.sync_directory(directory)

        return sync

    def replace_segments(self, originals: list[Segment], size: int) -> None:
        """Put what compaction has written and synced in the place of the originals.

        Its files bear the name of the first of them and end in `.cleaned`.

        Args:
            size: of what it has written.

        Raises:
            OSError: the disk refuses to begin; nothing has changed.
            LogError: KAFKA_STORAGE_ERROR, the disk refuses to go on; the log is offline.
        """
        assert originals[-1].base_offset < self.segments.active.base_offset
        first = originals[0]
        new = self._local.begin_swap(first.base_offset, first.created_ms)
        new.size = new.verified_to = size
        try:
            self._local.finish_swap(new, originals, self.config.file_delete_delay_ms)
        except OSError as error:
            self.fail(error)
            raise LogError(ErrorCode.KAFKA_STORAGE_ERROR, f"swap failed: {error}") from error

    def set_topic_id(self, topic_id: UUID) -> None:
        """Write down which topic the directory belongs to, before it holds any data."""
        content = encode_partition_metadata(topic_id)
        replace_file(
            self._environment.fs,
            self.directory,
            PARTITION_METADATA,
            content,
            sync_directory=False,
        )
        self.topic_id = topic_id
        self._unsynced.add_directory()

    def on_renamed(self) -> None:
        """The directory has another name now, which the next sync makes durable, too."""
        self._unsynced.add_directory()

    def on_deleted(self) -> None:
        """Let go of everything: the directory has been or is being renamed away."""
        self._unsynced.is_deleted = True
        self.is_offline = True
        # Whoever still reads it may find that its files are gone: the disk is well.
        self.on_disk_error = lambda error: None
        self._environment.deletions.forget(self.directory)
        self.close_files()
