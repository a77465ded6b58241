"""A disk that is full, fails or runs out of descriptors (reliability rows 9, 10, 11, 38)."""

import errno
from collections.abc import Callable

import pytest

from klamm.log.config import LogConfig
from klamm.log.errors import LogError
from klamm.log.manager import LogManager
from klamm.log.memory_fs import MemoryFileSystem, keep_names, tear_bytes
from klamm.log.partition_log import PartitionLog
from klamm.log.tests.support import append, batch, open_manager, open_one, values_of
from klamm.wire.errors import ErrorCode

SIZE = len(batch(b"0000"))
CONFIG = LogConfig(segment_bytes=3 * SIZE, index_interval_bytes=50)


def refuse(fs: MemoryFileSystem, number: int, operation: str, suffix: str = "") -> None:
    fs.refuse = lambda name, path: number if name == operation and path.endswith(suffix) else None


def refused(log: PartitionLog, value: bytes = b"lost") -> ErrorCode:
    with pytest.raises(LogError) as raised:
        append(log, batch(value))
    return raised.value.code


def values(count: int) -> list[bytes]:
    return [b"%04d" % index for index in range(count)]


def log_with(count: int, fs: MemoryFileSystem | None = None) -> tuple[LogManager, PartitionLog]:
    manager, log = open_one(fs or MemoryFileSystem(), CONFIG)
    for value in values(count):
        append(log, batch(value))
    return manager, log


# --- a full disk ---------------------------------------------------------------------------------


@pytest.mark.parametrize("free", range(SIZE))
def test_an_append_that_does_not_fit_leaves_the_log_as_it_was(free: int) -> None:
    fs = MemoryFileSystem()
    _, log = log_with(2, fs)
    used = sum(map(len, fs.files().values()))
    fs.capacity_bytes = used + free
    before = fs.files()
    assert refused(log) == ErrorCode.KAFKA_STORAGE_ERROR
    assert fs.files() == before
    assert not log.is_offline
    assert values_of(log) == values(2)
    # It goes on as soon as there is space.
    fs.capacity_bytes = None
    assert append(log, batch(b"0002")) == 2
    assert values_of(log) == values(3)


def test_a_roll_that_does_not_fit_leaves_the_log_as_it_was() -> None:
    for free in range(200):
        fs = MemoryFileSystem()
        _, log = log_with(3, fs)
        fs.capacity_bytes = sum(map(len, fs.files().values())) + free
        try:
            append(log, batch(b"0003"))
        except LogError:
            assert not log.is_offline
            assert values_of(log) == values(3)
            assert log.segments.base_offsets in ([0], [0, 3])
            fs.capacity_bytes = None
            assert append(log, batch(b"0003")) == 3
        assert values_of(log) == values(4)
        log.flush()
        _, recovered = open_one(fs.after_crash(), CONFIG)
        assert values_of(recovered) == values(4)


def test_a_full_disk_fills_and_empties_many_times() -> None:
    fs = MemoryFileSystem()
    _, log = log_with(0, fs)
    written = 0
    for _ in range(50):
        fs.capacity_bytes = sum(map(len, fs.files().values())) + 2 * SIZE
        while True:
            try:
                append(log, batch(b"%04d" % written))
            except LogError:
                break
            written += 1
        fs.capacity_bytes = None
        append(log, batch(b"%04d" % written))
        written += 1
        # Readers never notice.
        assert values_of(log) == values(written)
    log.flush()
    _, recovered = open_one(fs.after_crash(), CONFIG)
    assert values_of(recovered) == values(written)


def test_a_sync_on_a_full_disk_leaves_the_epochs_for_later() -> None:
    fs = MemoryFileSystem()
    _, log = log_with(1, fs)
    refuse(fs, errno.ENOSPC, "append", ".tmp")
    request = log.pending_sync()
    request.run()
    log.mark_synced(request)
    assert request.is_partial
    assert log.recovery_point == 0
    # The data is synced all the same.
    fs.refuse = None
    _, recovered = open_one(fs.after_crash(), CONFIG)
    assert values_of(recovered) == values(1)
    assert recovered.latest_epoch == 0
    log.flush()
    assert log.recovery_point == 1


# --- a failing disk ------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["append", "truncate"])
def test_after_a_failed_write_the_log_is_offline_until_a_restart(operation: str) -> None:
    fs = MemoryFileSystem()
    _, log = log_with(2, fs)
    log.flush()
    fs.refuse = lambda name, path: errno.EIO if name in ("append", operation) else None
    assert refused(log) == ErrorCode.KAFKA_STORAGE_ERROR
    assert log.is_offline
    fs.refuse = None
    assert refused(log) == ErrorCode.KAFKA_STORAGE_ERROR
    # What was there can be read.
    assert values_of(log) == values(2)
    log.close()
    _, recovered = open_one(fs.after_kill(), CONFIG)
    assert values_of(recovered) == values(2)
    assert append(recovered, batch(b"0002")) == 2


def test_an_offline_log_leaves_no_mark_of_a_clean_shutdown() -> None:
    fs = MemoryFileSystem()
    manager, log = log_with(2, fs)
    refuse(fs, errno.EIO, "append")
    refused(log)
    fs.refuse = None
    manager.close()
    assert not open_manager(fs).was_clean


def test_a_failed_read_is_a_storage_error() -> None:
    fs = MemoryFileSystem()
    _, log = log_with(5, fs)
    refuse(fs, errno.EIO, "pread")
    attempts: list[Callable[[], object]] = [
        lambda: log.read(1, 100),
        lambda: log.offset_for_timestamp(0),
        log.offset_of_max_timestamp,
    ]
    for attempt in attempts:
        with pytest.raises(LogError, match="KAFKA_STORAGE_ERROR"):
            attempt()
    assert log.is_offline


@pytest.mark.parametrize("operation", ["datasync", "sync_directory", "rename", "append"])
def test_a_failed_sync_is_told_and_nothing_counts_as_synced(operation: str) -> None:
    fs = MemoryFileSystem()
    _, log = log_with(5, fs)
    refuse(fs, errno.EIO, operation)
    with pytest.raises(OSError, match="Input/output"):
        log.flush()
    assert log.recovery_point == 0


def test_a_failed_sync_at_shutdown_leaves_no_mark() -> None:
    fs = MemoryFileSystem()
    manager, _ = log_with(5, fs)
    refuse(fs, errno.EIO, "datasync", ".log")
    with pytest.raises(OSError, match="Input/output"):
        manager.close()
    fs.refuse = None
    # The lock is free again, for recovery to look at what is there.
    manager, log = open_one(fs, CONFIG)
    assert not manager.was_clean
    assert values_of(log) == values(5)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_refusing_each_operation_in_turn_never_loses_what_was_synced(number: int) -> None:
    for nth in range(1, 200):
        fs = MemoryFileSystem()
        written: list[bytes] = []
        synced = 0
        _, log = open_one(fs, CONFIG)
        first = fs.operations
        fs.refuse = lambda name, path, at=first + nth, fs=fs: (
            number if fs.operations == at and name != "open" else None
        )
        try:
            for index in range(10):
                value = b"%04d" % index
                try:
                    append(log, batch(value))
                except LogError:
                    if log.is_offline:
                        break
                    append(log, batch(value))
                written.append(value)
                if index % 3 == 2:
                    log.flush()
                    synced = len(written)
        except OSError:
            # A failed sync: the process halts.
            pass
        fs.refuse = None
        found = values_of(open_one(fs.after_crash(tear_bytes, keep_names), CONFIG)[1])
        # Of an append that failed half, the whole batch is never there.
        assert found == written[: len(found)]
        assert len(found) >= synced
        if fs.operations < first + nth:
            return
    raise AssertionError("there are more operations than expected")


# --- no descriptors ------------------------------------------------------------------------------


def test_without_descriptors_an_append_is_refused_and_nothing_is_lost() -> None:
    fs = MemoryFileSystem()
    _, log = log_with(2, fs)
    log.close_files()
    refuse(fs, errno.EMFILE, "open")
    assert refused(log) == ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(LogError, match="KAFKA_STORAGE_ERROR"):
        log.read(0, 100)
    assert not log.is_offline
    fs.refuse = None
    append(log, batch(b"0002"))
    assert values_of(log) == values(3)
