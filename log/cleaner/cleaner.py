"""Compaction of the logs of one data directory.

Which part runs where:

| step                                                     | where          | file          |
|----------------------------------------------------------|----------------|---------------|
| choose a log; plan a round from facts that do not change | with the log   | plan.py       |
| read the dirty part into the key map, group the segments | in a thread    | copy.py       |
| write the recovery points to their checkpoint            | in a thread    | manager.py    |
| for each group: write and sync what is left of it        | in a thread    | copy.py       |
| and put it in the place of its originals, by renames     | with the log   | removal.py    |
| sync the names, write the checkpoint of the cleaner      | in a thread    | manager.py    |

Appends and reads go on meanwhile. Only segments that are closed, synced and below the last stable
offset are compacted. When the log is truncated, deleted, closed or not to be compacted any more, it
cancels: the thread stops at its next batch, and nothing is swapped any more, because the log looks
before each swap.

A dirty part with more keys than the map can hold takes several rounds, each of which begins where
the one before has ended. Kafka goes on with the rest when the log is due again.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from klamm.log.cleaner.cancellation import Cancellation, CleaningAborted
from klamm.log.cleaner.candidates import LogToClean, choose
from klamm.log.cleaner.copy import CleanedSegment, CleanerStats, Copier, remove_leftovers
from klamm.log.cleaner.key_map import KeyMap
from klamm.log.cleaner.pace import Pace, Throttle
from klamm.log.cleaner.plan import make_plan
from klamm.log.clock_jumps import PAUSE_MS, ClockJumps
from klamm.log.errors import LogError
from klamm.log.fs import DISK_FULL, NO_DESCRIPTORS
from klamm.log.layout import CLEANER_OFFSET_CHECKPOINT, RECOVERY_POINT_CHECKPOINT
from klamm.log.log_start import LogKeeper
from klamm.log.partition_log import PartitionLog
from klamm.log.work import Work

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CleanerConfig:
    """The settings of all compactions, under Kafka's names and with Kafka's defaults.

    Attributes:
        dedupe_buffer_size: log.cleaner.dedupe.buffer.size, divided by the number of threads.
        io_buffer_load_factor: log.cleaner.io.buffer.load.factor.
    """

    dedupe_buffer_size: int = 128 * 1024 * 1024
    io_buffer_load_factor: float = 0.9


class Cleaner:
    """Compaction of the logs of one data directory.

    Args:
        throttle: log.cleaner.io.max.bytes.per.second; the same for all directories.
    """

    def __init__(
        self, keeper: LogKeeper, throttle: Throttle, config: CleanerConfig | None = None
    ) -> None:
        self._keeper = keeper
        self._throttle = throttle
        self.config = config or CleanerConfig()
        self._clock_jumps = ClockJumps()
        self._paused_until_ms = 0

    def may_run(self, wall_ms: int, monotonic_ms: int) -> bool:
        """Say whether the wall clock can be believed; asked before each compaction."""
        if self._clock_jumps.notice(wall_ms, monotonic_ms):
            logger.warning("the wall clock has jumped to %d: compaction pauses", wall_ms)
            self._paused_until_ms = monotonic_ms + PAUSE_MS
        return monotonic_ms >= self._paused_until_ms

    def choose(self, logs: Iterable[PartitionLog], now_ms: int) -> LogToClean | None:
        """Return the log that is to be compacted next; None when none is due."""
        return choose(logs, now_ms)

    def clean(self, candidate: LogToClean, now_ms: int) -> Work[CleanerStats | None]:
        """Compact a log.

        Whoever closes the manager cancels what is under way (`PartitionLog.cancel_cleaning`), and
        waits for its thread: after that the directory may belong to somebody else.

        A log that can't be compacted because of what it holds is marked so, and left alone until
        the next start.

        Returns:
            What was done; None when the compaction was given up.

        Raises:
            LogError: KAFKA_STORAGE_ERROR, a swap was cut short; the log is offline.
            OSError: the disk refuses, for another reason than being full.
        """
        log = candidate.log
        assert log.cleaning is None
        log.cleaning = cancellation = Cancellation()
        try:
            return (yield from self._clean(candidate, now_ms, cancellation))
        except Exception as error:
            self._note_failure(log, cancellation, error)
        finally:
            log.cleaning = None
        if not log.is_deleted:
            try:
                yield partial(remove_leftovers, self._keeper.environment.fs, log.directory)
            except OSError as error:
                logger.warning("leftovers of a compaction in %s: %s", log.directory, error)
        return None

    def _note_failure(
        self, log: PartitionLog, cancellation: Cancellation, error: Exception
    ) -> None:
        """Decide what becomes of a log whose compaction has failed, or raise the error."""
        if isinstance(error, LogError):
            raise error
        if cancellation.is_cancelled or isinstance(error, CleaningAborted):
            # Whatever went wrong then: files are no longer what the thread was told.
            logger.info("compaction of %s-%d was cancelled", log.topic, log.partition)
        elif isinstance(error, OSError):
            if error.errno not in DISK_FULL | NO_DESCRIPTORS:
                raise error
            logger.warning("compaction of %s-%d: %s", log.topic, log.partition, error)
        else:
            log.is_uncleanable = True
            logger.error("%s-%d can't be compacted", log.topic, log.partition, exc_info=error)

    def _clean(
        self, candidate: LogToClean, now_ms: int, cancellation: Cancellation
    ) -> Work[CleanerStats]:
        log = candidate.log
        fs = self._keeper.environment.fs
        stats = CleanerStats()
        pace = Pace(self._throttle, cancellation)
        first_dirty_offset = candidate.first_dirty_offset
        while first_dirty_offset < candidate.first_uncleanable_offset:
            plan = make_plan(candidate, first_dirty_offset, now_ms)
            key_map = KeyMap(
                self.config.dedupe_buffer_size,
                self.config.io_buffer_load_factor,
                first_dirty_offset,
            )
            copier = Copier(fs, plan, key_map, pace, stats)
            yield copier.prepare
            # So recovery reads nothing again that has been compacted, except at its end.
            yield self._keeper.checkpoint_writer((RECOVERY_POINT_CHECKPOINT,))
            for group in copier.groups:
                cleaned: CleanedSegment = yield partial(copier.copy, group)
                _check(log, cancellation)
                first = log.segments.index_of(cleaned.originals[0])
                originals = [log.segments[first + at] for at in range(len(cleaned.originals))]
                assert tuple(s.base_offset for s in originals) == cleaned.originals
                log.replace_segments(originals, cleaned.size)
            yield partial(fs.sync_directory, log.directory)
            _check(log, cancellation)
            log.cleaner_offset = first_dirty_offset = copier.end_offset
            yield self._keeper.checkpoint_writer((CLEANER_OFFSET_CHECKPOINT,))
        return stats


def _check(log: PartitionLog, cancellation: Cancellation) -> None:
    """Raise CleaningAborted when the log must not be changed any more."""
    cancellation.check()
    if log.is_offline:
        raise CleaningAborted
