"""A clean stop with many partitions: what is unsynced is synced together, the rest left alone."""

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from klamm.log.config import LogConfig
from klamm.log.fs import OsFile, OsFileSystem, open_flags
from klamm.log.layout import CLEAN_SHUTDOWN_FILE
from klamm.log.manager import LogManager
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.partition_log import PartitionLog
from klamm.log.tests.support import NOW_MS, TOPIC, TOPIC_ID, append, batch, open_manager, values_of

COUNT = 4


def open_all(manager: LogManager) -> list[PartitionLog]:
    return [
        manager.open_partition(TOPIC, index, TOPIC_ID, LogConfig(), NOW_MS)
        for index in range(COUNT)
    ]


class SlowFile(OsFile):
    """A file whose sync takes part in something that happens in several threads."""

    __slots__ = ("_sync",)

    def __init__(self, path: str, fd: int, sync: Callable[[str], object]) -> None:
        super().__init__(path, fd)
        self._sync = sync

    def datasync(self) -> None:
        if self.path.endswith(".log"):
            self._sync(self.path)
        super().datasync()


class SlowFileSystem(OsFileSystem):
    """The disk; each sync of a segment waits for what the test says."""

    def __init__(self, sync: Callable[[str], object]) -> None:
        self._sync = sync

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> SlowFile:
        flags = open_flags(create=create, read_only=read_only)
        return SlowFile(path, os.open(path, flags, 0o644), self._sync)


def test_logs_are_synced_at_the_same_time(tmp_path: Path) -> None:
    root = str(tmp_path / "data")
    all_at_once = threading.Barrier(COUNT)
    manager = open_manager(SlowFileSystem(lambda path: all_at_once.wait(20)), root)
    for log in open_all(manager):
        append(log, batch(b"x"))
    manager.close(threads=COUNT)
    assert not all_at_once.broken
    manager = open_manager(OsFileSystem(), root)
    assert manager.was_clean
    logs = open_all(manager)
    assert [values_of(log) for log in logs] == [[b"x"]] * COUNT
    assert {log.recovery_point for log in logs} == {1}
    manager.close()


def test_fewer_files_may_be_open_than_there_are_threads(tmp_path: Path) -> None:
    root = str(tmp_path / "data")
    manager = open_manager(OsFileSystem(), root)
    manager.environment.files.open_files_max = 1
    for log in open_all(manager):
        append(log, batch(b"x"))
    manager.close(threads=COUNT)
    manager = open_manager(OsFileSystem(), root)
    assert [values_of(log) for log in open_all(manager)] == [[b"x"]] * COUNT
    manager.close()


@pytest.mark.parametrize("threads", [1, COUNT])
def test_a_sync_that_fails_leaves_no_marker(tmp_path: Path, threads: int) -> None:
    root = str(tmp_path / "data")

    def fail(path: str) -> None:
        if f"/{TOPIC}-2/" in path:
            raise OSError(errno.EIO, "on purpose", path)

    manager = open_manager(SlowFileSystem(fail), root)
    for log in open_all(manager):
        append(log, batch(b"x"))
    with pytest.raises(OSError, match="on purpose"):
        manager.close(threads)
    assert not os.path.exists(f"{root}/{CLEAN_SHUTDOWN_FILE}")
    # Nobody holds the directory any more.
    manager = open_manager(OsFileSystem(), root)
    assert not manager.was_clean
    manager.close()


def test_what_has_nothing_unsynced_is_not_touched() -> None:
    fs = MemoryFileSystem()
    manager = open_manager(fs)
    for log in open_all(manager):
        append(log, batch(b"x"))
    manager.close()
    manager = open_manager(fs)
    changed = open_all(manager)[1]
    append(changed, batch(b"y"))
    fs.history.clear()
    manager.close()
    touched = {path.split("/")[2] for _, path in fs.history if path.startswith(f"/data/{TOPIC}-")}
    assert touched == {f"{TOPIC}-1"}
