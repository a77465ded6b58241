"""Indexes in memory, on disk and made anew from the batches are the same."""

import hypothesis.strategies as st
from hypothesis import given

from klamm.log.batches import iter_headers
from klamm.log.config import LogConfig
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.offset_index import OffsetIndex
from klamm.log.segment import Segment
from klamm.log.tests.support import NOW_MS, append, open_one
from klamm.log.time_index import TimeIndex
from klamm.wire.records.record import build_batch

INTERVAL = 150
CONFIG = LogConfig(segment_bytes=900, index_interval_bytes=INTERVAL)

batches = st.lists(
    st.lists(st.integers(NOW_MS - 1000, NOW_MS), min_size=1, max_size=4), min_size=1, max_size=25
)
Entries = tuple[list[tuple[int, int]], list[tuple[int, int]]]


def indexed(segment: Segment) -> Entries:
    return segment.offset_index.entries(), segment.time_index.entries()


def rebuilt(segment: Segment, *, is_active: bool) -> Entries:
    """Kafka's rule, written out: an entry for each batch behind more than an interval of bytes."""
    offsets: list[tuple[int, int]] = []
    times: list[tuple[int, int]] = []
    latest = (-1, segment.base_offset)
    since = 0
    for position, header in iter_headers(segment.file(), 0, segment.size):
        if header.max_timestamp > latest[0]:
            latest = (header.max_timestamp, header.last_offset)
        if since > INTERVAL:
            offsets.append((header.last_offset, position))
            if not times or latest[0] > times[-1][0]:
                times.append(latest)
            since = 0
        since += header.size_in_bytes
    if not is_active and latest[0] >= 0 and (not times or latest[0] > times[-1][0]):
        times.append(latest)
    return offsets, times


@given(batches)
def test_indexes_are_what_the_batches_say(all_timestamps: list[list[int]]) -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    for timestamps in all_timestamps:
        append(log, build_batch([(b"k", b"v", (), at) for at in timestamps]))
    last = len(log.segments) - 1
    expected = [
        rebuilt(segment, is_active=index == last) for index, segment in enumerate(log.segments)
    ]
    assert [indexed(segment) for segment in log.segments] == expected
    _, recovered = open_one(fs.after_kill(), CONFIG)
    assert [indexed(segment) for segment in recovered.segments] == expected
    closed = [rebuilt(segment, is_active=False) for segment in log.segments]
    manager.close()
    _, reopened = open_one(fs, CONFIG)
    assert [indexed(segment) for segment in reopened.segments] == closed


@given(st.lists(st.integers(1, 2**31 - 1), unique=True, min_size=1), st.integers(0, 2**40))
def test_any_offset_index_reads_back(offsets: list[int], base: int) -> None:
    index = OffsetIndex(base)
    for position, offset in enumerate(sorted(offsets)):
        index.append(base + offset, position * 100)
    data = index.encode()
    assert OffsetIndex.decode(data, base, 2**31 - 1, "f").entries() == index.entries()


@given(st.lists(st.tuples(st.integers(0, 2**62), st.integers(0, 2**31 - 1))), st.integers(0, 2**40))
def test_any_time_index_reads_back(entries: list[tuple[int, int]], base: int) -> None:
    index = TimeIndex(base)
    offsets = sorted(offset for _, offset in entries)
    timestamps = sorted(timestamp for timestamp, _ in entries)
    for timestamp, offset in zip(timestamps, offsets, strict=True):
        index.maybe_append(timestamp, base + offset)
    assert TimeIndex.decode(index.encode(), base, "f").entries() == index.entries()
