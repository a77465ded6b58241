"""DeleteRecords, and how a log's start moves."""

import errno
from dataclasses import replace
from uuid import UUID

import pytest

from klamm.log.checkpoint import read_offsets
from klamm.log.config import LogConfig
from klamm.log.errors import LogError
from klamm.log.log_start import decide_log_start, delete_records
from klamm.log.manager import LogManager
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.partition_log import PartitionLog
from klamm.log.retention import Retention
from klamm.log.tests.support import NOW_MS, ROOT, TOPIC, append, batch, open_one, read_all
from klamm.log.work import run_inline
from klamm.wire.errors import ErrorCode

SIZE = len(batch(b"0000"))
CONFIG = LogConfig(segment_bytes=2 * SIZE)
DELETE = frozenset({"delete"})
COMPACT = frozenset({"compact"})


def filled(fs: MemoryFileSystem, count: int = 8) -> tuple[LogManager, PartitionLog]:
    manager, log = open_one(fs, CONFIG)
    for index in range(count):
        append(log, batch(b"%04d" % index))
    log.flush()
    log.advance_high_watermark(count)
    return manager, log


def delete(manager: LogManager, log: PartitionLog, offset: int) -> int | LogError:
    (result,) = run_inline(delete_records(manager, [(log, offset)]))
    return result


# --- the decision --------------------------------------------------------------------------------


@pytest.mark.parametrize(("offset", "start"), [(0, 0), (3, 3), (7, 7), (-1, 7)])
def test_an_offset_up_to_the_high_watermark_is_taken(offset: int, start: int) -> None:
    assert decide_log_start(offset, 7, CONFIG) == start


@pytest.mark.parametrize("offset", [8, 2**62, -2, -(2**62)])
def test_any_other_is_out_of_range(offset: int) -> None:
    with pytest.raises(LogError) as refusal:
        decide_log_start(offset, 7, CONFIG)
    assert refusal.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize(
    ("policy", "is_allowed"),
    [(DELETE, True), (COMPACT, False), (DELETE | COMPACT, True), (frozenset(), True)],
)
def test_the_cleanup_policy_decides(policy: frozenset[str], is_allowed: bool) -> None:
    config = replace(CONFIG, cleanup_policy=policy)
    if is_allowed:
        assert decide_log_start(3, 7, config) == 3
        return
    # The policy comes before the offset.
    with pytest.raises(LogError) as refusal:
        decide_log_start(99, 7, config)
    assert refusal.value.code == ErrorCode.POLICY_VIOLATION


# --- what happens --------------------------------------------------------------------------------


def test_records_before_the_offset_can_not_be_read_any_more() -> None:
    fs = MemoryFileSystem()
    manager, log = filled(fs)
    assert delete(manager, log, 5) == 5
    assert log.log_start_offset == 5
    with pytest.raises(LogError):
        log.read(4, 100)
    assert read_all(log) == [(5, b"0005"), (6, b"0006"), (7, b"0007")]
    # Segments go with the next run of retention, even without any limit.
    log.update_config(replace(CONFIG, retention_ms=-1))
    assert run_inline(Retention(manager).delete_old_segments(log, NOW_MS)).segments == 2
    assert log.segments.base_offsets == [4, 6]
    assert read_all(log) == [(5, b"0005"), (6, b"0006"), (7, b"0007")]


def test_an_earlier_offset_changes_nothing() -> None:
    fs = MemoryFileSystem()
    manager, log = filled(fs)
    assert delete(manager, log, 5) == 5
    operations = fs.operations
    assert delete(manager, log, 2) == 5
    assert delete(manager, log, 5) == 5
    assert fs.operations == operations


def test_everything_up_to_the_high_watermark() -> None:
    fs = MemoryFileSystem()
    manager, log = filled(fs)
    append(log, batch(b"0008"))
    assert delete(manager, log, -1) == 8
    assert read_all(log) == [(8, b"0008")]


def test_the_reply_outlives_a_crash() -> None:
    fs = MemoryFileSystem()
    manager, log = filled(fs)
    assert delete(manager, log, 5) == 5
    for found in (fs.after_crash(), fs.after_kill()):
        _, again = open_one(found, CONFIG)
        assert again.log_start_offset == 5
        assert read_all(again)[0] == (5, b"0005")


def test_nobody_sees_the_new_start_before_it_is_durable() -> None:
    fs = MemoryFileSystem()
    manager, log = filled(fs)
    work = delete_records(manager, [(log, 5)])
    write = next(work)
    assert write is not None
    assert log.log_start_offset == 0
    write()
    assert read_offsets(fs.after_crash(), f"{ROOT}/log-start-offset-checkpoint") == {(TOPIC, 0): 5}
    assert log.log_start_offset == 0
    # A checkpoint of everything, taken in between, holds the new start as well.
    manager.write_checkpoints()
    assert read_offsets(fs.after_crash(), f"{ROOT}/log-start-offset-checkpoint") == {(TOPIC, 0): 5}
    with pytest.raises(StopIteration):
        work.send(None)
    assert log.log_start_offset == 5


def test_many_partitions_take_one_checkpoint() -> None:
    fs = MemoryFileSystem()
    manager, log = filled(fs)
    other = manager.open_partition("u", 0, UUID(int=7), CONFIG, NOW_MS)
    for _ in range(3):
        append(other, batch())
    other.advance_high_watermark(2)
    start = len(fs.history)
    results = run_inline(delete_records(manager, [(log, 5), (other, 3), (other, 1), (log, 0)]))
    assert results[0] == 5
    assert isinstance(results[1], LogError)
    assert results[1].code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert results[2:] == [1, 5]
    renamed = [path for operation, path in fs.history[start:] if operation == "rename"]
    assert renamed == [f"{ROOT}/log-start-offset-checkpoint"]


def test_without_a_checkpoint_there_is_no_promise() -> None:
    fs = MemoryFileSystem()
    manager, log = filled(fs)
    fs.refuse = lambda operation, path: errno.ENOSPC if operation == "append" else None
    result = delete(manager, log, 5)
    assert isinstance(result, LogError)
    assert result.code == ErrorCode.KAFKA_STORAGE_ERROR
    fs.refuse = lambda operation, path: errno.EIO if operation == "append" else None
    with pytest.raises(OSError, match="Input/output"):
        delete(manager, log, 7)


def test_a_full_disk_gets_room_by_deleting_records() -> None:
    fs = MemoryFileSystem()
    manager, log = filled(fs)
    fs.capacity_bytes = sum(len(data) for data in fs.files().values()) + 3
    assert delete(manager, log, 7) == 7
    assert log.segments.base_offsets == [6]
    assert append(log, batch(b"0008")) == 8
    _, again = open_one(fs.after_crash(), CONFIG)
    assert again.log_start_offset == 7


def test_a_full_disk_takes_no_segment_from_a_log_that_is_being_moved() -> None:
    """There is no room for the checkpoint then, and so no promise."""
    fs = MemoryFileSystem()
    manager, log = filled(fs)
    log.is_moving = True
    fs.capacity_bytes = sum(len(data) for data in fs.files().values()) + 3
    refusal = delete(manager, log, 7)
    assert isinstance(refusal, LogError)
    assert refusal.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert not log.is_offline
    assert log.segments.base_offsets == [0, 2, 4, 6]


def test_a_log_that_is_deleted_meanwhile_makes_no_promise() -> None:
    fs = MemoryFileSystem()
    manager, log = filled(fs)
    work = delete_records(manager, [(log, 5)])
    write = next(work)
    manager.delete_partition(TOPIC, 0)
    assert write is not None
    write()
    with pytest.raises(StopIteration) as end:
        work.send(None)
    (result,) = end.value.value
    assert isinstance(result, LogError)
