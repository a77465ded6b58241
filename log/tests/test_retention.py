"""Which segments retention takes, and how."""

import errno
from dataclasses import dataclass, replace

import pytest

from klamm.log.cleaner.cancellation import Cancellation
from klamm.log.clock_jumps import JUMP_MS_MIN, ClockJumps, has_jumped
from klamm.log.config import LogConfig
from klamm.log.errors import LogError
from klamm.log.fs import OsFileSystem
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.retention import SEGMENTS_PER_RUN_MAX, Decision, Removed, Retention, decide
from klamm.log.tests.support import (
    DIRECTORY,
    NOW_MS,
    append,
    batch,
    open_one,
    open_partition,
    read_all,
    values_of,
)
from klamm.log.work import run_inline

DAY_MS = 24 * 60 * 60 * 1000
SIZE = len(batch(b"0000"))
# Two batches fill a segment.
CONFIG = LogConfig(segment_bytes=2 * SIZE, index_interval_bytes=1)


@dataclass(frozen=True)
class Age:
    base_offset: int
    size: int = 100
    largest_timestamp: int = 0


def of(count: int, **fields: int) -> list[Age]:
    """Segments of ten offsets each."""
    return [Age(10 * index, **fields) for index in range(count)]


def ask(
    segments: list[Age],
    *,
    start: int = 0,
    high_watermark: int | None = None,
    now_ms: int = 0,
    segments_max: int = SEGMENTS_PER_RUN_MAX,
    policy: str = "delete",
    **settings: int,
) -> Decision:
    end = segments[-1].base_offset + 10
    return decide(
        segments,
        log_start_offset=start,
        high_watermark=end if high_watermark is None else high_watermark,
        log_end_offset=end,
        config=LogConfig(
            cleanup_policy=frozenset(policy.split(",")),
            **{"retention_ms": -1, "retention_bytes": -1, **settings},
        ),
        now_ms=now_ms,
        segments_max=segments_max,
    )


# --- the decision --------------------------------------------------------------------------------


def test_without_limits_everything_stays() -> None:
    assert ask(of(5), now_ms=2**62) == Decision(0, 0, False)


@pytest.mark.parametrize(
    ("now_ms", "gone"), [(0, 0), (1000, 0), (1001, 1), (1002, 2), (1003, 3), (9999, 3)]
)
def test_a_segment_goes_once_its_newest_record_is_too_old(now_ms: int, gone: int) -> None:
    segments = [Age(10 * index, largest_timestamp=index) for index in range(3)]
    assert ask(segments, retention_ms=1000, now_ms=now_ms).segments == gone


def test_a_young_segment_protects_those_behind_it() -> None:
    segments = [Age(0), Age(10, largest_timestamp=5000), Age(20)]
    assert ask(segments, retention_ms=1000, now_ms=5500) == Decision(1, 10, False)


def test_timestamps_of_the_future_keep_their_segment() -> None:
    segments = [Age(0, largest_timestamp=10**15), Age(10)]
    assert ask(segments, retention_ms=1000, now_ms=10**12).segments == 0


@pytest.mark.parametrize(
    ("retention_bytes", "gone"),
    [(-1, 0), (0, 5), (1, 4), (100, 4), (101, 3), (399, 1), (400, 1), (401, 0), (10**9, 0)],
)
def test_what_stays_is_at_least_as_large_as_retention_bytes(
    retention_bytes: int, gone: int
) -> None:
    assert ask(of(5), retention_bytes=retention_bytes).segments == gone


@pytest.mark.parametrize(
    ("start", "gone"), [(0, 0), (9, 0), (10, 1), (19, 1), (20, 2), (29, 2), (30, 2)]
)
@pytest.mark.parametrize("policy", ["delete", "compact", "compact,delete"])
def test_what_lies_below_the_log_start_goes_whatever_the_policy(
    start: int, gone: int, policy: str
) -> None:
    decision = ask(of(3), start=start, policy=policy)
    assert decision == Decision(gone, start, False)


@pytest.mark.parametrize(("policy", "gone"), [("compact", 0), ("delete", 3), ("compact,delete", 3)])
def test_a_log_that_is_only_compacted_has_no_retention(policy: str, gone: int) -> None:
    decision = ask(of(3), policy=policy, retention_ms=1, retention_bytes=0, now_ms=10**12)
    assert decision.segments == gone


def test_nothing_at_or_above_the_high_watermark_goes() -> None:
    for high_watermark, gone in ((0, 0), (9, 0), (10, 1), (25, 2), (29, 2), (30, 3)):
        decision = ask(of(3), high_watermark=high_watermark, retention_ms=1, now_ms=100)
        assert decision.segments == gone
        assert decision.log_start_offset == 10 * gone


def test_an_empty_active_segment_stays() -> None:
    segments = [Age(0), Age(10, size=0)]
    assert decide(
        segments,
        log_start_offset=0,
        high_watermark=10,
        log_end_offset=10,
        config=LogConfig(retention_ms=1, retention_bytes=0),
        now_ms=100,
    ) == Decision(1, 10, False)


def test_the_log_start_never_goes_back() -> None:
    assert ask(of(3), start=15, retention_bytes=250).log_start_offset == 15


def test_a_run_is_bounded() -> None:
    by_time = ask(of(9), retention_ms=1, now_ms=100, segments_max=4)
    assert by_time == Decision(4, 40, False)
    by_size = ask(of(9), retention_bytes=0, segments_max=4)
    assert by_size == Decision(4, 40, True)
    by_start = ask(of(9), start=75, segments_max=4)
    assert by_start == Decision(4, 75, True)
    exact = ask(of(9), start=45, retention_ms=1, now_ms=100, segments_max=4)
    assert exact == Decision(4, 45, False)


# --- clocks --------------------------------------------------------------------------------------


def test_a_jump_of_the_wall_clock_is_noticed_once() -> None:
    clocks = ClockJumps()
    assert not clocks.notice(NOW_MS, 5)
    assert not clocks.notice(NOW_MS + 300_000, 300_005)
    # Two days forwards, and, later, back again.
    assert clocks.notice(NOW_MS + 600_000 + 2 * DAY_MS, 600_005)
    assert not clocks.notice(NOW_MS + 900_000 + 2 * DAY_MS, 900_005)
    assert clocks.notice(NOW_MS + 1_200_000, 1_200_005)
    assert not clocks.notice(NOW_MS + 1_500_000, 1_500_005)


def test_clocks_that_drift_apart_do_not_jump() -> None:
    assert not has_jumped(None, 10**12)
    assert not has_jumped(1000, 1000 + JUMP_MS_MIN - 1)
    assert has_jumped(1000, 1000 + JUMP_MS_MIN)
    assert has_jumped(1000, 1000 - JUMP_MS_MIN)


def test_retention_skips_one_run_after_a_jump() -> None:
    manager, _ = open_one(MemoryFileSystem())
    retention = Retention(manager)
    assert retention.may_run(NOW_MS, 0)
    assert not retention.may_run(NOW_MS + DAY_MS, 1000)
    assert retention.may_run(NOW_MS + DAY_MS, 2000)


# --- the way -------------------------------------------------------------------------------------


def test_expired_segments_are_renamed_and_removed_later() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    for index in range(6):
        append(log, batch(b"%04d" % index, timestamp=NOW_MS + 1000 * index))
    log.flush()
    log.advance_high_watermark(6)
    log.update_config(replace(CONFIG, retention_ms=1000, file_delete_delay_ms=5000))
    retention = Retention(manager)
    removed = run_inline(retention.delete_old_segments(log, NOW_MS + 2001))
    assert removed == (1, False)
    assert (log.log_start_offset, log.segments.base_offsets) == (2, [2, 4])
    assert values_of(log) == [b"0002", b"0003", b"0004", b"0005"]
    away = {name for name in fs.files() if name.endswith(".deleted")}
    assert away == {
        f"{DIRECTORY}/{0:020d}{suffix}.deleted" for suffix in (".log", ".index", ".timeindex")
    }
    deletions = manager.environment.deletions
    assert deletions.due(100) is None
    assert deletions.due(5099) is None
    remove = deletions.due(5100)
    assert remove is not None
    remove()
    assert not [name for name in fs.files() if name.endswith(".deleted")]
    assert len(deletions) == 0


def test_a_reader_of_a_deleted_segment_goes_on() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    for index in range(6):
        append(log, batch(b"%04d" % index))
    log.flush()
    log.advance_high_watermark(6)
    read = log.read(0, 10_000)
    segment = log.segments.first
    log.update_config(replace(CONFIG, retention_bytes=2 * SIZE))
    assert run_inline(Retention(manager).delete_old_segments(log, NOW_MS)).segments == 2
    assert b"0001" in read.slice.read()
    # Its indexes are found under their new names, too.
    assert read.next_offset >= 2
    assert segment.position_of(1) == SIZE


def test_when_all_is_expired_the_log_begins_empty_at_its_end() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, replace(CONFIG, retention_ms=1000))
    for index in range(5):
        append(log, batch(b"%04d" % index))
    log.flush()
    log.advance_high_watermark(5)
    removed = run_inline(Retention(manager).delete_old_segments(log, NOW_MS + DAY_MS))
    assert removed.segments == 3
    assert (log.log_start_offset, log.log_end_offset) == (5, 5)
    assert log.segments.base_offsets == [5]
    assert append(log, batch(b"next")) == 5
    assert read_all(log) == [(5, b"next")]
    manager.close()
    _, log = open_one(fs, CONFIG)
    assert (log.log_start_offset, values_of(log)) == (5, [b"next"])


@pytest.mark.parametrize("kept_by", ["a move", "a compaction"])
def test_a_log_whose_segments_are_being_read_is_left_for_the_next_run(kept_by: str) -> None:
    """Its start does not move, either: the copy would begin before it."""
    manager, log = open_one(MemoryFileSystem(), replace(CONFIG, retention_ms=1000))
    for index in range(5):
        append(log, batch(b"%04d" % index))
    log.flush()
    log.advance_high_watermark(5)
    if kept_by == "a move":
        log.is_moving = True
    else:
        log.cleaning = Cancellation()
    retention = Retention(manager)
    assert run_inline(retention.delete_old_segments(log, NOW_MS + DAY_MS)) == Removed()
    assert (log.log_start_offset, log.segments.base_offsets) == (0, [0, 2, 4])
    log.is_moving = False
    log.cleaning = None
    assert run_inline(retention.delete_old_segments(log, NOW_MS + DAY_MS)).segments == 3


def test_without_timestamps_the_file_tells_the_age() -> None:
    fs = MemoryFileSystem()
    fs.now_ms = NOW_MS
    manager, log = open_one(fs, replace(CONFIG, retention_ms=1000))
    for _ in range(3):
        append(log, batch(timestamp=-1))
    log.advance_high_watermark(3)
    retention = Retention(manager)
    assert run_inline(retention.delete_old_segments(log, NOW_MS + 1000)).segments == 0
    assert run_inline(retention.delete_old_segments(log, NOW_MS + 1001)).segments == 2


def test_a_large_removal_lets_others_have_their_turn() -> None:
    manager, log = open_one(MemoryFileSystem(), replace(CONFIG, segment_bytes=SIZE))
    for _ in range(120):
        append(log, batch(b"0000"))
    log.flush()
    log.advance_high_watermark(120)
    log.update_config(replace(CONFIG, retention_bytes=SIZE))
    work = Retention(manager).delete_old_segments(log, NOW_MS)
    checkpoint = next(work)
    assert checkpoint is not None
    checkpoint()
    assert work.send(None) is None
    assert len(log.segments) == 120 - 50
    assert work.send(None) is None
    with pytest.raises(StopIteration) as end:
        work.send(None)
    assert end.value.value == (119, False)


def test_a_log_that_is_truncated_meanwhile_keeps_its_start() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, replace(CONFIG, retention_bytes=2 * SIZE))
    for _ in range(8):
        append(log, batch(b"0000"))
    log.advance_high_watermark(8)
    work = Retention(manager).delete_old_segments(log, NOW_MS)
    checkpoint = next(work)
    assert checkpoint is not None
    checkpoint()
    log.truncate_to(3, NOW_MS)
    with pytest.raises(StopIteration) as end:
        work.send(None)
    assert end.value.value.segments == 0
    assert (log.log_start_offset, log.log_start_to_checkpoint) == (0, 0)
    log.flush()
    _, again = open_one(fs.after_crash(), CONFIG)
    assert (again.log_start_offset, again.log_end_offset) == (0, 3)


def test_a_log_that_is_deleted_meanwhile_is_left_alone() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, replace(CONFIG, retention_bytes=2 * SIZE))
    for _ in range(8):
        append(log, batch(b"0000"))
    log.advance_high_watermark(8)
    work = Retention(manager).delete_old_segments(log, NOW_MS)
    checkpoint = next(work)
    manager.delete_partition("t", 0)
    again = open_partition(manager, CONFIG)
    append(again, batch(b"anew"))
    assert checkpoint is not None
    checkpoint()
    with pytest.raises(StopIteration):
        work.send(None)
    manager.remove_deleted()
    assert values_of(again) == [b"anew"]
    # The checkpoint of the deleted log does not come back for the new one.
    fs = fs.after_kill()
    assert values_of(open_one(fs, CONFIG)[1]) == [b"anew"]


# --- a disk that refuses -------------------------------------------------------------------------


def test_a_full_disk_is_freed_without_a_checkpoint() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, replace(CONFIG, retention_bytes=2 * SIZE))
    for index in range(8):
        append(log, batch(b"%04d" % index))
    log.flush()
    log.advance_high_watermark(8)
    used = sum(len(data) for data in fs.files().values())
    fs.capacity_bytes = used + 5
    assert run_inline(Retention(manager).delete_old_segments(log, NOW_MS)).segments == 3
    assert log.segments.base_offsets == [6]
    assert not [name for name in fs.files() if name.endswith(".deleted")]
    assert values_of(log) == [b"0006", b"0007"]
    assert values_of(open_one(fs.after_crash(), CONFIG)[1]) == [b"0006", b"0007"]


def test_a_full_disk_keeps_only_the_active_segment() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, replace(CONFIG, retention_ms=1))
    for index in range(5):
        append(log, batch(b"%04d" % index))
    log.flush()
    log.advance_high_watermark(5)
    fs.refuse = lambda operation, path: errno.ENOSPC if operation in ("create", "append") else None
    with pytest.raises(OSError, match="No space"):
        run_inline(Retention(manager).delete_old_segments(log, NOW_MS + DAY_MS))
    fs.refuse = None
    assert values_of(log) == [b"0004"]
    assert not log.is_offline
    assert append(log, batch(b"more")) == 5


def test_a_rename_that_fails_takes_the_log_offline() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, replace(CONFIG, retention_bytes=2 * SIZE))
    for index in range(6):
        append(log, batch(b"%04d" % index))
    log.flush()
    log.advance_high_watermark(6)
    fs.refuse = lambda operation, path: errno.EIO if path.endswith("index.deleted") else None
    with pytest.raises(LogError):
        run_inline(Retention(manager).delete_old_segments(log, NOW_MS))
    fs.refuse = None
    assert log.is_offline
    _, again = open_one(fs.after_kill(), CONFIG)
    assert again.log_start_offset == 4
    assert values_of(again) == [b"0004", b"0005"]


def test_on_a_real_disk(tmp_path: object) -> None:
    fs = OsFileSystem()
    root = f"{tmp_path}/data"
    manager, log = open_one(fs, replace(CONFIG, retention_bytes=2 * SIZE), root)
    for index in range(6):
        append(log, batch(b"%04d" % index))
    log.flush()
    log.advance_high_watermark(6)
    assert run_inline(Retention(manager).delete_old_segments(log, NOW_MS)).segments == 2
    names = fs.list_files(f"{root}/t-0")
    assert len([name for name in names if name.endswith(".deleted")]) == 6
    manager.environment.deletions.all()()
    manager.close()
    assert not [n for n in fs.list_files(f"{root}/t-0") if n.endswith(".deleted")]
    _, log = open_one(fs, CONFIG, root)
    assert values_of(log) == [b"0004", b"0005"]
