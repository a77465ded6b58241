"""Retention: which segments of a log go, and the way in which they go.

Whole segments go, the oldest first, each for one of these reasons, in this order:

1. it lies wholly below the log start (DeleteRecords), whatever the cleanup policy;
2. `retention.bytes`: without it the log is still at least that large;
3. `retention.ms`: its greatest timestamp is older than that. The time is that of its records, and
   that of its last write only where the records have none.

-1 means without limit. Nothing at or above the high watermark goes. When all segments are to go,
the active one is rolled, and the log begins empty at its end.

The way (row 6 of the fault table: a crash at any point): the new log start is made durable and then
visible (log_start.py); only then are the segments' files renamed to `.deleted`, the oldest first;
`file.delete.delay.ms` later they are removed (deletions.py).

Time (row 12): a run is skipped when the wall clock has jumped since the last one (clock_jumps.py),
and one run takes at most SEGMENTS_PER_RUN_MAX segments from a log. Should the clock be wrong for
good, the logs are not empty before somebody can look. What goes by size or log start does not
depend on the clock: when there is more of it, `Removed.has_more` asks for another run at once.
"""

import logging
from typing import NamedTuple, Protocol

from klamm.log.clock_jumps import ClockJumps
from klamm.log.config import LogConfig
from klamm.log.fs import DISK_FULL
from klamm.log.log_start import LogKeeper, move_log_starts
from klamm.log.partition_log import PartitionLog
from klamm.log.work import Work

logger = logging.getLogger(__name__)

# A run comes every five minutes, so even segments of the least size (1 MiB) may come in at 3 MB/s.
SEGMENTS_PER_RUN_MAX = 1000
# Each takes three or four renames; so many take a millisecond or two.
SEGMENTS_PER_STEP = 50


class SegmentAge(Protocol):
    """What is to be known of a segment."""

    @property
    def base_offset(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def largest_timestamp(self) -> int: ...


class SegmentAges(Protocol):
    """The segments of a log in order; the last is active."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> SegmentAge: ...


class Decision(NamedTuple):
    """What one run does to one log.

    Attributes:
        segments: so many go, the oldest of all.
        log_start_offset: where the log begins afterwards.
        has_more: more could go than one run may take, whatever the time is.
    """

    segments: int
    log_start_offset: int
    has_more: bool


class Removed(NamedTuple):
    """What a run has done to a log: how many segments went, and whether to come again at once."""

    segments: int = 0
    has_more: bool = False


def decide(
    segments: SegmentAges,
    *,
    log_start_offset: int,
    high_watermark: int,
    log_end_offset: int,
    config: LogConfig,
    now_ms: int,
    segments_max: int = SEGMENTS_PER_RUN_MAX,
) -> Decision:
    """Decide which segments go. All of them means that the active one is rolled before."""
    last = len(segments) - 1

    def end_of(index: int) -> int:
        return segments[index + 1].base_offset if index < last else log_end_offset

    def may_go(index: int) -> bool:
        if index > last or (index == last and segments[index].size == 0):
            return False
        return end_of(index) <= high_watermark

    count = 0
    while may_go(count) and count < last and end_of(count) <= log_start_offset:
        count += 1
    if config.deletes and config.retention_bytes >= 0:
        excess = sum(segments[index].size for index in range(count, last + 1))
        excess -= config.retention_bytes
        while may_go(count) and excess >= segments[count].size:
            excess -= segments[count].size
            count += 1
    has_more = count > segments_max
    if config.deletes and config.retention_ms >= 0:
        while (
            count < segments_max
            and may_go(count)
            and now_ms - segments[count].largest_timestamp > config.retention_ms
        ):
            count += 1
    count = min(count, segments_max)
    start = end_of(count - 1) if count else log_start_offset
    return Decision(count, max(log_start_offset, start), has_more)


class Retention:
    """Retention of the logs of one data directory."""

    def __init__(self, keeper: LogKeeper) -> None:
        self._keeper = keeper
        self._clock_jumps = ClockJumps()

    def may_run(self, wall_ms: int, monotonic_ms: int) -> bool:
        """Say whether this run may be made; asked once before each."""
        if not self._clock_jumps.notice(wall_ms, monotonic_ms):
            return True
        logger.warning("the wall clock has jumped to %d: retention skips one run", wall_ms)
        return False

    def delete_old_segments(self, log: PartitionLog, now_ms: int) -> Work[Removed]:
        """Make one run over one log.

        A log that is being compacted or moved is left alone, as Kafka does; the next run will come.

        Raises:
            LogError: KAFKA_STORAGE_ERROR, the disk refuses; the log is offline.
            OSError: the log can't be rolled, or the checkpoint not written.
        """
        if log.is_offline or log.keeps_segments:
            return Removed()
        decision = decide(
            log.segments,
            log_start_offset=log.log_start_offset,
            high_watermark=log.high_watermark,
            log_end_offset=log.log_end_offset,
            config=log.config,
            now_ms=now_ms,
        )
        if decision.segments == 0:
            return Removed()
        count, start = decision.segments, decision.log_start_offset
        if count == len(log.segments) and not self._roll(log, now_ms):
            count, start = count - 1, log.segments.active.base_offset
        removed = 0
        if start > log.log_start_offset:
            removed = yield from move_log_starts(self._keeper, [(log, start)])
        if log.log_start_offset < start:
            # It was deleted or truncated meanwhile.
            return Removed(removed)
        if start > log.recovery_point:
            # The producers that it tells of have no other trace when these segments are gone.
            yield log.snapshot_sync(start)
        while removed < count and not log.is_offline and not log.keeps_segments:
            step = min(SEGMENTS_PER_STEP, count - removed)
            if log.remove_segments_below_log_start(step) < step:
                break
            removed += step
            if removed < count:
                yield None
        if removed:
            logger.info("%s-%d: %d segments deleted", log.topic, log.partition, removed)
        return Removed(removed, decision.has_more)

    @staticmethod
    def _roll(log: PartitionLog, now_ms: int) -> bool:
        """Begin a new segment, so that the active one can go; False when the disk is full."""
        try:
            log.roll(now_ms)
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            return False
        return True
