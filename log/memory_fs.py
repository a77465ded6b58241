"""The twin of fs.py in memory: a disk that can crash, tear, fill up and refuse.

What it keeps apart, as a disk does:

- bytes: what a file holds now, and what it held at its last `datasync`;
- names: what a directory holds now, and what it held at its last `sync_directory`.

The faults that it can play:

- a stop at the n-th operation (`stop_at`): this operation and all later ones raise SimulatedCrash,
  which no code of the log catches;
- a refusal of any operation with any error (`refuse`); a refused write leaves half of its bytes;
- a disk of limited size (`capacity_bytes`): a write that does not fit leaves what fitted.

After a stop, `after_crash` is what the machine finds when it comes up again. What happened to
unsynced bytes is for the caller to choose, file by file: lost, kept, torn, or zeros in their place.
Of the unsynced changes of names in a directory a prefix survives, because file systems keep their
order and a rename is never half done. `after_kill` is what the next process finds when only this
one was killed: everything that was written, in the same boot of the machine.

Operations are counted when they change something; each of them is one point where a crash can be.
"""

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import count

from klamm.log.fs import Buffer, Space

# (path, synced bytes, current bytes) → the bytes that a crash leaves.
SurvivingBytes = Callable[[str, bytes, bytes], bytes]
# Number of unsynced changes of names in a directory → how many of them a crash leaves.
SurvivingNames = Callable[[int], int]
# (operation, path) → the number of the error with which it is refused, or None.
Refusal = Callable[[str, str], int | None]

_UNBOUNDED_BYTES = (1 << 63) - 1
_boots = count(1)


class SimulatedCrash(BaseException):
    """The machine has stopped; nobody may catch this but the test."""


# --- what a crash leaves ---------------------------------------------------------------------


def lose_bytes(path: str, synced: bytes, current: bytes) -> bytes:
    """Nothing that was not synced is left."""
    return synced


def keep_bytes(path: str, synced: bytes, current: bytes) -> bytes:
    """Everything had reached the disk by chance."""
    return current


def tear_bytes(path: str, synced: bytes, current: bytes) -> bytes:
    """Half of what was not synced is left."""
    common = 0
    for old, new in zip(synced, current, strict=False):
        if old != new:
            break
        common += 1
    return current[: common + (len(current) - common) // 2]


def zero_bytes(path: str, synced: bytes, current: bytes) -> bytes:
    """The file has grown, but what it should hold there was never written."""
    return synced[: len(current)] + bytes(max(0, len(current) - len(synced)))


def lose_names(count: int) -> int:
    """No change of a name that was not synced is left."""
    return 0


def keep_names(count: int) -> int:
    """Every change of a name is left."""
    return count


# --- the tree --------------------------------------------------------------------------------


class _FileNode:
    __slots__ = ("data", "modified_ms", "synced")

    def __init__(self, synced: bytes = b"") -> None:
        self.synced = synced
        self.data = bytearray(synced)
        self.modified_ms = 0


class _DirectoryNode:
    """Names, and the changes of names since the last sync, in their order."""

    __slots__ = ("changes", "entries", "synced")

    def __init__(self) -> None:
        self.entries: dict[str, _Node] = {}
        self.synced: dict[str, _Node] = {}
        # Each change is what happens at once: (name, node or None when it goes).
        self.changes: list[list[tuple[str, _Node | None]]] = []

    def change(self, *parts: "tuple[str, _Node | None]") -> None:
        self.changes.append(list(parts))
        _apply(self.entries, parts)

    def sync(self) -> None:
        self.synced = dict(self.entries)
        self.changes.clear()

    def surviving(self, names: SurvivingNames) -> "dict[str, _Node]":
        entries = dict(self.synced)
        for parts in self.changes[: names(len(self.changes))]:
            _apply(entries, parts)
        return entries


_Node = _FileNode | _DirectoryNode


def _apply(entries: dict[str, _Node], parts: Sequence[tuple[str, _Node | None]]) -> None:
    for name, node in parts:
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


# --- the file system -------------------------------------------------------------------------


class MemoryFile:
    """An open file; it lives on when its name is removed."""

    __slots__ = ("_fs", "_node", "path")

    def __init__(self, fs: "MemoryFileSystem", path: str, node: _FileNode) -> None:
        self.path = path
        self._node = node
        self._fs = fs
        fs.open_files += 1

    def append(self, chunks: Sequence[Buffer], size: int) -> None:
        data = b"".join(chunks)
        assert len(data) == size
        fits = self._fs.step("append", self.path, size)
        self._node.data += data[:fits]
        self._node.modified_ms = self._fs.now_ms
        self._fs.raise_refusal(self.path)

    def pread(self, size: int, position: int) -> bytes:
        self._fs.look("pread", self.path)
        return bytes(self._node.data[position : position + size])

    def is_cached(self, position: int, size: int) -> bool:
        return self.path not in self._fs.cold

    def load(self, position: int, size: int) -> None:
        self._fs.look("load", self.path)
        self._fs.cold.discard(self.path)

    def truncate(self, size: int) -> None:
        self._fs.step("truncate", self.path)
        self._fs.raise_refusal(self.path)
        data = self._node.data
        if size > len(data):
            data.extend(bytes(size - len(data)))
        del data[size:]

    def datasync(self) -> None:
        self._fs.step("datasync", self.path)
        self._fs.raise_refusal(self.path)
        self._node.synced = bytes(self._node.data)

    def size(self) -> int:
        return len(self._node.data)

    def fileno(self) -> int:
        """There is none: whoever sends from here has to read."""
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), self.path)

    def __del__(self) -> None:
        self._fs.open_files -= 1


class MemoryLock:
    """A lock that is gone when its file system is."""

    def __init__(self, locked: set[str], path: str) -> None:
        self._locked = locked
        self._path = path

    def release(self) -> None:
        self._locked.discard(self._path)


class MemoryFileSystem:
    """A disk in memory.

    Attributes:
        operations: how many operations have changed something.
        stop_at: the operation, counted from 1, that does not happen any more.
        refuse: asked before each operation whether it is refused.
        capacity_bytes: how many bytes all files may hold together.
        open_files: how many files are open.
        now_ms: the time that files get when they are written.
        history: the name and path of each operation that changed something.
        cold: paths of files that would have to be read from a real disk.
    """

    def __init__(self) -> None:
        self.operations = 0
        self.stop_at: int | None = None
        self.refuse: Refusal | None = None
        self.capacity_bytes: int | None = None
        self.open_files = 0
        self.now_ms = 0
        self.history: list[tuple[str, str]] = []
        self.cold: set[str] = set()
        self._root = _DirectoryNode()
        self._locked: set[str] = set()
        self._is_stopped = False
        self._refused_with: int | None = None
        self._boot_id = f"boot-{next(_boots)}"

    # --- faults ---

    def step(self, operation: str, path: str, size: int = 0) -> int:
        """Count an operation that changes something; return how many of its bytes are written."""
        if self._is_stopped or self.operations + 1 == self.stop_at:
            self._is_stopped = True
            raise SimulatedCrash(f"{operation} {path}")
        self.operations += 1
        self.history.append((operation, path))
        self._refused_with = self.refuse(operation, path) if self.refuse else None
        if self._refused_with is not None:
            return size // 2
        if size and self.capacity_bytes is not None:
            free = self.capacity_bytes - sum(len(data) for data in self.files().values())
            if size > free:
                self._refused_with = errno.ENOSPC
                return max(0, free)
        return size

    def look(self, operation: str, path: str) -> None:
        """Ask whether an operation that changes nothing is refused."""
        if self._is_stopped:
            raise SimulatedCrash(f"{operation} {path}")
        self._refused_with = self.refuse(operation, path) if self.refuse else None
        self.raise_refusal(path)

    def raise_refusal(self, path: str) -> None:
        number, self._refused_with = self._refused_with, None
        if number is not None:
            raise OSError(number, os.strerror(number), path)

    def after_crash(
        self, surviving_bytes: SurvivingBytes = lose_bytes, names: SurvivingNames = lose_names
    ) -> "MemoryFileSystem":
        """Return the disk as the next start of the machine finds it. This one is not changed."""
        found = MemoryFileSystem()
        found.now_ms = self.now_ms
        copies: dict[int, _Node] = {}

        def copy(node: _Node, path: str) -> _Node:
            # Between two syncs of its directories a file may have two names.
            copied = copies.get(id(node))
            if copied is None:
                if isinstance(node, _FileNode):
                    copied = _FileNode(surviving_bytes(path, node.synced, bytes(node.data)))
                    copied.modified_ms = node.modified_ms
                else:
                    copied = _DirectoryNode()
                    for name, child in node.surviving(names).items():
                        copied.entries[name] = copy(child, f"{path}/{name}")
                    copied.synced = dict(copied.entries)
                copies[id(node)] = copied
            return copied

        root = copy(self._root, "")
        assert isinstance(root, _DirectoryNode)
        found._root = root
        return found

    def after_kill(self) -> "MemoryFileSystem":
        """Return the disk as the next process finds it: nothing of what was written is lost.

        It is not synced by that, so a crash may still follow. This one is not changed.
        """
        found = MemoryFileSystem()
        found._boot_id = self._boot_id
        found.now_ms = self.now_ms
        copies: dict[int, _Node] = {}

        def copy(node: _Node) -> _Node:
            known = copies.get(id(node))
            if known is not None:
                return known
            if isinstance(node, _FileNode):
                file = copies[id(node)] = _FileNode(node.synced)
                file.data = bytearray(node.data)
                file.modified_ms = node.modified_ms
                return file
            directory = copies[id(node)] = _DirectoryNode()
            directory.entries = {name: copy(child) for name, child in node.entries.items()}
            directory.synced = {name: copy(child) for name, child in node.synced.items()}
            directory.changes = [
                [(name, None if child is None else copy(child)) for name, child in parts]
                for parts in node.changes
            ]
            return directory

        root = copy(self._root)
        assert isinstance(root, _DirectoryNode)
        found._root = root
        return found

    def files(self) -> dict[str, bytes]:
        """Return all files with what they hold now."""
        return dict(self._walk(self._root, ""))

    def _walk(self, node: _DirectoryNode, path: str) -> Iterator[tuple[str, bytes]]:
        for name, child in sorted(node.entries.items()):
            if isinstance(child, _FileNode):
                yield f"{path}/{name}", bytes(child.data)
            else:
                yield from self._walk(child, f"{path}/{name}")

    def overwrite(self, path: str, data: bytes) -> None:
        """Put other bytes into a file, synced, as a disk does that damages what it holds."""
        node = self._file(path)
        node.data = bytearray(data)
        node.synced = bytes(data)

    # --- the interface ---

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> MemoryFile:
        self.look("open", path)
        parent, name = self._parent(path)
        node = parent.entries.get(name)
        if node is None:
            if not create:
                raise _error(FileNotFoundError, errno.ENOENT, path)
            self.step("create", path)
            self.raise_refusal(path)
            node = _FileNode()
            node.modified_ms = self.now_ms
            parent.change((name, node))
        if isinstance(node, _DirectoryNode):
            raise _error(IsADirectoryError, errno.EISDIR, path)
        return MemoryFile(self, path, node)

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def size(self, path: str) -> int:
        return len(self._file(path).data)

    def modified_ms(self, path: str) -> int:
        return self._file(path).modified_ms

    def list_files(self, path: str) -> list[str]:
        self.look("list", path)
        entries = self._directory(path).entries
        return sorted(name for name, node in entries.items() if isinstance(node, _FileNode))

    def list_directories(self, path: str) -> list[str]:
        self.look("list", path)
        entries = self._directory(path).entries
        return sorted(name for name, node in entries.items() if isinstance(node, _DirectoryNode))

    def make_directory(self, path: str) -> None:
        parent, name = self._parent(path)
        child = parent.entries.get(name)
        if child is None:
            self.step("make_directory", path)
            self.raise_refusal(path)
            parent.change((name, _DirectoryNode()))
        elif isinstance(child, _FileNode):
            raise _error(FileExistsError, errno.EEXIST, path)

    def rename(self, old: str, new: str) -> None:
        parent, name = self._parent(old)
        target, new_name = self._parent(new)
        # Two directories can't be changed in one step here, and the log never does that.
        assert parent is target
        node = parent.entries.get(name)
        if node is None:
            raise _error(FileNotFoundError, errno.ENOENT, old)
        replaced = parent.entries.get(new_name)
        if isinstance(replaced, _DirectoryNode) and replaced.entries:
            raise _error(OSError, errno.ENOTEMPTY, new)
        self.step("rename", new)
        self.raise_refusal(new)
        parent.change((name, None), (new_name, node))

    def remove(self, path: str) -> None:
        parent, name = self._parent(path)
        node = parent.entries.get(name)
        if node is None:
            raise _error(FileNotFoundError, errno.ENOENT, path)
        if isinstance(node, _DirectoryNode):
            raise _error(IsADirectoryError, errno.EISDIR, path)
        self.step("remove", path)
        self.raise_refusal(path)
        parent.change((name, None))

    def remove_directory(self, path: str) -> None:
        parent, name = self._parent(path)
        if self._directory(path).entries:
            raise _error(OSError, errno.ENOTEMPTY, path)
        self.step("remove_directory", path)
        self.raise_refusal(path)
        parent.change((name, None))

    def sync_directory(self, path: str) -> None:
        directory = self._directory(path)
        self.step("sync_directory", path)
        self.raise_refusal(path)
        directory.sync()

    def space(self, path: str) -> Space:
        self.look("space", path)
        self._directory(path)
        if self.capacity_bytes is None:
            return Space(_UNBOUNDED_BYTES, _UNBOUNDED_BYTES)
        used = sum(len(data) for data in self.files().values())
        return Space(self.capacity_bytes, max(0, self.capacity_bytes - used))

    def boot_id(self) -> str:
        return self._boot_id

    def lock(self, path: str) -> MemoryLock:
        if path in self._locked:
            raise BlockingIOError(f"{path} is locked")
        self.open(path, create=True)
        self._locked.add(path)
        return MemoryLock(self._locked, path)

    # --- paths ---

    def _find(self, path: str) -> _Node | None:
        node: _Node = self._root
        for name in _names(path):
            if isinstance(node, _FileNode):
                return None
            child = node.entries.get(name)
            if child is None:
                return None
            node = child
        return node

    def _file(self, path: str) -> _FileNode:
        node = self._find(path)
        if not isinstance(node, _FileNode):
            raise _error(FileNotFoundError, errno.ENOENT, path)
        return node

    def _directory(self, path: str) -> _DirectoryNode:
        node = self._find(path)
        if node is None:
            raise _error(FileNotFoundError, errno.ENOENT, path)
        if isinstance(node, _FileNode):
            raise _error(NotADirectoryError, errno.ENOTDIR, path)
        return node

    def _parent(self, path: str) -> tuple[_DirectoryNode, str]:
        *_, name = _names(path)
        return self._directory(path.rpartition("/")[0]), name


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


def _error(kind: type[OSError], number: int, path: str) -> OSError:
    return kind(number, os.strerror(number), path)
