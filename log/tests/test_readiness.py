"""A reader that must not wait: what it is told to do first, and that it is enough."""

import errno

import pytest

from klamm.log.config import LogConfig
from klamm.log.errors import CorruptLogError, LogError
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.partition_log import PartitionLog
from klamm.log.readiness import TAIL_BYTES, Load, NotReady
from klamm.log.tests.support import DIRECTORY, append, batch, open_one
from klamm.wire.errors import ErrorCode

BATCH = batch(b"1", b"2", b"3")
SIZE = len(BATCH)
# Two segments of four batches.
CONFIG = LogConfig(segment_bytes=4 * SIZE, index_interval_bytes=1)
FIRST = f"{DIRECTORY}/00000000000000000000.log"
LAST = f"{DIRECTORY}/00000000000000000012.log"


def filled(config: LogConfig = CONFIG) -> tuple[MemoryFileSystem, PartitionLog]:
    fs = MemoryFileSystem()
    _, log = open_one(fs, config)
    for _ in range(8):
        append(log, BATCH)
    return fs, log


def reopened() -> tuple[MemoryFileSystem, PartitionLog]:
    """The same log after a clean stop: nothing of it is verified."""
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    for _ in range(8):
        append(log, BATCH)
    manager.close()
    return fs, open_one(fs, CONFIG)[1]


def read(log: PartitionLog, offset: int, max_bytes: int = 1 << 20) -> bytes:
    return log.read(offset, max_bytes, may_wait=False).slice.read()


def steps_before(log: PartitionLog, offset: int, max_bytes: int = 1 << 20) -> list[Load | None]:
    """Take the steps that a read asks for."""
    with pytest.raises(NotReady) as unready:
        read(log, offset, max_bytes)
    steps = []
    for step in unready.value.steps:
        steps.append(step)
        if step is not None:
            step()
    return steps


def test_what_this_run_has_written_is_ready() -> None:
    _, log = filled()
    assert len(read(log, 0)) == len(read(log, 12)) == 4 * SIZE


def test_what_the_kernel_has_dropped_is_loaded_first() -> None:
    fs, log = filled()
    fs.cold.add(FIRST)
    (step,) = steps_before(log, 0)
    assert isinstance(step, Load)
    assert len(read(log, 0)) == 4 * SIZE


def test_a_reader_that_may_wait_is_not_troubled() -> None:
    fs, log = filled()
    fs.cold.add(FIRST)
    assert len(log.read(0, 1 << 20).slice.read()) == 4 * SIZE


def test_the_end_of_the_log_is_taken_to_be_in_memory() -> None:
    fs, log = filled(LogConfig())
    fs.cold.add(FIRST)
    assert len(read(log, 21)) == SIZE
    for _ in range(2):
        append(log, batch(b"x" * (TAIL_BYTES // 2)))
    (step,) = steps_before(log, 0, SIZE)
    assert isinstance(step, Load)


def test_what_an_earlier_run_has_written_is_verified_one_batch_at_a_step() -> None:
    _, log = reopened()
    assert steps_before(log, 0) == [None] * 4
    assert len(read(log, 0)) == 4 * SIZE
    # From here on it is known, also in part.
    assert len(read(log, 6)) == 2 * SIZE


def test_what_is_verified_is_loaded_before() -> None:
    fs, log = reopened()
    fs.cold |= {FIRST, LAST}
    load, *batches = steps_before(log, 0)
    assert isinstance(load, Load)
    assert batches == [None] * 4
    assert fs.cold == {LAST}


def test_a_sequential_reader_pays_once_for_each_batch() -> None:
    _, log = reopened()
    assert len(steps_before(log, 0, 2 * SIZE)) == 2
    assert len(steps_before(log, 0, 4 * SIZE)) == 2
    assert len(read(log, 0)) == 4 * SIZE


def test_damage_is_found_on_the_way() -> None:
    fs, log = reopened()
    file = fs.open(FIRST)
    content = bytearray(file.pread(4 * SIZE, 0))
    content[2 * SIZE + 70] ^= 1
    file.truncate(0)
    file.append([content], len(content))
    # What lies before it can be read.
    assert steps_before(log, 0) == [None, None]
    assert len(log.read(0, 4 * SIZE).slice.read()) == 2 * SIZE
    assert len(read(log, 0, SIZE)) == SIZE
    with pytest.raises(CorruptLogError, match="checksum"):
        steps_before(log, 6)
    assert len(log.read(9, 4 * SIZE).slice.read()) == SIZE


def test_a_disk_that_can_not_be_read_takes_the_log_offline() -> None:
    fs, log = filled()
    fs.cold.add(FIRST)
    fs.refuse = lambda operation, path: errno.EIO if operation == "load" else None
    with pytest.raises(NotReady) as unready:
        read(log, 0)
    load = next(unready.value.steps)
    assert load is not None
    with pytest.raises(OSError, match="Input/output") as failure:
        load()
    with pytest.raises(LogError) as refusal:
        unready.value.steps.throw(failure.value)
    assert refusal.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.is_offline


def test_appends_between_two_steps_do_no_harm() -> None:
    """The segment grows behind what is being verified."""
    fs = MemoryFileSystem()
    manager, log = open_one(fs, LogConfig())
    for _ in range(4):
        append(log, BATCH)
    manager.close()
    _, log = open_one(fs, LogConfig())
    with pytest.raises(NotReady) as unready:
        read(log, 0)
    for _ in unready.value.steps:
        append(log, BATCH)
    assert len(read(log, 0, 4 * SIZE)) == 4 * SIZE


def test_two_readers_of_one_segment_do_not_stop_each_other() -> None:
    _, log = reopened()
    with pytest.raises(NotReady) as first:
        read(log, 0, 2 * SIZE)
    next(first.value.steps)
    # Another reader, elsewhere in the segment, is faster.
    steps_before(log, 9)
    assert len(read(log, 9)) == SIZE
    assert list(first.value.steps) == [None]
    assert len(read(log, 0, 2 * SIZE)) == 2 * SIZE
