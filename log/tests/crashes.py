"""A crash after every file operation of something that a running log does."""

from collections.abc import Callable, Iterator

from klamm.log.config import LogConfig
from klamm.log.manager import LogManager
from klamm.log.memory_fs import (
    MemoryFileSystem,
    SimulatedCrash,
    SurvivingBytes,
    SurvivingNames,
    keep_bytes,
    keep_names,
    lose_bytes,
    lose_names,
    tear_bytes,
)
from klamm.log.partition_log import PartitionLog
from klamm.log.tests.support import open_one

OPERATIONS_MAX = 2000


def half_of_names(count: int) -> int:
    return count // 2


# What happened to unsynced bytes and names. That a prefix of the names survives means that every
# crash at the n-th operation is also one where all names up to the n-th had reached the disk.
CRASHES: list[tuple[SurvivingBytes, SurvivingNames]] = [
    (lose_bytes, lose_names),
    (lose_bytes, keep_names),
    (keep_bytes, lose_names),
    (tear_bytes, half_of_names),
]


def crashed_disks(
    prepared: MemoryFileSystem,
    config: LogConfig,
    act: Callable[[LogManager, PartitionLog], None],
) -> Iterator[MemoryFileSystem]:
    """Yield the disk as it stops before each operation of `act`, and after the last one.

    Args:
        prepared: a data directory with one partition, which was closed cleanly.
        act: what is done to the partition once it is open.
    """
    for number in range(1, OPERATIONS_MAX):
        fs = prepared.after_kill()
        manager, log = open_one(fs, config)
        fs.stop_at = fs.operations + number
        try:
            act(manager, log)
        except SimulatedCrash:
            yield fs
            continue
        yield fs
        return
    raise AssertionError(f"more than {OPERATIONS_MAX} operations")


def found_after(stopped: MemoryFileSystem) -> Iterator[MemoryFileSystem]:
    """Yield what the next start may find: after crashes of the machine, and after a kill."""
    for surviving_bytes, surviving_names in CRASHES:
        yield stopped.after_crash(surviving_bytes, surviving_names)
    yield stopped.after_kill()
