"""Reading: which bytes a fetch gets (reliability row 22)."""

import pytest

from klamm.log.config import LogConfig
from klamm.log.errors import LogError
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.partition_log import PartitionLog
from klamm.log.tests.support import append, batch, open_one
from klamm.wire.errors import ErrorCode
from klamm.wire.records.batch import read_batch_header

# Batches of three records each; two of them fill a segment.
BATCH = batch(b"1", b"2", b"3")
SIZE = len(BATCH)
CONFIG = LogConfig(segment_bytes=2 * SIZE, index_interval_bytes=1)


@pytest.fixture
def log() -> PartitionLog:
    """Offsets 0 to 17 in three segments that begin at 0, 6 and 12."""
    _, log = open_one(MemoryFileSystem(), CONFIG)
    for _ in range(6):
        append(log, BATCH)
    log.advance_high_watermark(log.log_end_offset)
    assert log.segments.base_offsets == [0, 6, 12]
    return log


def bases(data: bytes) -> list[int]:
    """The base offsets of the whole batches in some bytes."""
    found, position = [], 0
    while position + 61 <= len(data):
        header = read_batch_header(data, position)
        position += header.size_in_bytes
        if position <= len(data):
            found.append(header.base_offset)
    return found


@pytest.mark.parametrize("offset", range(18))
def test_a_read_begins_with_the_batch_that_holds_the_offset(log: PartitionLog, offset: int) -> None:
    data = log.read(offset, 10_000).slice.read()
    first = offset // 3 * 3
    # And it ends with its segment.
    assert (
        bases(data)
        == [base for base in (0, 3, 6, 9, 12, 15) if base >= first][: 2 - first % 6 // 3]
    )


@pytest.mark.parametrize(
    ("max_bytes", "size"),
    [(0, SIZE), (1, SIZE), (SIZE, SIZE), (SIZE + 7, SIZE + 7), (2 * SIZE, 2 * SIZE)],
)
def test_the_limit_cuts_but_never_the_first_batch(
    log: PartitionLog, max_bytes: int, size: int
) -> None:
    read = log.read(6, max_bytes)
    assert len(read) == len(read.slice.read()) == size
    assert not read.first_batch_incomplete


def test_a_hard_limit_gives_nothing_when_the_first_batch_does_not_fit(log: PartitionLog) -> None:
    read = log.read(6, SIZE - 1, min_one_batch=False)
    assert (len(read), read.first_batch_incomplete, read.slice.read()) == (0, True, b"")
    assert len(log.read(6, SIZE, min_one_batch=False)) == SIZE


@pytest.mark.parametrize(
    ("bound", "expected"),
    [(12, []), (13, []), (15, [12]), (16, [12]), (18, [12, 15]), (99, [12, 15])],
)
def test_nothing_at_or_above_the_upper_bound_is_returned(
    log: PartitionLog, bound: int, expected: list[int]
) -> None:
    assert bases(log.read(12, 10_000, upper_bound_offset=bound).slice.read()) == expected


@pytest.mark.parametrize(("bound", "expected"), [(0, []), (3, [0]), (5, [0]), (6, [0, 3])])
def test_the_upper_bound_holds_in_older_segments_too(
    log: PartitionLog, bound: int, expected: list[int]
) -> None:
    assert bases(log.read(0, 10_000, upper_bound_offset=bound).slice.read()) == expected


def test_the_end_is_empty_and_beyond_it_is_an_error(log: PartitionLog) -> None:
    assert len(log.read(18, 100)) == 0
    for offset in (-1, 19, 2**62):
        with pytest.raises(LogError) as raised:
            log.read(offset, 100)
        assert raised.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_below_the_log_start_is_an_error(log: PartitionLog) -> None:
    log.increment_log_start_offset(7)
    with pytest.raises(LogError, match="OFFSET_OUT_OF_RANGE"):
        log.read(6, 100)
    # The batch that holds the start is sent whole; the client drops what lies below.
    assert bases(log.read(7, SIZE).slice.read()) == [6]
    assert log.remove_segments_below_log_start() == 1
    assert bases(log.read(7, SIZE).slice.read()) == [6]


def test_a_reader_that_follows_the_log_sees_each_batch_once(log: PartitionLog) -> None:
    offset = log.log_end_offset
    for _ in range(10):
        assert len(log.read(offset, 1000)) == 0
        append(log, BATCH)
        assert bases(log.read(offset, 1000).slice.read()) == [offset]
        offset += 3


def test_removed_batches_are_passed_over() -> None:
    # As compaction leaves a log: whole batches are missing.
    _, log = open_one(MemoryFileSystem(), LogConfig(cleanup_policy=frozenset({"compact"})))
    append(log, batch(b"x"))
    log.log_end_offset = 10
    append(log, batch(b"y"))
    assert bases(log.read(1, 1000).slice.read()) == [10]
    assert bases(log.read(9, 1000).slice.read()) == [10]
    log.log_end_offset = 20
    assert len(log.read(15, 1000)) == 0


def test_next_offset_is_above_all_that_was_returned(log: PartitionLog) -> None:
    for offset in range(18):
        for max_bytes in (1, SIZE, SIZE + 1, 2 * SIZE):
            read = log.read(offset, max_bytes)
            last = bases(read.slice.read())[-1] + 2
            assert last < read.next_offset <= log.log_end_offset
    assert log.read(18, 1).next_offset == 18


def test_a_slice_outlives_its_segment(log: PartitionLog) -> None:
    read = log.read(0, 10_000)
    log.increment_log_start_offset(12)
    assert log.remove_segments_below_log_start() == 2
    assert bases(read.slice.read()) == [0, 3]
    half = read.slice[SIZE:]
    assert (len(half), bases(half.read())) == (SIZE, [3])
    read.slice.release()
    assert bases(half.read()) == [3]
    assert len(half[SIZE:]) == 0


def test_log_start_and_high_watermark_keep_their_order(log: PartitionLog) -> None:
    assert not log.advance_high_watermark(3)
    assert log.high_watermark == 18
    append(log, BATCH)
    assert log.advance_high_watermark(99)
    assert log.high_watermark == 21
    with pytest.raises(LogError, match="OFFSET_OUT_OF_RANGE"):
        log.increment_log_start_offset(22)
    assert log.increment_log_start_offset(5)
    assert not log.increment_log_start_offset(4)
    assert log.log_start_offset == 5
