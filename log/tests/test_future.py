"""A log that moves: what the copy has of it, and what it may meet on the way."""

import errno

import pytest

from klamm.log.config import LogConfig
from klamm.log.directories import LogDirectories
from klamm.log.errors import LogError
from klamm.log.log_start import delete_records
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.partition_log import PartitionLog
from klamm.log.retention import Retention
from klamm.log.tests.support import NOW_MS, append, batch, read_all, values_of
from klamm.log.tests.two_directories import (
    FIRST,
    SECOND,
    begin_move,
    by_root,
    end_move,
    open_log,
    open_two,
)
from klamm.log.work import run_inline

CONFIG = LogConfig(segment_bytes=200, retention_bytes=300)


@pytest.fixture
def fs() -> MemoryFileSystem:
    return MemoryFileSystem()


@pytest.fixture
def directories(fs: MemoryFileSystem) -> LogDirectories:
    return open_two(fs)


@pytest.fixture
def log(directories: LogDirectories) -> PartitionLog:
    """Ten batches of two records in the first directory, by one producer."""
    log = open_log(directories, CONFIG, assigned=by_root(directories, FIRST).directory_id)
    for number in range(10):
        values = (b"%d" % (2 * number), b"%d" % (2 * number + 1))
        append(log, batch(*values, producer_id=5, producer_epoch=0, sequence=2 * number))
    log.advance_high_watermark(log.log_end_offset)
    return log


def move(directories: LogDirectories, log: PartitionLog) -> PartitionLog:
    future = begin_move(directories, log)
    run_inline(future.catch_up())
    moved = run_inline(future.finish())
    end_move(directories, future)
    return moved


def test_everything_is_there(directories: LogDirectories, log: PartitionLog) -> None:
    before = read_all(log)
    moved = move(directories, log)
    assert read_all(moved) == before
    assert (moved.root, log.is_deleted) == (SECOND, True)
    assert moved.high_watermark == moved.log_end_offset == moved.recovery_point == 20
    assert moved.leader_epochs.entries == log.leader_epochs.entries
    # A producer that repeats its last batch gets the original offset.
    again = batch(b"18", b"19", producer_id=5, producer_epoch=0, sequence=18)
    assert moved.append(again, leader_epoch=0, now_ms=NOW_MS).duplicate


def test_a_log_start_in_the_middle_of_a_batch(
    fs: MemoryFileSystem, directories: LogDirectories, log: PartitionLog
) -> None:
    assert run_inline(delete_records(directories, [(log, 7)])) == [7]
    moved = move(directories, log)
    assert (moved.log_start_offset, moved.segments.first.base_offset) == (7, 6)
    assert values_of(moved) == [b"%d" % offset for offset in range(7, 20)]
    directories.close()
    again = open_two(fs)
    reopened = open_log(again, CONFIG, assigned=by_root(again, SECOND).directory_id)
    assert (reopened.log_start_offset, reopened.log_end_offset) == (7, 20)


@pytest.mark.parametrize("end", ["served", "closed", "killed"])
@pytest.mark.parametrize("others_follow", [False, True])
def test_a_producer_whose_batches_are_gone_stays_known(
    fs: MemoryFileSystem,
    directories: LogDirectories,
    log: PartitionLog,
    end: str,
    others_follow: bool,
) -> None:
    assert run_inline(delete_records(directories, [(log, 20)])) == [20]
    log.roll(NOW_MS)
    run_inline(Retention(directories).delete_old_segments(log, NOW_MS))
    assert log.size_in_bytes == 0
    if others_follow:
        append(log, batch(b"20", producer_id=6, producer_epoch=0, sequence=0))
    moved = move(directories, log)
    if end != "served":
        if others_follow:
            append(moved, batch(b"last"))
        moved.flush()
        home = by_root(directories, SECOND).directory_id
        if end == "closed":
            directories.close()
        moved = open_log(open_two(fs.after_kill()), CONFIG, assigned=home)
    again = batch(b"18", b"19", producer_id=5, producer_epoch=0, sequence=18)
    assert moved.append(again, leader_epoch=0, now_ms=NOW_MS).duplicate


def test_records_that_are_deleted_meanwhile(directories: LogDirectories, log: PartitionLog) -> None:
    future = begin_move(directories, log)
    run_inline(future.catch_up())
    run_inline(delete_records(directories, [(log, 13)]))
    moved = run_inline(future.finish())
    assert (moved.log_start_offset, moved.log_end_offset) == (13, 20)


def test_records_that_are_deleted_during_the_last_steps() -> None:
    """Whatever the step, they do not come back with the copy."""
    for moment in range(10):
        directories = open_two(MemoryFileSystem())
        log = open_log(directories, CONFIG, assigned=by_root(directories, FIRST).directory_id)
        append(log, batch(b"0", b"1"))
        append(log, batch(b"2", b"3"))
        log.advance_high_watermark(4)
        future = begin_move(directories, log)
        run_inline(future.catch_up())
        steps = future.finish()
        for _ in range(moment):
            try:
                step = next(steps)
            except StopIteration:
                return
            if step is not None:
                step()
        assert run_inline(delete_records(directories, [(log, 3)])) == [3]
        moved = run_inline(steps)
        assert (moved.log_start_offset, values_of(moved)) == (3, [b"3"])
    raise AssertionError("more steps than that")


def test_an_end_that_was_compacted_away(directories: LogDirectories, log: PartitionLog) -> None:
    """The last records are gone, and the next one comes after them all the same."""
    log.roll(NOW_MS)
    log.skip_to(30, NOW_MS)
    moved = move(directories, log)
    assert moved.log_end_offset == 30
    assert append(moved, batch(b"next")) == 30


def test_it_keeps_its_segments_while_it_moves(
    directories: LogDirectories, log: PartitionLog
) -> None:
    retention = Retention(directories)
    future = begin_move(directories, log)
    assert run_inline(retention.delete_old_segments(log, NOW_MS)).segments == 0
    future.drop()
    assert run_inline(retention.delete_old_segments(log, NOW_MS)).segments > 0


def test_a_move_that_is_given_up_leaves_nothing(
    fs: MemoryFileSystem, directories: LogDirectories, log: PartitionLog
) -> None:
    future = begin_move(directories, log)
    run_inline(future.catch_up())
    future.drop()
    with pytest.raises(LogError):
        run_inline(future.finish())
    directories.remove_deleted()
    assert fs.list_directories(SECOND) == []
    assert read_all(log) == read_all(move(directories, log))


def test_a_copy_that_can_not_be_made_leaves_nothing(
    fs: MemoryFileSystem, directories: LogDirectories, log: PartitionLog
) -> None:
    fs.refuse = lambda operation, path: (
        errno.ENOSPC if operation == "create" and path.startswith(SECOND) else None
    )
    with pytest.raises(OSError, match="No space"):
        begin_move(directories, log)
    assert not log.keeps_segments
    fs.refuse = None
    directories.remove_deleted()
    assert fs.list_directories(SECOND) == []


def test_a_copy_goes_on_when_there_is_room_again(
    fs: MemoryFileSystem, directories: LogDirectories, log: PartitionLog
) -> None:
    future = begin_move(directories, log)
    fs.refuse = lambda operation, path: (
        errno.ENOSPC if operation == "append" and path.startswith(SECOND) else None
    )
    with pytest.raises(OSError, match="No space"):
        run_inline(future.catch_up())
    assert not log.is_offline
    fs.refuse = None
    run_inline(future.catch_up())
    assert read_all(run_inline(future.finish())) == read_all(log)


def test_a_copy_that_can_not_be_opened_is_no_second_log(
    fs: MemoryFileSystem, directories: LogDirectories, log: PartitionLog
) -> None:
    future = begin_move(directories, log)
    run_inline(future.catch_up())
    fs.refuse = lambda asked, path: errno.EIO if path == f"{SECOND}/t-0" else None
    with pytest.raises(OSError, match="Input/output"):
        run_inline(future.finish())
    fs.refuse = None
    assert not by_root(directories, SECOND).has("t", 0)
    assert append(log, batch(b"more")) == 20
