"""Which log is compacted next, and between which offsets.

A log has a clean part, which earlier compactions have been through, and a dirty one behind it. What
of the dirty part may be compacted ends before the first segment that holds one of these:

- the active segment: it is being written;
- the last stable offset: what lies behind may still be aborted;
- `min.compaction.lag.ms`: the first segment whose greatest timestamp is younger than that;
- the recovery point, unlike in Kafka: an old value must not go because of a newer one that a crash
  can still lose.

A log is due when the cleanable share of its bytes is above `min.cleanable.dirty.ratio`, or when its
dirty part holds records older than `max.compaction.lag.ms`. Of all that are due, the one with the
greatest share is next.
"""

import logging
from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from klamm.log.config import INT64_MAX
from klamm.log.partition_log import PartitionLog
from klamm.log.segment import Segment

logger = logging.getLogger(__name__)


class LogToClean(NamedTuple):
    """A log with what of it can be compacted.

    Attributes:
        first_dirty_offset: the clean part ends here.
        first_uncleanable_offset: compaction ends here, which is where a segment begins.
        clean_bytes: size of the segments that begin in the clean part.
        cleanable_bytes: size of the segments between the two offsets.
        is_overdue: whether it holds dirty records older than max.compaction.lag.ms.
    """

    log: PartitionLog
    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    is_overdue: bool

    @property
    def cleanable_ratio(self) -> float:
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        if self.is_overdue and self.cleanable_bytes > 0:
            return True
        return self.cleanable_ratio > self.log.config.min_cleanable_dirty_ratio


def choose(logs: Iterable[PartitionLog], now_ms: int) -> LogToClean | None:
    """Return the log that is compacted next; None when none is due."""
    candidates = (
        judge(log, now_ms)
        for log in logs
        if log.config.compacts
        and not log.is_offline
        and not log.is_uncleanable
        and not log.keeps_segments
        and len(log.segments) > 1
    )
    return max(
        (candidate for candidate in candidates if candidate.is_due),
        key=lambda candidate: candidate.cleanable_ratio,
        default=None,
    )


def judge(log: PartitionLog, now_ms: int) -> LogToClean:
    """Find what of a log can be compacted."""
    first_dirty_offset = find_first_dirty_offset(
        log.cleaner_offset, log.log_start_offset, log.log_end_offset
    )
    segments = list(log.segments)
    base_offsets = log.segments.base_offsets
    dirty = segments[max(bisect_right(base_offsets, first_dirty_offset) - 1, 0) : -1]
    bound = find_bound(
        dirty,
        [log.active_segment.base_offset, log.last_stable_offset, log.recovery_point],
        log.config.min_compaction_lag_ms,
        now_ms,
    )
    bound = max(bound, first_dirty_offset)
    # Whole segments are compacted.
    first_uncleanable_offset = base_offsets[max(bisect_right(base_offsets, bound) - 1, 0)]
    cleanable = [s for s in dirty if s.base_offset < first_uncleanable_offset]
    return LogToClean(
        log,
        first_dirty_offset,
        first_uncleanable_offset,
        sum(s.size for s in segments if s.base_offset < first_dirty_offset),
        sum(s.size for s in cleanable),
        is_overdue(dirty, log.config.max_compaction_lag_ms, now_ms),
    )


def find_first_dirty_offset(
    cleaner_offset: int | None, log_start_offset: int, log_end_offset: int
) -> int:
    """Return where the dirty part begins: at the log start, where the checkpoint can't be right."""
    if cleaner_offset is None or not log_start_offset <= cleaner_offset <= log_end_offset:
        return log_start_offset
    return cleaner_offset


def find_bound(
    dirty: list[Segment], bounds: list[int], min_compaction_lag_ms: int, now_ms: int
) -> int:
    """Return the first offset that must not be compacted."""
    if min_compaction_lag_ms > 0:
        for segment in dirty:
            if segment.largest_timestamp > now_ms - min_compaction_lag_ms:
                bounds = [*bounds, segment.base_offset]
                break
    return min(bounds)


def is_overdue(dirty: list[Segment], max_compaction_lag_ms: int, now_ms: int) -> bool:
    """Say whether a dirty segment begins with records older than the lag allows."""
    if max_compaction_lag_ms == INT64_MAX:
        # Nothing is that old, and looking into every segment takes time.
        return False
    clean_until_ms = now_ms - max(max_compaction_lag_ms, 0)
    return any(0 < segment.first_timestamp < clean_until_ms for segment in dirty)
