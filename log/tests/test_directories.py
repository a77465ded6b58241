"""Several data directories: whose they are, and which of them may be missing."""

import errno
from uuid import UUID

import pytest

from klamm.log.directories import MIGRATING, UNASSIGNED, LogDirectories
from klamm.log.errors import (
    CorruptFileError,
    DirectoryLockedError,
    DirectoryOfflineError,
    InconsistentDirectoryError,
)
from klamm.log.layout import CLEAN_SHUTDOWN_FILE
from klamm.log.manager import LogManager
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.tests.support import append, batch
from klamm.log.tests.two_directories import FIRST, SECOND, by_root, open_log, open_two


@pytest.fixture
def fs() -> MemoryFileSystem:
    return MemoryFileSystem()


def write(fs: MemoryFileSystem, path: str, content: bytes) -> None:
    file = fs.open(path, create=True)
    file.truncate(0)
    file.append([content], len(content))


def roots(directories: LogDirectories) -> list[str]:
    return [directory.root for directory in directories.online]


def test_all_are_of_one_cluster_and_each_has_its_own_id(fs: MemoryFileSystem) -> None:
    directories = open_two(fs)
    first, second = directories.online
    assert first.cluster_id == second.cluster_id == directories.cluster_id
    assert first.directory_id != second.directory_id
    assert directories.metadata is first
    ids = (first.directory_id, second.directory_id)
    directories.close()
    again = open_two(fs)
    assert tuple(one.directory_id for one in again.online) == ids
    assert all(one.was_clean for one in again.online)


def test_each_has_a_lock_of_its_own(fs: MemoryFileSystem) -> None:
    open_two(fs).close()
    other = LogManager.open(fs, SECOND, node_id=1)
    with pytest.raises(DirectoryLockedError, match=SECOND):
        open_two(fs)
    # What was taken before was let go.
    other.abandon()
    open_two(fs)


def test_a_copy_of_a_directory_is_refused(fs: MemoryFileSystem) -> None:
    open_two(fs).close()
    data = fs.files()[f"{FIRST}/meta.properties"]
    write(fs, f"{SECOND}/meta.properties", data)
    with pytest.raises(InconsistentDirectoryError, match="is a copy of"):
        open_two(fs)


def test_a_new_metadata_directory_beside_old_ones_is_refused(fs: MemoryFileSystem) -> None:
    open_two(fs).close()
    with pytest.raises(InconsistentDirectoryError, match="/new is new"):
        LogDirectories.open(fs, ("/new", FIRST, SECOND), node_id=1)
    assert not fs.exists("/new")


def test_what_says_nonsense_of_itself_is_refused(fs: MemoryFileSystem) -> None:
    open_two(fs).close()
    write(fs, f"{SECOND}/meta.properties", b"version=1\n")
    with pytest.raises(CorruptFileError, match=SECOND):
        open_two(fs)


def test_a_damaged_checkpoint_takes_its_directory_offline(fs: MemoryFileSystem) -> None:
    open_two(fs).close()
    write(fs, f"{SECOND}/recovery-point-offset-checkpoint", b"nonsense")
    directories = open_two(fs)
    assert roots(directories) == [FIRST]
    assert directories.has_offline


def test_a_failed_checkpoint_spares_the_others(fs: MemoryFileSystem) -> None:
    directories = open_two(fs)
    second = by_root(directories, SECOND)
    log = open_log(directories, partition=0, assigned=by_root(directories, FIRST).directory_id)
    lost = open_log(directories, partition=1, assigned=second.directory_id)
    for one in (log, lost):
        append(one, batch())
        one.flush()
    failed: list[str] = []
    directories.on_failed = lambda directory: failed.append(directory.root)
    fs.refuse = lambda operation, path: errno.EIO if path.startswith(SECOND) else None
    for _ in range(2):
        directories.checkpoint_writer()()
    assert failed == [SECOND]
    assert (log.is_offline, lost.is_offline) == (False, True)
    assert b"t 0 1" in fs.files()[f"{FIRST}/recovery-point-offset-checkpoint"]
    directories.close()
    assert fs.exists(f"{FIRST}/{CLEAN_SHUTDOWN_FILE}")
    fs.refuse = None
    assert not fs.exists(f"{SECOND}/{CLEAN_SHUTDOWN_FILE}")


def test_a_full_disk_is_told_after_the_others_were_written(fs: MemoryFileSystem) -> None:
    directories = open_two(fs)
    fs.refuse = lambda operation, path: (
        errno.ENOSPC if operation == "append" and path.startswith(FIRST) else None
    )
    with pytest.raises(OSError, match="No space"):
        directories.checkpoint_writer()()
    assert fs.exists(f"{SECOND}/recovery-point-offset-checkpoint")
    assert roots(directories) == [FIRST, SECOND]


def test_without_the_metadata_directory_there_is_nothing(fs: MemoryFileSystem) -> None:
    open_two(fs).close()
    fs.refuse = lambda operation, path: errno.EIO if path.startswith(FIRST) else None
    with pytest.raises(OSError, match="Input/output"):
        open_two(fs)


def test_a_partition_of_a_lost_directory_is_not_made_anew(fs: MemoryFileSystem) -> None:
    directories = open_two(fs)
    second = by_root(directories, SECOND).directory_id
    open_log(directories, assigned=second)
    directories.close()
    fs.refuse = lambda operation, path: errno.EIO if path.startswith(SECOND) else None
    directories = open_two(fs)
    for assigned in (second, UUID(int=12345), UNASSIGNED, MIGRATING):
        with pytest.raises(DirectoryOfflineError):
            open_log(directories, assigned=assigned)


def test_what_is_assigned_to_none_goes_where_the_fewest_are(fs: MemoryFileSystem) -> None:
    directories = open_two(fs)
    for partition in range(6):
        open_log(directories, partition=partition)
    assert [len(one) for one in directories.online] == [3, 3]
