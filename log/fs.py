"""The few file operations that the log needs, and the real file system behind them.

Everything in `log/` reaches the disk through this interface. Its twin in memory
(`memory_fs.py`) keeps synced and unsynced bytes apart, so that a crash after every single
operation is a test.

The rules that callers rely on:

- `append` writes all chunks at the end of the file or raises; after an error any part of them
  may be there, and the caller truncates.
- Data is durable after `datasync`; a created, renamed or removed name is durable after
  `sync_directory` of the directory that holds it.
- A file closes when the last reference to it goes away. Whoever is sending from a file, or
  syncing it in another thread, holds a reference, so that evicting it from the pool of open
  files never closes it under them.
"""

import errno
import fcntl
import os
from collections.abc import Sequence
from typing import NamedTuple, Protocol

Buffer = bytes | bytearray | memoryview

# How far apart the pages are that `is_cached` asks for. The kernel forgets pages in the order in
# which they were used, so neighbours mostly stay or go together.
PROBE_DISTANCE_BYTES = 1024 * 1024
LOAD_BYTES = 1024 * 1024

BOOT_ID_PATH = "/proc/sys/kernel/random/boot_id"

# A full disk or quota is a passing condition: what was refused can be tried again later.
DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
# So is the lack of descriptors: nothing was opened, so nothing was written.
NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})


class File(Protocol):
    """One open file, written only at its end."""

    @property
    def path(self) -> str: ...

    def append(self, chunks: Sequence[Buffer], size: int) -> None:
        """Write the chunks, `size` bytes together, at the end of the file."""

    def pread(self, size: int, position: int) -> bytes:
        """Return up to `size` bytes from `position`; fewer at the end of the file."""

    def is_cached(self, position: int, size: int) -> bool:
        """Whether a range, which is not empty, can be read without waiting for the disk."""

    def load(self, position: int, size: int) -> None:
        """Bring a range into the page cache; returns when it is there."""

    def truncate(self, size: int) -> None: ...

    def datasync(self) -> None: ...

    def size(self) -> int: ...

    def fileno(self) -> int: ...


class Lock(Protocol):
    """A lock on a path, held until it is released or the process ends."""

    def release(self) -> None: ...


class Space(NamedTuple):
    """The bytes of a disk, and those of them that are left for us to write."""

    total_bytes: int
    usable_bytes: int


class FileSystem(Protocol):
    """What the log may ask of a disk. Every method raises OSError when the disk refuses."""

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> File: ...

    def exists(self, path: str) -> bool: ...

    def size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def list_files(self, path: str) -> list[str]: ...

    def list_directories(self, path: str) -> list[str]: ...

    def make_directory(self, path: str) -> None:
        """Make one directory; it is not an error when it exists already. The one above it is never
        made: where a disk was taken away, nothing may be written in its place."""

    def rename(self, old: str, new: str) -> None:
        """Give a file or directory a new name, replacing a file of that name atomically."""

    def remove(self, path: str) -> None: ...

    def remove_directory(self, path: str) -> None: ...

    def sync_directory(self, path: str) -> None: ...

    def space(self, path: str) -> Space:
        """How large the disk is that holds path."""

    def boot_id(self) -> str:
        """What tells this boot of the operating system from all others; "" where unknown."""

    def lock(self, path: str) -> Lock:
        """Take the lock on path, or raise BlockingIOError at once when another holds it."""


def read_file(fs: FileSystem, path: str) -> bytes:
    """Return the whole content of a small file."""
    file = fs.open(path)
    return file.pread(file.size(), 0)


def system_boot_id() -> str:
    """Return Linux's id of its boot, which containers share with their host; "" elsewhere."""
    try:
        with open(BOOT_ID_PATH, encoding="ascii") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return ""


# One byte, which nobody looks at.
_PROBE = [bytearray(1)]


class OsFile:
    """A file of the operating system."""

    __slots__ = ("_fd", "path")

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self._fd = fd

    def append(self, chunks: Sequence[Buffer], size: int) -> None:
        # Python retries EINTR itself (PEP 475); a short write is rare enough to be handled apart.
        written = os.writev(self._fd, chunks)
        if written != size:
            self._append_rest(chunks, written, size)

    def _append_rest(self, chunks: Sequence[Buffer], written: int, size: int) -> None:
        rest = memoryview(b"".join(chunks))[written:]
        assert len(rest) == size - written
        while rest:
            rest = rest[os.write(self._fd, rest) :]

    def pread(self, size: int, position: int) -> bytes:
        data = os.pread(self._fd, size, position)
        if len(data) == size or not data:
            return data
        # Linux gives less than asked only at the end of the file or at 2 GiB, but it may.
        parts = [data]
        missing = size - len(data)
        while missing:
            data = os.pread(self._fd, missing, position + size - missing)
            if not data:
                break
            parts.append(data)
            missing -= len(data)
        return b"".join(parts)

    def is_cached(self, position: int, size: int) -> bool:
        last = position + size - 1
        try:
            for at in (*range(position, last, PROBE_DISTANCE_BYTES), last):
                os.preadv(self._fd, _PROBE, at, os.RWF_NOWAIT)
        except BlockingIOError:
            return False
        except OSError as error:
            # Some file systems can't say; those in memory, mostly.
            if error.errno != errno.EOPNOTSUPP:
                raise
        return True

    def load(self, position: int, size: int) -> None:
        end = position + size
        # All of it is asked for before the first part is waited for.
        os.posix_fadvise(self._fd, position, size, os.POSIX_FADV_WILLNEED)
        buffer = memoryview(bytearray(min(size, LOAD_BYTES)))
        while position < end:
            count = os.preadv(self._fd, [buffer[: end - position]], position)
            if count == 0:
                return
            position += count

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def datasync(self) -> None:
        os.fdatasync(self._fd)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def fileno(self) -> int:
        return self._fd

    def __del__(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


# POSIX locks belong to a process and not to a descriptor: a second broker inside this process
# would be granted the lock that the first one holds. These paths are the ones held here.
_locked_paths: set[str] = set()


def is_locked_here(path: str) -> bool:
    """Say whether this process itself holds the lock on path."""
    return os.path.realpath(path) in _locked_paths


class OsLock:
    """An advisory record lock, of the kind that Kafka takes on the same file."""

    def __init__(self, path: str) -> None:
        self._path = os.path.realpath(path)
        self._fd = -1
        if self._path in _locked_paths:
            raise BlockingIOError(f"{path} is locked in this process")
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            raise BlockingIOError(f"{path} is locked by another process") from error
        self._fd = fd
        _locked_paths.add(self._path)

    def release(self) -> None:
        if self._fd >= 0:
            _locked_paths.discard(self._path)
            os.close(self._fd)
            self._fd = -1


def open_flags(*, create: bool, read_only: bool) -> int:
    """Return how a file is opened; Kafka's own snapshots may be read and not written."""
    access = os.O_RDONLY if read_only else os.O_RDWR | os.O_APPEND
    return access | os.O_CLOEXEC | (os.O_CREAT if create else 0)


class OsFileSystem:
    """The disk."""

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> OsFile:
        return OsFile(path, os.open(path, open_flags(create=create, read_only=read_only), 0o644))

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def list_files(self, path: str) -> list[str]:
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries if entry.is_file())

    def list_directories(self, path: str) -> list[str]:
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir())

    def make_directory(self, path: str) -> None:
        try:
            os.mkdir(path, mode=0o755)
        except FileExistsError:
            if not os.path.isdir(path):
                raise

    def rename(self, old: str, new: str) -> None:
        os.rename(old, new)

    def remove(self, path: str) -> None:
        os.remove(path)

    def remove_directory(self, path: str) -> None:
        os.rmdir(path)

    def sync_directory(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def space(self, path: str) -> Space:
        found = os.statvfs(path)
        return Space(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)

    def boot_id(self) -> str:
        return system_boot_id()

    def lock(self, path: str) -> OsLock:
        return OsLock(path)
