"""Partitions that a run does not open: they are neither closed nor recovered by it.

A directory holds such a partition when the metadata assigns it to another one that is offline, or
when the directory has only the metadata log left to serve.
"""

import pytest

from klamm.log.config import LogConfig
from klamm.log.directories import LogDirectories
from klamm.log.errors import DirectoryOfflineError
from klamm.log.layout import BOOT_FILE, CLEAN_SHUTDOWN_FILE
from klamm.log.memory_fs import MemoryFileSystem, keep_bytes, keep_names
from klamm.log.partition_log import PartitionLog
from klamm.log.tests.support import (
    DIRECTORY,
    NOW_MS,
    OTHER_TOPIC_ID,
    ROOT,
    TOPIC,
    append,
    batch,
    open_manager,
    open_one,
    values_of,
)
from klamm.log.tests.two_directories import FIRST, SECOND, by_root, open_log, open_two

MARKER = f"{ROOT}/{CLEAN_SHUTDOWN_FILE}"
SEGMENT = "00000000000000000000.log"
VALUES = [b"%04d" % index for index in range(4)]


def idempotent(sequence: int) -> bytes:
    return batch(VALUES[sequence], producer_id=7, producer_epoch=0, sequence=sequence)


def fill(log: PartitionLog) -> None:
    """Write batches of an idempotent producer; no checkpoint says that they are synced."""
    for sequence in range(len(VALUES)):
        append(log, idempotent(sequence))
    log.flush()


def torn(fs: MemoryFileSystem, path: str) -> MemoryFileSystem:
    """Return the disk after a power cut that has left the last batch whole by its length only."""
    found = fs.after_crash(keep_bytes, keep_names)
    found.overwrite(path, found.files()[path][:-8] + bytes(8))
    return found


def assert_recovered(log: PartitionLog) -> None:
    """What the power cut has torn is gone, and the producer of the rest is known."""
    assert values_of(log) == VALUES[:3]
    assert log.append(idempotent(2), leader_epoch=0, now_ms=NOW_MS).duplicate
    assert append(log, idempotent(3)) == 3


def power_cut() -> MemoryFileSystem:
    fs = MemoryFileSystem()
    fill(open_one(fs)[1])
    return torn(fs, f"{DIRECTORY}/{SEGMENT}")


def run_without_it(fs: MemoryFileSystem) -> None:
    """Serve another partition of the directory, and stop cleanly."""
    manager = open_manager(fs)
    log = manager.open_partition("other", 0, OTHER_TOPIC_ID, LogConfig(), NOW_MS)
    append(log, batch())
    manager.set_aside_strays({(TOPIC, 0), ("other", 0)})
    manager.note_boot()
    manager.close()


# --- the marker ----------------------------------------------------------------------------------


def test_what_a_run_has_not_opened_is_recovered_by_the_next_one() -> None:
    fs = power_cut()
    for _ in range(2):
        run_without_it(fs)
        assert not fs.exists(MARKER)
    manager, log = open_one(fs)
    assert_recovered(log)
    manager.open_partition("other", 0, OTHER_TOPIC_ID, LogConfig(), NOW_MS)
    manager.close()
    assert fs.exists(MARKER)


def test_what_was_closed_stays_closed_until_it_is_opened() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs)
    fill(log)
    manager.close()
    run_without_it(fs)
    assert fs.exists(MARKER)
    _, log = open_one(fs)
    assert log.recovery_point == len(VALUES)
    assert log.append(idempotent(3), leader_epoch=0, now_ms=NOW_MS).duplicate


@pytest.mark.parametrize("is_deleted", [False, True])
def test_what_is_not_there_any_more_is_not_missed(is_deleted: bool) -> None:
    fs = power_cut()
    manager = open_manager(fs)
    if is_deleted:
        manager.delete_partition(TOPIC, 0)
    else:
        manager.set_aside_strays(set())
    manager.close()
    assert fs.exists(MARKER)


# --- the boot ------------------------------------------------------------------------------------


def test_no_boot_is_named_while_a_log_was_not_opened() -> None:
    fs = power_cut()
    before = fs.files()[f"{ROOT}/{BOOT_FILE}"]
    manager = open_manager(fs)
    manager.note_boot()
    assert fs.files()[f"{ROOT}/{BOOT_FILE}"] == before
    # Killed here. What the power cut has torn must not be taken for damage.
    assert_recovered(open_one(fs.after_kill())[1])


# --- several directories -------------------------------------------------------------------------


def test_a_move_was_cut_short_and_its_target_is_offline_for_a_while() -> None:
    fs = MemoryFileSystem()
    directories = open_two(fs)
    first, second = (by_root(directories, root).directory_id for root in (FIRST, SECOND))
    fill(open_log(directories, assigned=first))
    fs = torn(fs, f"{FIRST}/{TOPIC}-0/{SEGMENT}")
    # The metadata has assigned it to the target already, and the log is still where it was.
    fs.rename(SECOND, "/unmounted")
    directories = open_two(fs)
    with pytest.raises(DirectoryOfflineError):
        open_log(directories, assigned=second)
    directories.set_aside_strays({(TOPIC, 0)})
    directories.note_boot()
    directories.close()
    fs.rename("/unmounted", SECOND)
    log = open_log(open_two(fs), assigned=second)
    assert log.root == FIRST
    assert_recovered(log)


def test_a_directory_serves_the_metadata_log_alone_for_a_while() -> None:
    fs = MemoryFileSystem()
    directories = open_two(fs)
    first = by_root(directories, FIRST).directory_id
    fill(open_log(directories, assigned=first))
    fs = torn(fs, f"{FIRST}/{TOPIC}-0/{SEGMENT}")
    directories = LogDirectories.open(fs, (SECOND,), metadata_root=FIRST, node_id=1)
    with pytest.raises(DirectoryOfflineError):
        open_log(directories, assigned=first)
    directories.set_aside_strays({(TOPIC, 0)})
    directories.note_boot()
    directories.close()
    assert_recovered(open_log(open_two(fs), assigned=first))
