"""What the thread of a compaction is told, and how segments are grouped.

A plan is made where the log lives, and holds nothing that changes: compaction reads segments that
are closed for writing, and nothing else takes them out of the log while it runs.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from klamm.log.cleaner.batch_filter import LastRecord
from klamm.log.cleaner.candidates import LogToClean
from klamm.log.config import INT32_MAX, LogConfig
from klamm.log.txn_index import AbortedTransactionEntry

# Each segment of a group is renamed when the group is swapped, in one step of the event loop.
GROUP_SEGMENTS_MAX = 100


class SegmentToClean(NamedTuple):
    """A segment that is read: where it begins, and how large its files are."""

    base_offset: int
    size: int
    offset_index_bytes: int = 0
    time_index_bytes: int = 0


class CleaningPlan(NamedTuple):
    """One round over one log.

    Attributes:
        directory: of the partition.
        segments: all that lie below first_uncleanable_offset.
        later_base_offsets: of the segments between those and the active one.
        first_dirty_offset: the key map begins here.
        first_uncleanable_offset: everything ends here.
        last_records: of the producers that the partition knows.
        aborted: the aborted transactions whose markers are in the active segment.
        config: of the log.
        now_ms: the time of the compaction.
    """

    directory: str
    segments: tuple[SegmentToClean, ...]
    later_base_offsets: tuple[int, ...]
    first_dirty_offset: int
    first_uncleanable_offset: int
    last_records: Mapping[int, LastRecord]
    aborted: tuple[AbortedTransactionEntry, ...]
    config: LogConfig
    now_ms: int


def make_plan(candidate: LogToClean, first_dirty_offset: int, now_ms: int) -> CleaningPlan:
    """Plan a round over a log from first_dirty_offset on."""
    log = candidate.log
    end = candidate.first_uncleanable_offset
    closed = list(log.segments)[:-1]
    return CleaningPlan(
        directory=log.directory,
        segments=tuple(
            SegmentToClean(segment.base_offset, segment.size)
            for segment in closed
            if segment.base_offset < end
        ),
        later_base_offsets=tuple(s.base_offset for s in closed if s.base_offset >= end),
        first_dirty_offset=first_dirty_offset,
        first_uncleanable_offset=end,
        last_records={
            entry.producer_id: LastRecord(entry.last_data_offset, entry.producer_epoch)
            for entry in log.producers.entries.values()
        },
        aborted=tuple(log.active_segment.txn_index.entries),
        config=log.config,
        now_ms=now_ms,
    )


def group_segments(
    segments: Sequence[SegmentToClean], config: LogConfig, end_offset: int
) -> list[list[SegmentToClean]]:
    """Put neighbours together that fit into one segment, so that logs do not fall into crumbs.

    Args:
        end_offset: where the last of the segments ends.
    """
    groups: list[list[SegmentToClean]] = []
    group: list[SegmentToClean] = []
    for index, segment in enumerate(segments):
        end = segments[index + 1].base_offset if index + 1 < len(segments) else end_offset
        if not group or not _fits(group, segment, end, config):
            group = []
            groups.append(group)
        group.append(segment)
    return groups


def _fits(
    group: list[SegmentToClean], segment: SegmentToClean, end_offset: int, config: LogConfig
) -> bool:
    size, offset_index_bytes, time_index_bytes = (
        sum(column) for column in list(zip(*group, segment, strict=True))[1:]
    )
    return (
        len(group) < GROUP_SEGMENTS_MAX
        and size <= config.segment_bytes
        and offset_index_bytes <= config.segment_index_bytes
        and time_index_bytes <= config.segment_index_bytes
        # An index counts offsets from the first one in 32 bits. An empty segment has none.
        and (segment.size == 0 or end_offset - 1 - group[0].base_offset <= INT32_MAX)
    )
