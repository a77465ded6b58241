"""The disk and its twin in memory keep the same rules."""

import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from klamm.log.checkpoint import replace_file
from klamm.log.fs import File, FileSystem, OsFileSystem, read_file
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.tests.support import append, batch, open_one, read_all

DROPPED_SIZE = 5 * 1024 * 1024


@pytest.fixture(params=["disk", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[FileSystem, str]:
    """A file system and an empty directory in it."""
    if request.param == "disk":
        return OsFileSystem(), str(tmp_path)
    fs = MemoryFileSystem()
    fs.make_directory("/tmp")
    return fs, "/tmp"


Place = tuple[FileSystem, str]


def test_appends_go_to_the_end_and_reads_anywhere(place: Place) -> None:
    fs, root = place
    file = fs.open(f"{root}/a", create=True)
    file.append([b"ab", memoryview(b"cde")], 5)
    file.append([b"fg"], 2)
    assert file.size() == 7
    assert fs.size(f"{root}/a") == 7
    assert file.pread(3, 2) == b"cde"
    assert file.pread(100, 5) == b"fg"
    assert file.pread(1, 7) == b""
    assert file.path == f"{root}/a"


def test_a_truncated_file_goes_on_at_its_new_end(place: Place) -> None:
    fs, root = place
    file = fs.open(f"{root}/a", create=True)
    file.append([b"abcdef"], 6)
    file.truncate(2)
    file.append([b"X"], 1)
    file.datasync()
    assert read_file(fs, f"{root}/a") == b"abX"
    file.truncate(5)
    assert read_file(fs, f"{root}/a") == b"abX\0\0"


def test_what_is_loaded_is_in_memory(place: Place) -> None:
    fs, root = place
    file = fs.open(f"{root}/a", create=True)
    size = 3 * 1024 * 1024
    file.append([bytes(size)], size)
    for position, count in ((0, 1), (0, size), (size - 1, 1), (4095, 2)):
        file.load(position, count)
        assert file.is_cached(position, count)


def test_a_file_that_the_kernel_has_dropped_is_not_in_memory_until_it_is_loaded(
    tmp_path: Path,
) -> None:
    if can_tell_what_is_cached(dropped_file(f"{tmp_path}/a").fileno()):
        # A file for each question: the kernel may begin to read what it was asked for.
        assert not dropped_file(f"{tmp_path}/b").is_cached(0, 1)
        assert not dropped_file(f"{tmp_path}/c").is_cached(0, DROPPED_SIZE)
        # The last page is not enough.
        file = dropped_file(f"{tmp_path}/d")
        file.load(DROPPED_SIZE - 1, 1)
        assert not file.is_cached(0, DROPPED_SIZE)
    file = dropped_file(f"{tmp_path}/e")
    file.load(0, DROPPED_SIZE)
    assert file.is_cached(0, DROPPED_SIZE)


def dropped_file(path: str) -> File:
    """A file whose pages are on the disk and, as far as the kernel obeys, nowhere else."""
    file = OsFileSystem().open(path, create=True)
    file.append([bytes(DROPPED_SIZE)], DROPPED_SIZE)
    file.datasync()
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return file


def can_tell_what_is_cached(fd: int) -> bool:
    try:
        os.preadv(fd, [bytearray(1)], 0, os.RWF_NOWAIT)
    except BlockingIOError:
        return True
    except OSError:
        return False
    # It is all in memory for good.
    return False


def test_a_file_that_is_only_read(tmp_path: Path) -> None:
    """Kafka writes its metadata snapshots so that nobody may write to them."""
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    file = OsFileSystem().open(str(path), read_only=True)
    assert file.pread(3, 0) == b"abc"
    assert fcntl.fcntl(file.fileno(), fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY


def test_two_handles_see_one_file(place: Place) -> None:
    fs, root = place
    first = fs.open(f"{root}/a", create=True)
    second = fs.open(f"{root}/a")
    first.append([b"one"], 3)
    second.append([b"two"], 3)
    assert first.pread(10, 0) == b"onetwo"


def test_a_removed_file_can_still_be_read(place: Place) -> None:
    fs, root = place
    file = fs.open(f"{root}/a", create=True)
    file.append([b"kept"], 4)
    fs.remove(f"{root}/a")
    assert not fs.exists(f"{root}/a")
    assert file.pread(4, 0) == b"kept"


def test_names_are_listed_by_kind(place: Place) -> None:
    fs, root = place
    for name in ("b", "a"):
        fs.open(f"{root}/{name}", create=True)
    fs.make_directory(f"{root}/d")
    fs.make_directory(f"{root}/d")
    assert fs.list_files(root) == ["a", "b"]
    assert fs.list_directories(root) == ["d"]


def test_a_rename_replaces_a_file(place: Place) -> None:
    fs, root = place
    for name in ("old", "new"):
        fs.open(f"{root}/{name}", create=True).append([name.encode()], 3)
    fs.rename(f"{root}/old", f"{root}/new")
    fs.sync_directory(root)
    assert fs.list_files(root) == ["new"]
    assert read_file(fs, f"{root}/new") == b"old"


def test_a_directory_is_renamed_with_what_is_in_it(place: Place) -> None:
    fs, root = place
    for name in ("d", "d/e"):
        fs.make_directory(f"{root}/{name}")
    fs.open(f"{root}/d/e/f", create=True).append([b"x"], 1)
    fs.rename(f"{root}/d", f"{root}/g")
    assert read_file(fs, f"{root}/g/e/f") == b"x"
    assert not fs.exists(f"{root}/d")


def test_a_file_is_replaced_as_a_whole(place: Place) -> None:
    fs, root = place
    replace_file(fs, root, "checkpoint", b"a long first content")
    replace_file(fs, root, "checkpoint", b"second")
    assert fs.list_files(root) == ["checkpoint"]
    assert read_file(fs, f"{root}/checkpoint") == b"second"


def test_modification_times_are_there(place: Place) -> None:
    fs, root = place
    fs.open(f"{root}/a", create=True).append([b"x"], 1)
    assert fs.modified_ms(f"{root}/a") >= 0


def test_the_space_of_a_disk(place: Place) -> None:
    fs, root = place
    total_bytes, usable_bytes = fs.space(root)
    assert 0 <= usable_bytes <= total_bytes


def test_the_space_that_files_take() -> None:
    fs = MemoryFileSystem()
    fs.make_directory("/d")
    fs.capacity_bytes = 100
    fs.open("/d/a", create=True).append([b"x" * 30], 30)
    assert fs.space("/d") == (100, 70)


REFUSALS: dict[str, Callable[[FileSystem, str], object]] = {
    "open what is not there": lambda fs, root: fs.open(f"{root}/none"),
    "a directory in no directory": lambda fs, root: fs.make_directory(f"{root}/none/d"),
    "create in no directory": lambda fs, root: fs.open(f"{root}/none/a", create=True),
    "size of nothing": lambda fs, root: fs.size(f"{root}/none"),
    "time of nothing": lambda fs, root: fs.modified_ms(f"{root}/none"),
    "space of nothing": lambda fs, root: fs.space(f"{root}/none"),
    "list nothing": lambda fs, root: fs.list_files(f"{root}/none"),
    "rename nothing": lambda fs, root: fs.rename(f"{root}/none", f"{root}/a"),
    "remove nothing": lambda fs, root: fs.remove(f"{root}/none"),
    "remove no directory": lambda fs, root: fs.remove_directory(f"{root}/none"),
    "sync no directory": lambda fs, root: fs.sync_directory(f"{root}/none"),
}


@pytest.mark.parametrize("operation", REFUSALS.values(), ids=REFUSALS.keys())
def test_what_is_not_there_is_named(
    place: Place, operation: Callable[[FileSystem, str], object]
) -> None:
    fs, root = place
    with pytest.raises(FileNotFoundError):
        operation(fs, root)


def test_a_full_directory_is_not_removed(place: Place) -> None:
    fs, root = place
    fs.make_directory(f"{root}/d")
    fs.open(f"{root}/d/a", create=True)
    with pytest.raises(OSError, match="not empty") as raised:
        fs.remove_directory(f"{root}/d")
    assert raised.value.errno == errno.ENOTEMPTY
    fs.remove(f"{root}/d/a")
    fs.remove_directory(f"{root}/d")
    assert not fs.exists(f"{root}/d")


def test_a_lock_is_held_once(place: Place) -> None:
    fs, root = place
    lock = fs.lock(f"{root}/.lock")
    with pytest.raises(BlockingIOError):
        fs.lock(f"{root}/.lock")
    lock.release()
    fs.lock(f"{root}/.lock").release()


TAKE_LOCK = """
import sys
from klamm.log.fs import OsFileSystem
try:
    OsFileSystem().lock(sys.argv[1])
except BlockingIOError:
    print("refused")
else:
    print("granted")
"""


def _lock_in_another_process(path: str) -> str:
    command = [sys.executable, "-c", TAKE_LOCK, path]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_a_lock_holds_against_other_processes(tmp_path: Path) -> None:
    path = str(tmp_path / ".lock")
    lock = OsFileSystem().lock(path)
    assert _lock_in_another_process(path) == "refused"
    lock.release()
    assert _lock_in_another_process(path) == "granted"


def test_a_log_writes_the_same_files_on_both(tmp_path: Path) -> None:
    memory = MemoryFileSystem()
    for fs, root in ((OsFileSystem(), str(tmp_path)), (memory, str(tmp_path))):
        manager, log = open_one(fs, root=root)
        for sequence in range(20):
            record = batch(b"v", producer_id=3, producer_epoch=0, sequence=sequence)
            append(log, record)
            if sequence % 7 == 6:
                log.roll(1)
        log.flush()
        assert len(read_all(log)) == 20
        manager.close()
    written = {
        str(path): path.read_bytes()
        for path in sorted((tmp_path / "t-0").iterdir())
        if path.is_file()
    }
    in_memory = {path: data for path, data in memory.files().items() if "/t-0/" in path}
    assert written == in_memory
    assert len(written) == 14


def test_a_short_write_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = OsFileSystem().open(str(tmp_path / "a"), create=True)
    monkeypatch.setattr("os.writev", lambda fd, chunks: _write_some(fd, b"".join(chunks)))
    file.append([b"0123456789", memoryview(b"abcdef")], 16)
    assert (tmp_path / "a").read_bytes() == b"0123456789abcdef"


def _write_some(fd: int, data: bytes) -> int:
    return os.write(fd, data[:3])
