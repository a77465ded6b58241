"""A crash after every file operation of something that a log does."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

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


class Stop:
    """The operation before which the machine stops.

    Attributes:
        came: whether it came to that operation.
    """

    def __init__(self, number: int) -> None:
        self.came = False
        self._number = number

    @contextmanager
    def on(self, fs: MemoryFileSystem) -> Iterator[None]:
        """Let a disk stop at that operation from now on, and what is done here with it."""
        fs.stop_at = fs.operations + self._number
        try:
            yield
        except SimulatedCrash:
            self.came = True


def every_stop() -> Iterator[Stop]:
    """Yield a stop at the first operation, the second, and so on; the last one comes too late."""
    for number in range(1, OPERATIONS_MAX):
        stop = Stop(number)
        yield stop
        if not stop.came:
            return
    raise AssertionError(f"more than {OPERATIONS_MAX} operations")


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
    for stop in every_stop():
        fs = prepared.after_kill()
        manager, log = open_one(fs, config)
        with stop.on(fs):
            act(manager, log)
        yield fs


def found_after(stopped: MemoryFileSystem) -> Iterator[MemoryFileSystem]:
    """Yield what the next start may find: after crashes of the machine, and after a kill."""
    for surviving_bytes, surviving_names in CRASHES:
        yield stopped.after_crash(surviving_bytes, surviving_names)
    yield stopped.after_kill()
