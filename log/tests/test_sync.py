"""Group commit: what a sync covers when the log goes on meanwhile."""

import errno

import pytest

from klamm.log.append_origin import AppendOrigin
from klamm.log.config import LogConfig
from klamm.log.errors import LogError
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.tests.support import NOW_MS, append, batch, open_one, values_of

SIZE = len(batch(b"0000"))
CONFIG = LogConfig(segment_bytes=3 * SIZE)


def test_a_sync_covers_what_was_appended_before_it_was_asked_for() -> None:
    fs = MemoryFileSystem()
    _, log = open_one(fs, CONFIG)
    append(log, batch(b"0000"))
    request = log.pending_sync()
    append(log, batch(b"0001"))
    request.run()
    log.mark_synced(request)
    assert log.recovery_point == 1
    log.flush()
    assert log.recovery_point == 2


def test_a_roll_during_a_sync_is_left_for_the_next_one() -> None:
    fs = MemoryFileSystem()
    _, log = open_one(fs, CONFIG)
    for index in range(2):
        append(log, batch(b"%04d" % index))
    request = log.pending_sync()
    for index in range(2, 8):
        append(log, batch(b"%04d" % index))
    assert len(log.segments) == 3
    request.run()
    log.mark_synced(request)
    assert log.recovery_point == 2
    assert values_of(open_one(fs.after_crash(), CONFIG)[1])[:2] == [b"0000", b"0001"]
    log.flush()
    assert log.recovery_point == 8
    assert len(values_of(open_one(fs.after_crash(), CONFIG)[1])) == 8


def test_what_is_written_again_during_a_sync_is_left_for_the_next_one() -> None:
    fs = MemoryFileSystem()
    _, log = open_one(fs, CONFIG)
    for index in range(3):
        append(log, batch(b"%04d" % index))
    fs.refuse = lambda operation, path: (
        errno.ENOSPC if operation == "create" and path.endswith("3.log") else None
    )
    with pytest.raises(LogError, match="KAFKA_STORAGE_ERROR"):
        append(log, batch(b"0003"))
    request = log.pending_sync()
    request.run()
    fs.refuse = None
    append(log, batch(b"0003"))
    log.mark_synced(request)
    assert set(log.pending_sync().paths) == set(request.paths)
    log.flush()
    assert log.pending_sync().is_empty
    assert len(values_of(open_one(fs.after_crash(), CONFIG)[1])) == 4


def test_a_truncation_during_a_sync_makes_it_void() -> None:
    fs = MemoryFileSystem()
    _, log = open_one(fs, CONFIG)
    for index in range(3):
        append(log, batch(b"%04d" % index))
    request = log.pending_sync()
    log.truncate_to(1, NOW_MS)
    request.run()
    log.mark_synced(request)
    assert log.recovery_point == 0
    append(log, batch(b"new1"))
    log.flush()
    assert log.recovery_point == 2
    assert values_of(open_one(fs.after_crash(), CONFIG)[1]) == [b"0000", b"new1"]


def test_segments_removed_during_a_sync_are_no_error() -> None:
    fs = MemoryFileSystem()
    _, log = open_one(fs, CONFIG)
    for index in range(8):
        append(log, batch(b"%04d" % index))
    log.advance_high_watermark(8)
    request = log.pending_sync()
    log.increment_log_start_offset(7)
    assert log.remove_segments_below_log_start() == 2
    request.run()
    log.mark_synced(request)
    assert log.recovery_point == 8


def test_without_changes_there_is_nothing_to_sync() -> None:
    fs = MemoryFileSystem()
    _, log = open_one(fs, CONFIG)
    append(log, batch())
    assert not log.pending_sync().is_empty
    log.flush()
    assert log.pending_sync().is_empty
    before = fs.operations
    log.flush()
    assert fs.operations == before


def test_one_append_costs_one_sync() -> None:
    fs = MemoryFileSystem()
    _, log = open_one(fs)
    append(log, batch())
    log.flush()
    start = len(fs.history)
    append(log, batch())
    log.flush()
    assert [operation for operation, _ in fs.history[start:]] == ["append", "datasync"]


# --- followers -----------------------------------------------------------------------------------


def test_a_follower_holds_the_same_bytes_as_its_leader() -> None:
    _, leader = open_one(MemoryFileSystem(), CONFIG)
    follower_fs = MemoryFileSystem()
    _, follower = open_one(follower_fs, CONFIG)
    for sequence in range(7):
        epoch = sequence // 3
        records = batch(b"%04d" % sequence, producer_id=2, producer_epoch=0, sequence=sequence)
        leader.append(records, leader_epoch=epoch, now_ms=NOW_MS)
    while follower.log_end_offset < leader.log_end_offset:
        fetched = leader.read(follower.log_end_offset, 2 * SIZE + 9).slice.read()
        follower.append(fetched, leader_epoch=2, now_ms=NOW_MS, origin=AppendOrigin.REPLICATION)
    assert values_of(follower) == values_of(leader)
    assert follower.leader_epochs.entries == leader.leader_epochs.entries
    assert dict(follower.producers.entries) == dict(leader.producers.entries)
    _, recovered = open_one(follower_fs.after_kill(), CONFIG)
    assert values_of(recovered) == values_of(leader)


def test_a_follower_takes_nothing_from_nothing() -> None:
    _, log = open_one(MemoryFileSystem())
    result = log.append(b"", leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.REPLICATION)
    assert (result.base_offset, result.last_offset, result.size_in_bytes) == (0, -1, 0)


def test_epochs_are_answered_from_the_log() -> None:
    _, log = open_one(MemoryFileSystem())
    assert (log.latest_epoch, log.leader_epoch_of(0)) == (-1, -1)
    for epoch in (0, 0, 3, 5):
        log.append(batch(), leader_epoch=epoch, now_ms=NOW_MS)
    assert log.latest_epoch == 5
    assert [log.leader_epoch_of(offset) for offset in range(4)] == [0, 0, 3, 5]
    assert log.epoch_end_offset(0) == (0, 2)
    assert log.epoch_end_offset(4) == (3, 3)
    assert log.epoch_end_offset(5) == (5, 4)
    assert log.epoch_end_offset(6) == (-1, -1)
