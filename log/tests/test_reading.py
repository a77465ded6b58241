"""Logs that are read without being opened: as far as they can be, and nothing is touched."""

import pytest

from klamm.log.errors import CorruptFileError, CorruptLogError
from klamm.log.layout import parse_metadata_snapshot
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.reading import read_log, read_snapshot
from klamm.log.tests.support import DIRECTORY, append, batch, open_one


@pytest.fixture
def fs() -> MemoryFileSystem:
    """Six batches of one record, in three segments."""
    fs = MemoryFileSystem()
    manager, log = open_one(fs)
    for number in range(6):
        if number in (2, 4):
            log.roll(0)
        append(log, batch(b"%d" % number))
    manager.close()
    return fs


def offsets(fs: MemoryFileSystem, from_offset: int = 0) -> list[int]:
    return [header.base_offset for header, _ in read_log(fs, DIRECTORY, from_offset)]


def offsets_before_damage(fs: MemoryFileSystem, from_offset: int = 0) -> tuple[list[int], str]:
    """What could be read, and why not more."""
    found = []
    try:
        for header, _ in read_log(fs, DIRECTORY, from_offset):
            found.append(header.base_offset)
    except CorruptLogError as error:
        return found, str(error)
    pytest.fail("there is no damage")


def damage(fs: MemoryFileSystem, path: str) -> None:
    file = fs.open(path)
    data = file.pread(file.size(), 0)
    file.truncate(0)
    file.append([data[:-1] + b"\xff"], len(data))


def test_batches_from_an_offset_on(fs: MemoryFileSystem) -> None:
    before = fs.files()
    for first in range(7):
        assert offsets(fs, first) == list(range(first, 6))
    assert fs.files() == before


def test_a_log_ends_at_its_first_bad_batch(fs: MemoryFileSystem) -> None:
    path = f"{DIRECTORY}/{2:020d}.log"
    damage(fs, path)
    read, reason = offsets_before_damage(fs)
    assert read == [0, 1, 2]
    assert reason.startswith(f"{path}: damaged batch at byte {fs.size(path) // 2} (offset 3): ")
    # What lies before it is not looked at.
    damage(fs, f"{DIRECTORY}/{0:020d}.log")
    assert offsets_before_damage(fs, 2)[0] == [2]


def test_a_directory_without_a_log(fs: MemoryFileSystem) -> None:
    fs.make_directory("/empty")
    assert list(read_log(fs, "/empty")) == []


def test_a_snapshot_is_there_as_a_whole_or_not_at_all(fs: MemoryFileSystem) -> None:
    path = f"{DIRECTORY}/{0:020d}.log"
    assert [header.base_offset for header, _ in read_snapshot(fs, path)] == [0, 1]
    damage(fs, path)
    with pytest.raises(CorruptFileError, match="checksum"):
        list(read_snapshot(fs, path))


def test_the_names_of_metadata_snapshots() -> None:
    assert parse_metadata_snapshot("00000000000000000135-0000000007.checkpoint") == (135, 7)
    for name in (
        "00000000000000000135.snapshot",
        "00000000000000000135-0000000007.checkpoint.deleted",
        "00000000000000000135-0000000007.checkpoint.part",
        "bootstrap.checkpoint",
    ):
        assert parse_metadata_snapshot(name) is None
