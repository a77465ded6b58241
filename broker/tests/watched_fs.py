"""The real file system with a window: syncs are counted, held up or made to fail."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Sequence

from klamm.log.fs import Buffer, OsFile, OsFileSystem, open_flags

PATIENCE_S = 20.0


class WatchedFile(OsFile):
    """A file that asks its file system first."""

    __slots__ = ("_fs",)

    def __init__(self, path: str, fd: int, fs: WatchedFileSystem) -> None:
        super().__init__(path, fd)
        self._fs = fs

    def append(self, chunks: Sequence[Buffer], size: int) -> None:
        self._fs.before_append(self.path)
        super().append(chunks, size)

    def datasync(self) -> None:
        self._fs.before_sync(self.path)
        super().datasync()


class WatchedFileSystem(OsFileSystem):
    """Counts and stops what reaches the disk.

    Attributes:
        synced: paths in the order in which their data was synced.
        before_append: called with the path before each write; may raise OSError.
    """

    def __init__(self) -> None:
        self.synced: list[str] = []
        self.before_append: Callable[[str], None] = lambda path: None
        self._before_sync: Callable[[str], None] = lambda path: None
        self._lock = threading.Lock()

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> WatchedFile:
        flags = open_flags(create=create, read_only=read_only)
        return WatchedFile(path, os.open(path, flags, 0o644), self)

    def before_sync(self, path: str) -> None:
        with self._lock:
            self.synced.append(path)
        self._before_sync(path)

    def syncs_of(self, topic: str, partition: int = 0) -> int:
        """How often the segments of a partition were synced."""
        directory = f"/{topic}-{partition}/"
        with self._lock:
            return sum(directory in path and path.endswith(".log") for path in self.synced)

    def hold_syncs_of(self, topic: str) -> Gate:
        """Let syncs of a topic's segments wait until the gate is opened."""
        gate = Gate()

        def wait(path: str) -> None:
            if f"/{topic}-" in path and path.endswith(".log"):
                gate.pass_through()

        self._before_sync = wait
        return gate

    def fail_syncs_of(self, topic: str) -> None:
        """Fail syncs of a topic's segments."""

        def fail(path: str) -> None:
            if f"/{topic}-" in path and path.endswith(".log"):
                raise OSError(errno.EIO, "on purpose", path)

        self._before_sync = fail

    def fail_appends(self, code: int, ending: str = "") -> None:
        """Refuse writes to files with that ending; code 0 ends it."""

        def fail(path: str) -> None:
            if code and path.endswith(ending):
                raise OSError(code, os.strerror(code), path)

        self.before_append = fail


class Gate:
    """Where a thread waits until it is let through."""

    def __init__(self) -> None:
        self._arrived = threading.Semaphore(0)
        self._open = threading.Semaphore(0)

    def pass_through(self) -> None:
        self._arrived.release()
        assert self._open.acquire(timeout=PATIENCE_S), "nobody opened the gate"

    def wait_for_arrival(self) -> None:
        """Wait until one more has come to the gate."""
        assert self._arrived.acquire(timeout=PATIENCE_S), "nobody came to the gate"

    def let_through(self, count: int = 1) -> None:
        self._open.release(count)
