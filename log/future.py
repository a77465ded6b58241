"""A copy of a log in another directory, which takes the log's place when it has all of it.

A partition moves to another directory of its broker in these steps, which are Kafka's:

1. An empty log is made, in a directory whose name ends in `-future`, and follows the log as a
   replica does, while the log is written to and read.
2. When it has come near, the metadata assigns the partition to the new directory.
3. What is missing is copied, and everything is synced, with the checkpoints that belong to it. If
   the log has not grown meanwhile, the copy gets the partition's own name and is the log from now
   on. Otherwise this is done again; a log that grows all the time is copied to its end and synced
   once with nobody else having a turn.
4. The new name is synced, and then the old directory is put away.

Until the rename of step 3 the old directory has everything that was acknowledged, and afterwards
the new one has: what is appended to it is acknowledged after its new name was synced, too. So a
crash at any point leaves one directory that has all of it, and the start finds it by the names (see
directories.py). An unfinished copy is dropped by a start, and made anew.

While it moves, a log keeps its segments: it is neither compacted nor are old segments removed.
"""

import time
from collections.abc import Callable
from functools import partial
from uuid import uuid4

from klamm.log.append_origin import AppendOrigin
from klamm.log.checkpoint_files import Checkpoints
from klamm.log.errors import LogError
from klamm.log.layout import FUTURE_DIRECTORY_SUFFIX, renamed_directory
from klamm.log.log_read import LogRead, read_segments
from klamm.log.manager import LogManager
from klamm.log.partition_log import PartitionLog
from klamm.log.readiness import NotReady
from klamm.log.recovery import open_log
from klamm.log.work import Work, run_inline
from klamm.wire.errors import ErrorCode

# Copied at a time: read and checked in a thread, and written in a millisecond.
COPY_BYTES = 1024 * 1024
# What is written and not synced; so the last sync is a short one.
UNSYNCED_BYTES_MAX = 64 * 1024 * 1024
# How often the end of the log is awaited before it is copied at one go.
ROUNDS_MAX = 5
CLEANING_POLL_S = 0.01


class FutureLog:
    """One move of one log.

    Args:
        source: the log that moves.
        target: the directory that it moves to.
        now_ms: wall time.

    Attributes:
        log: the copy as far as it has come.
        is_cancelled: set by `drop`; whatever is under way ends.

    Raises:
        LogError: KAFKA_STORAGE_ERROR, the log can't be read.
        OSError: the copy can't be made.
    """

    def __init__(self, source: PartitionLog, target: LogManager, now_ms: Callable[[], int]) -> None:
        self.source = source
        self.target = target
        self.is_cancelled = False
        self._now_ms = now_ms
        self._fs = target.environment.fs
        name = renamed_directory(
            source.topic, source.partition, uuid4().hex, FUTURE_DIRECTORY_SUFFIX
        )
        self.directory = f"{target.root}/{name}"
        first_offset = source.first_batch_offset()
        self._fs.make_directory(self.directory)
        try:
            self.log = self._open_copy(first_offset)
        except BaseException:
            target.put_away(self.directory)
            raise
        source.is_moving = True

    def _open_copy(self, first_offset: int) -> PartitionLog:
        source = self.source
        log = open_log(
            self.target.environment,
            self.directory,
            source.topic,
            source.partition,
            source.config,
            clean=True,
            checkpoints=Checkpoints(log_start_offset=first_offset),
            now_ms=self._now_ms(),
        )
        log.on_disk_error = self.target.on_disk_error
        gone = [e for e in source.producers.entries.values() if e.last_data_offset < first_offset]
        log.inherit_producers(gone, self._now_ms())
        return log

    @property
    def offset_lag(self) -> int:
        return max(0, self.source.log_end_offset - self.log.log_end_offset)

    def drop(self) -> None:
        """Give the move up: the log stays where it is, and the copy is put away."""
        self.is_cancelled = True
        self.source.is_moving = False
        self.log.on_deleted()
        self.target.put_away(self.directory)

    # --- the steps ---

    def catch_up(self) -> Work[None]:
        """Step 1: copy what is there.

        Raises:
            LogError: KAFKA_STORAGE_ERROR, the log or the copy is offline, or the move was dropped.
            OSError: the copy can't be written or synced.
        """
        if self.log.topic_id != self.source.topic_id:
            yield partial(self.log.set_topic_id, self.source.topic_id)
        self.source.cancel_cleaning()
        while self.source.cleaning is not None:
            yield partial(time.sleep, CLEANING_POLL_S)
        yield from self._copy()

    def finish(self) -> Work[PartitionLog]:
        """Step 3; return the log that the partition has from now on.

        Raises:
            LogError, OSError: as catch_up.
        """
        for _ in range(ROUNDS_MAX):
            yield from self._copy()
            log_start_offset = yield from self._make_durable()
            if self._is_complete(log_start_offset):
                break
        else:
            self._end_at_one_go()
        return self._take_over()

    def _end_at_one_go(self) -> None:
        """Copy what came during the last round, and wait for the disk with everybody."""
        run_inline(self._copy())
        run_inline(self._make_durable())

    def _copy(self) -> Work[None]:
        """Copy to the end that the log has then."""
        unsynced_bytes = 0
        while self.log.log_end_offset < self.source.log_end_offset:
            self._check()
            read = yield from self._read()
            if not read.slice:
                # What was there last has been compacted away: the next record comes later.
                self.log.skip_to(self.source.log_end_offset, self._now_ms())
                break
            data = yield read.slice.read
            self._check()
            unsynced_bytes += self._append(data)
            if unsynced_bytes > UNSYNCED_BYTES_MAX:
                yield self.log.flush
                unsynced_bytes = 0

    def _append(self, data: bytes) -> int:
        """Write whole batches to the copy; return how many bytes that are."""
        try:
            return self.log.append(
                data,
                leader_epoch=self.source.latest_epoch,
                now_ms=self._now_ms(),
                origin=AppendOrigin.REPLICATION,
            ).size_in_bytes
        except LogError as refused:
            # The caller can tell a full disk, which may have room later, from a broken one.
            if isinstance(refused.__cause__, OSError):
                raise refused.__cause__ from None
            raise

    def _read(self) -> Work[LogRead]:
        """Read on where the copy ends, also below the log start."""
        try:
            try:
                return self._read_segments(may_wait=False)
            except NotReady as unready:
                yield from unready.steps
                return self._read_segments(may_wait=True)
        except OSError as error:
            self.source.fail(error)
            raise LogError(ErrorCode.KAFKA_STORAGE_ERROR, f"read failed: {error}") from error

    def _read_segments(self, *, may_wait: bool) -> LogRead:
        end_offset = self.source.log_end_offset
        return read_segments(
            self.source.segments,
            self.log.log_end_offset,
            min(COPY_BYTES, self.source.config.segment_bytes),
            end_offset,
            end_offset,
            min_one_batch=True,
            may_wait=may_wait,
        )

    def _make_durable(self) -> Work[int]:
        """Sync the copy, and the checkpoints that it will be opened with; return its log start."""
        log_start_offset = self.source.log_start_to_checkpoint
        self.target.expect(self.source, self.log.log_end_offset)
        yield self.target.checkpoint_writer()
        # As after a clean stop, its epochs begin where the log begins.
        self.log.advance_high_watermark(self.log.log_end_offset)
        self.log.increment_log_start_offset(min(log_start_offset, self.log.log_end_offset))
        yield self.log.write_out
        return log_start_offset

    def _is_complete(self, log_start_offset: int) -> bool:
        source = self.source
        return (
            self.log.log_end_offset == source.log_end_offset
            and log_start_offset == source.log_start_to_checkpoint
        )

    def _take_over(self) -> PartitionLog:
        self._check()
        source = self.source
        self.log.close_files()
        log = self.target.adopt(self.directory, source, self._now_ms())
        # They know more than their snapshot does.
        log.producers = source.producers
        log.advance_high_watermark(source.high_watermark)
        return log

    def _check(self) -> None:
        if self.is_cancelled or self.source.is_offline or self.log.is_offline:
            raise LogError(ErrorCode.KAFKA_STORAGE_ERROR, "the move has ended")
