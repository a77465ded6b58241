"""A roll that fails half-way: the old segment goes on, and no file of a new one is in its way.

An empty segment left behind would be where the next start takes the old one to end, while batches
beyond it were acknowledged.
"""

import errno
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from klamm.log.config import LogConfig
from klamm.log.errors import LogError
from klamm.log.manager import LogManager
from klamm.log.memory_fs import MemoryFileSystem, keep_bytes, lose_bytes
from klamm.log.partition_log import PartitionLog
from klamm.log.tests.checking import KnownPartitions, check
from klamm.log.tests.support import NOW_MS, append, batch, open_one, values_of

SIZE = len(batch(b"0000"))
# A fourth batch of that size does not fit, and a smaller one does.
CONFIG = LogConfig(segment_bytes=4 * SIZE - 1, index_interval_bytes=50)
VALUES = [b"0000", b"0001", b"0002", b"3", b"0004"]


def idempotent(sequence: int, value: bytes) -> bytes:
    return batch(
        value,
        timestamp=NOW_MS + sequence,
        producer_id=7,
        producer_epoch=0,
        sequence=sequence,
    )


def log_with_failed_roll(
    fs: MemoryFileSystem, refuses: Callable[[str, str], bool]
) -> tuple[LogManager, PartitionLog]:
    """Return a log that goes on after a roll at offset 3 which a full disk has refused."""
    manager, log = open_one(fs, CONFIG)
    for sequence, value in enumerate(VALUES[:3]):
        append(log, idempotent(sequence, value))
    log.flush()
    fs.refuse = lambda operation, path: errno.ENOSPC if refuses(operation, path) else None
    with pytest.raises(LogError, match="KAFKA_STORAGE_ERROR"):
        append(log, idempotent(3, b"lost"))
    fs.refuse = None
    assert not log.is_offline
    append(log, idempotent(3, VALUES[3]))
    assert log.segments.base_offsets == [0]
    return manager, log


def operations_of_a_roll() -> list[tuple[str, str]]:
    fs = MemoryFileSystem()
    _, log = open_one(fs, CONFIG)
    for value in VALUES[:3]:
        append(log, batch(value))
    fs.history.clear()
    log.roll(NOW_MS)
    return fs.history


REFUSALS = operations_of_a_roll()
# The index files and the snapshot of a log that was closed are there already.
REFUSALS_WHEN_REOPENED = [
    (operation, path) for operation, path in REFUSALS if operation != "create" or "3.log" in path
]


def found_after(fs: MemoryFileSystem) -> Iterator[MemoryFileSystem]:
    """Yield what a kill leaves, and a crash with any number of the names that were not synced."""
    yield fs.after_kill()
    for names_max in range(20):
        for surviving_bytes in (lose_bytes, keep_bytes):
            yield fs.after_crash(surviving_bytes, partial(min, names_max))


@pytest.mark.parametrize(("operation", "path"), REFUSALS)
def test_what_is_acknowledged_behind_it_survives(operation: str, path: str) -> None:
    fs = MemoryFileSystem()
    _, log = log_with_failed_roll(fs, lambda *refused: refused == (operation, path))
    log.flush()
    for found in found_after(fs):
        _, recovered = open_one(found, CONFIG)
        assert values_of(recovered) == VALUES[:4]
        assert recovered.append(idempotent(3, VALUES[3]), leader_epoch=0, now_ms=NOW_MS).duplicate


@pytest.mark.parametrize(("operation", "path"), REFUSALS)
def test_so_it_does_when_nothing_can_be_removed(operation: str, path: str) -> None:
    """File systems that copy on write need room for a removal, too."""
    fs = MemoryFileSystem()
    manager, log = log_with_failed_roll(
        fs, lambda *refused: refused == (operation, path) or refused[0] == "remove"
    )
    log.flush()
    manager.write_checkpoints()
    for found in found_after(fs):
        assert values_of(open_one(found, CONFIG)[1]) == VALUES[:4]
    manager.close()
    manager, log = open_one(fs, CONFIG)
    assert manager.was_clean
    assert values_of(log) == VALUES[:4]


@pytest.mark.parametrize("is_rolled_later", [False, True])
@pytest.mark.parametrize(("operation", "path"), REFUSALS)
def test_a_clean_stop_leaves_nothing_to_find(
    operation: str, path: str, is_rolled_later: bool
) -> None:
    fs = MemoryFileSystem()
    manager, log = log_with_failed_roll(fs, lambda *refused: refused == (operation, path))
    values = VALUES[:4]
    if is_rolled_later:
        append(log, idempotent(4, VALUES[4]))
        assert log.segments.base_offsets == [0, 4]
        values = VALUES
    log.advance_high_watermark(log.log_end_offset)
    manager.close()
    assert check(fs, KnownPartitions(manager.directory_id)) == []
    # All of it is synced.
    crashed = fs.after_crash()
    assert crashed.files() == fs.files()
    manager, log = open_one(crashed, CONFIG)
    assert manager.was_clean
    assert values_of(log) == values


@pytest.mark.parametrize(("operation", "path"), REFUSALS_WHEN_REOPENED)
def test_a_clean_stop_right_behind_it_leaves_nothing_to_find(operation: str, path: str) -> None:
    """Also of a log that was opened and not written to, whose indexes a roll has half written."""
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    for sequence, value in enumerate(VALUES[:3]):
        append(log, idempotent(sequence, value))
    log.advance_high_watermark(3)
    manager.close()
    manager, log = open_one(fs, CONFIG)
    fs.refuse = lambda *refused: errno.ENOSPC if refused == (operation, path) else None
    with pytest.raises(OSError, match="No space"):
        log.roll(NOW_MS)
    fs.refuse = None
    manager.close()
    assert check(fs, KnownPartitions(manager.directory_id)) == []
    crashed = fs.after_crash()
    assert crashed.files() == fs.files()
    _, log = open_one(crashed, CONFIG)
    assert values_of(log) == VALUES[:3]
    assert log.offset_of_max_timestamp() == (NOW_MS + 2, 2, 0)


def test_a_roll_that_is_tried_again_and_again_leaves_no_more_to_sync_than_one() -> None:
    fs = MemoryFileSystem()
    _, log = open_one(fs, CONFIG)
    for value in VALUES[:3]:
        append(log, batch(value))
    log.flush()
    fs.refuse = lambda operation, path: (
        errno.ENOSPC if operation == "create" and path.endswith(".log") else None
    )
    for _ in range(3):
        with pytest.raises(LogError, match="KAFKA_STORAGE_ERROR"):
            append(log, batch(b"lost"))
    # The segment, two indexes and the snapshot.
    assert len(log.pending_sync().paths) == 4
