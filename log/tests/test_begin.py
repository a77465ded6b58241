"""Directories are claimed first, all of them, and written to only then."""

import errno

import pytest

from klamm.log.directories import LogDirectories
from klamm.log.errors import InconsistentDirectoryError
from klamm.log.layout import CLEAN_SHUTDOWN_FILE
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.tests.two_directories import FIRST, SECOND, open_log, open_two


@pytest.fixture
def fs() -> MemoryFileSystem:
    """Two directories that were stopped cleanly, with a deleted partition in the first."""
    fs = MemoryFileSystem()
    directories = open_two(fs)
    open_log(directories)
    directories.delete_partition("t", 0)
    directories.close()
    return fs


def claim(fs: MemoryFileSystem, metadata_root: str = FIRST) -> LogDirectories:
    return LogDirectories.open(fs, (FIRST, SECOND), metadata_root=metadata_root, node_id=1)


def test_a_claim_changes_nothing(fs: MemoryFileSystem) -> None:
    before = fs.files()
    claim(fs).abandon()
    assert fs.files() == before
    directories = claim(fs)
    directories.begin()
    assert all(directory.was_clean for directory in directories.online)
    for root in (FIRST, SECOND):
        assert not fs.exists(f"{root}/{CLEAN_SHUTDOWN_FILE}")
    assert fs.list_directories(FIRST) == []


def refuse_removals(fs: MemoryFileSystem, *roots: str) -> None:
    fs.refuse = lambda operation, path: (
        errno.EIO if operation == "remove" and path.startswith(roots) else None
    )


def test_a_directory_that_can_not_be_written_is_offline(fs: MemoryFileSystem) -> None:
    directories = claim(fs)
    refuse_removals(fs, SECOND)
    directories.begin()
    assert [directory.root for directory in directories.online] == [FIRST]


def test_without_the_metadata_directory_there_is_nothing(fs: MemoryFileSystem) -> None:
    directories = claim(fs)
    refuse_removals(fs, FIRST)
    with pytest.raises(OSError, match="Input/output"):
        directories.begin()


def test_one_directory_for_partitions_is_needed(fs: MemoryFileSystem) -> None:
    open_two(fs).close()
    directories = LogDirectories.open(fs, (SECOND,), metadata_root=FIRST, node_id=1)
    refuse_removals(fs, SECOND)
    with pytest.raises(InconsistentDirectoryError, match=f"none of log.dirs.*: {SECOND}: "):
        directories.begin()
