"""Reading without changing anything: what a check may ask of a disk.

Every file system of the log offers this part (fs.py, memory_fs.py). The one here opens files for
reading alone, so that a check works on a directory that it may not write to.
"""

import fcntl
import os
from collections.abc import Callable
from typing import Protocol

from klamm.log.errors import DirectoryLockedError
from klamm.log.fs import is_locked_here, system_boot_id
from klamm.log.layout import LOCK_FILE


class ReadableFile(Protocol):
    """A file that is read."""

    def pread(self, size: int, position: int) -> bytes: ...

    def size(self) -> int: ...


class ReadableFiles(Protocol):
    """The part of a FileSystem that changes nothing."""

    def open(self, path: str) -> ReadableFile: ...

    def size(self, path: str) -> int: ...

    def list_files(self, path: str) -> list[str]: ...

    def list_directories(self, path: str) -> list[str]: ...

    def boot_id(self) -> str: ...


class OsReadableFile:
    """A file of the operating system, open for reading."""

    def __init__(self, path: str) -> None:
        self._fd = -1
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def pread(self, size: int, position: int) -> bytes:
        parts = []
        while size > 0:
            data = os.pread(self._fd, size, position)
            if not data:
                break
            parts.append(data)
            size -= len(data)
            position += len(data)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def __del__(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)


class OsReadableFiles:
    """The disk, for reading."""

    def open(self, path: str) -> OsReadableFile:
        return OsReadableFile(path)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def list_files(self, path: str) -> list[str]:
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries if entry.is_file())

    def list_directories(self, path: str) -> list[str]:
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir())

    def boot_id(self) -> str:
        return system_boot_id()


class SharedDirectoryLock:
    """Keeps brokers out of a directory while it is read; other readers may come in.

    A broker takes the lock for itself alone. Where there is no lock file there is no broker, and
    none is made: a check leaves no trace.

    Raises:
        DirectoryLockedError: a broker uses the directory.
    """

    def __init__(self, root: str) -> None:
        path = f"{root}/{LOCK_FILE}"
        self._fd = -1
        # Closing the file would also drop the lock of a broker inside this process.
        if is_locked_here(path):
            raise _in_use(root)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            raise _in_use(root) from error
        self._fd = fd

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _in_use(root: str) -> DirectoryLockedError:
    return DirectoryLockedError(f"{root} is in use by a broker; stop it first")


class Reader:
    """Reads files and reports how far it has come.

    Args:
        on_progress: called with the number of bytes read so far.
    """

    def __init__(
        self, files: ReadableFiles, on_progress: Callable[[int], None] = lambda _: None
    ) -> None:
        self.files = files
        self.bytes_read = 0
        self.files_read = 0
        self._on_progress = on_progress

    def read_whole(self, path: str) -> bytes:
        """Return the content of a file that fits into memory."""
        file = self.open(path)
        return self.read(file, file.size(), 0)

    def open(self, path: str) -> ReadableFile:
        self.files_read += 1
        return self.files.open(path)

    def read(self, file: ReadableFile, size: int, position: int) -> bytes:
        data = file.pread(size, position)
        self.bytes_read += len(data)
        self._on_progress(self.bytes_read)
        return data
