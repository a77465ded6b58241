"""The rules of the disk in memory that a real disk can't be asked to show."""

import errno

import pytest

from klamm.log.memory_fs import (
    MemoryFileSystem,
    SimulatedCrash,
    keep_bytes,
    keep_names,
    tear_bytes,
    zero_bytes,
)


def new_file(fs: MemoryFileSystem, path: str = "/a", *, sync: bool = True) -> None:
    file = fs.open(path, create=True)
    file.append([b"synced"], 6)
    if sync:
        file.datasync()
        fs.sync_directory("/")
    file.append([b"+more"], 5)


def test_a_crash_loses_what_was_not_synced() -> None:
    fs = MemoryFileSystem()
    new_file(fs)
    assert fs.after_crash().files() == {"/a": b"synced"}
    assert fs.after_kill().files() == {"/a": b"synced+more"}
    assert fs.files() == {"/a": b"synced+more"}


def test_a_crash_may_keep_tear_or_zero_what_was_not_synced() -> None:
    fs = MemoryFileSystem()
    new_file(fs)
    assert fs.after_crash(keep_bytes).files() == {"/a": b"synced+more"}
    assert fs.after_crash(tear_bytes).files() == {"/a": b"synced+m"}
    assert fs.after_crash(zero_bytes).files() == {"/a": b"synced" + bytes(5)}


def test_names_are_lost_without_a_sync_of_their_directory() -> None:
    fs = MemoryFileSystem()
    new_file(fs, sync=False)
    assert fs.after_crash(keep_bytes).files() == {}
    assert fs.after_crash(keep_bytes, keep_names).files() == {"/a": b"synced+more"}


def test_a_removed_name_comes_back_without_a_sync() -> None:
    fs = MemoryFileSystem()
    new_file(fs)
    fs.remove("/a")
    assert fs.after_crash().files() == {"/a": b"synced"}
    fs.sync_directory("/")
    assert fs.after_crash().files() == {}


def test_a_rename_is_never_half_done() -> None:
    fs = MemoryFileSystem()
    new_file(fs, "/a")
    new_file(fs, "/b")
    fs.sync_directory("/")
    fs.open("/b").truncate(1)
    fs.rename("/b", "/a")
    fs.open("/c", create=True)
    assert set(fs.after_crash(names=lambda count: 0).files()) == {"/a", "/b"}
    assert set(fs.after_crash(names=lambda count: 1).files()) == {"/a"}
    assert set(fs.after_crash(names=lambda count: 2).files()) == {"/a", "/c"}


def test_an_unsynced_truncation_may_come_undone() -> None:
    fs = MemoryFileSystem()
    new_file(fs)
    fs.open("/a").truncate(2)
    assert fs.after_crash().files() == {"/a": b"synced"}
    assert fs.after_crash(keep_bytes).files() == {"/a": b"sy"}


def test_a_renamed_directory_is_found_under_one_of_its_names() -> None:
    fs = MemoryFileSystem()
    fs.make_directory("/d")
    fs.sync_directory("/")
    fs.open("/d/f", create=True).datasync()
    fs.sync_directory("/d")
    fs.rename("/d", "/e")
    assert set(fs.after_crash().files()) == {"/d/f"}
    fs.sync_directory("/")
    assert set(fs.after_crash().files()) == {"/e/f"}


def test_it_stops_at_the_given_operation_and_stays_stopped() -> None:
    fs = MemoryFileSystem()
    fs.stop_at = 3
    file = fs.open("/a", create=True)
    file.append([b"x"], 1)
    with pytest.raises(SimulatedCrash):
        file.append([b"y"], 1)
    with pytest.raises(SimulatedCrash):
        file.pread(1, 0)
    assert fs.files() == {"/a": b"x"}
    assert fs.history == [("create", "/a"), ("append", "/a")]


def test_a_refused_write_leaves_half_of_its_bytes() -> None:
    fs = MemoryFileSystem()
    file = fs.open("/a", create=True)
    fs.refuse = lambda operation, path: errno.EIO if operation == "append" else None
    with pytest.raises(OSError, match="Input/output") as raised:
        file.append([b"abcdef"], 6)
    assert raised.value.errno == errno.EIO
    assert fs.files() == {"/a": b"abc"}


@pytest.mark.parametrize(
    "operation",
    [
        "create",
        "append",
        "truncate",
        "datasync",
        "pread",
        "rename",
        "remove",
        "make_directory",
        "remove_directory",
        "sync_directory",
        "list",
    ],
)
def test_every_operation_can_be_refused(operation: str) -> None:
    fs = MemoryFileSystem()
    fs.refuse = lambda name, path: errno.EIO if name == operation else None
    with pytest.raises(OSError, match="Input/output"):
        _do_everything(fs)


def _do_everything(fs: MemoryFileSystem) -> None:
    fs.make_directory("/d")
    file = fs.open("/d/a", create=True)
    file.append([b"x"], 1)
    file.pread(1, 0)
    file.truncate(0)
    file.datasync()
    fs.rename("/d/a", "/d/b")
    fs.sync_directory("/d")
    fs.list_files("/d")
    fs.remove("/d/b")
    fs.remove_directory("/d")


def test_a_full_disk_takes_what_fits() -> None:
    fs = MemoryFileSystem()
    fs.capacity_bytes = 8
    file = fs.open("/a", create=True)
    file.append([b"12345"], 5)
    with pytest.raises(OSError, match="No space") as raised:
        file.append([b"6789"], 4)
    assert raised.value.errno == errno.ENOSPC
    assert fs.files() == {"/a": b"12345678"}
    fs.capacity_bytes = 100
    file.append([b"9"], 1)
    assert fs.size("/a") == 9


def test_open_files_are_counted() -> None:
    fs = MemoryFileSystem()
    first = fs.open("/a", create=True)
    second = fs.open("/a")
    assert fs.open_files == 2
    del second
    assert fs.open_files == 1
    assert first.size() == 0
