"""A bound on open descriptors: thousands of partitions share a fixed number of open files.

Each segment owns a slot; the slot opens its file when it is needed, and the pool takes it back
when too many are open. Which one is decided by second chance: a slot that was used since the last
sweep is passed over once. That costs the append path one attribute store, where a strict
least-recently-used list would cost a dictionary operation per append.
"""

import threading
from collections import deque

from klamm.log.fs import File, FileSystem


class OpenFiles:
    """The files that are open now.

    Args:
        fs: where files are opened.
        open_files_max: how many may be open at a time; files that are being sent or synced when
            their slot is evicted come on top, until that is done.
    """

    def __init__(self, fs: FileSystem, open_files_max: int) -> None:
        assert open_files_max > 0
        self.fs = fs
        # Several threads may open files at a shutdown.
        self._lock = threading.Lock()
        self.open_files_max = open_files_max
        self._slots: deque[FileSlot] = deque()

    def __len__(self) -> int:
        return sum(slot.file is not None for slot in self._slots)

    def slot(self, path: str) -> "FileSlot":
        return FileSlot(self, path)

    def open(self, slot: "FileSlot", create: bool) -> File:
        with self._lock:
            while len(self._slots) >= self.open_files_max:
                self._evict_one()
            file = self.fs.open(slot.path, create=create)
            slot.file = file
            self._slots.append(slot)
            return file

    def _evict_one(self) -> None:
        # Ends: every pass over a used slot clears its mark.
        while True:
            slot = self._slots.popleft()
            if slot.file is None:
                return
            if not slot.used:
                slot.file = None
                return
            slot.used = False
            self._slots.append(slot)


class FileSlot:
    """A file that is open only while it is used."""

    __slots__ = ("_pool", "file", "path", "used")

    def __init__(self, pool: OpenFiles, path: str) -> None:
        self._pool = pool
        self.path = path
        self.file: File | None = None
        self.used = False

    def get(self, *, create: bool = False) -> File:
        self.used = True
        return self.file or self._pool.open(self, create)

    def close(self) -> None:
        """Forget the file; it closes when nobody sends from it or syncs it any more."""
        self.file = None


class FileSlice:
    """A range of a file's bytes, to be sent without passing through Python.

    The file stays open as long as an unreleased slice of it lives, whatever happens to its log.
    The empty slice has no file.
    """

    __slots__ = ("_file", "position", "size")

    def __init__(self, file: File | None, position: int, size: int) -> None:
        assert position >= 0
        assert size > 0 or file is None
        self._file = file
        self.position = position
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, part: slice) -> "FileSlice":
        """Return a part of the slice, such as what is still to be sent."""
        start, stop, step = part.indices(self.size)
        assert step == 1
        if start >= stop:
            return EMPTY_SLICE
        return FileSlice(self._open_file(), self.position + start, stop - start)

    def fileno(self) -> int:
        """Return the descriptor for `sendfile`."""
        return self._open_file().fileno()

    def read(self) -> bytes:
        """Return the bytes themselves."""
        return self._open_file().pread(self.size, self.position) if self.size else b""

    def release(self) -> None:
        """Let go of the file; the slice can't be read or sent any more."""
        self._file = None

    def _open_file(self) -> File:
        assert self._file is not None, "the slice is empty or was released"
        return self._file


EMPTY_SLICE = FileSlice(None, 0, 0)
