"""Every byte of a synced log flipped: noticed or harmless, never dropped (reliability row 3)."""

import pytest

from klamm.log.config import LogConfig
from klamm.log.errors import CorruptLogError, StorageError
from klamm.log.layout import LOG_START_CHECKPOINT
from klamm.log.log_start import delete_records
from klamm.log.memory_fs import MemoryFileSystem, keep_bytes, keep_names
from klamm.log.retention import Retention
from klamm.log.tests.support import (
    DIRECTORY,
    NOW_MS,
    ROOT,
    Read,
    append,
    batch,
    open_one,
    read_all,
)
from klamm.log.work import run_inline
from klamm.wire.records.batch import read_batch_header

VALUES = [b"%04d" % index for index in range(8)]
BATCH_SIZE = len(batch(b"0000"))
CONFIG = LogConfig(segment_bytes=4 * BATCH_SIZE, index_interval_bytes=50)
COLD = f"{DIRECTORY}/00000000000000000000.log"
ACTIVE = f"{DIRECTORY}/00000000000000000004.log"
EXPECTED = [Read(offset, value) for offset, value in enumerate(VALUES)]
EPOCH_BYTES = range(12, 16)
RETAINED = LogConfig(segment_bytes=2 * BATCH_SIZE, index_interval_bytes=50, retention_ms=60_000)


def synced_log(*, clean: bool, with_checkpoint: bool = True) -> MemoryFileSystem:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    for value in VALUES:
        append(log, batch(value))
    log.flush()
    if clean:
        manager.close()
    elif with_checkpoint:
        manager.checkpoint_writer()()
    return fs.after_crash()


def flipped(fs: MemoryFileSystem, path: str, position: int, bits: int) -> MemoryFileSystem:
    damaged = fs.after_crash(keep_bytes, keep_names)
    data = bytearray(damaged.files()[path])
    data[position] ^= bits
    damaged.overwrite(path, bytes(data))
    return damaged


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("bits", [0x01, 0x80])
def test_damage_to_the_active_segment_is_found_and_named(clean: bool, bits: int) -> None:
    fs = synced_log(clean=clean)
    for position in range(4 * BATCH_SIZE):
        damaged = flipped(fs, ACTIVE, position, bits)
        if clean and position % BATCH_SIZE in EPOCH_BYTES:
            # Nothing reads the epoch of a batch after a clean stop.
            _, log = open_one(damaged, CONFIG)
            assert read_all(log) == EXPECTED
            continue
        with pytest.raises(CorruptLogError) as raised:
            read_all(open_one(damaged, CONFIG)[1])
        error = raised.value
        assert error.file == ACTIVE
        # A batch whose offset has grown is noticed at the batch behind it.
        assert error.position in (
            position // BATCH_SIZE * BATCH_SIZE,
            (position // BATCH_SIZE + 1) * BATCH_SIZE,
        )
        assert str(error.position) in str(error)
        assert ACTIVE in str(error)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("bits", [0x01, 0x80])
def test_damage_to_a_cold_segment_is_found_when_it_is_read(clean: bool, bits: int) -> None:
    fs = synced_log(clean=clean)
    for position in range(4 * BATCH_SIZE):
        damaged = flipped(fs, COLD, position, bits)
        _, log = open_one(damaged, CONFIG)
        assert log.log_end_offset == len(VALUES)
        if position % BATCH_SIZE in EPOCH_BYTES:
            assert read_all(log) == EXPECTED
            continue
        for start in (0, position // BATCH_SIZE):
            with pytest.raises(CorruptLogError) as raised:
                read_all(log, start)
            assert raised.value.file == COLD
        assert [record.offset for record in read_all(log, 4)] == [4, 5, 6, 7]


def test_the_error_names_offset_and_byte_of_the_damaged_batch() -> None:
    damaged = flipped(synced_log(clean=False), ACTIVE, 2 * BATCH_SIZE + 70, 0x10)
    with pytest.raises(CorruptLogError, match=f"byte {2 * BATCH_SIZE} .offset 6.: the checksum"):
        open_one(damaged, CONFIG)


def test_a_damaged_partition_is_left_as_it_is() -> None:
    damaged = flipped(synced_log(clean=False), ACTIVE, 70, 0x10)
    before = damaged.files()[ACTIVE]
    for _ in range(2):
        with pytest.raises(CorruptLogError):
            open_one(damaged.after_kill(), CONFIG)
    assert damaged.files()[ACTIVE] == before


def test_above_the_recovery_point_the_log_is_cut_after_a_power_cut() -> None:
    # The checkpoint lags behind; what lies above it is taken for the mark of a crash. After a kill
    # it is damage: test_same_boot.py.
    fs = synced_log(clean=False, with_checkpoint=False)
    for position in range(4 * BATCH_SIZE):
        if position % BATCH_SIZE in EPOCH_BYTES:
            continue
        damaged = flipped(fs, ACTIVE, position, 0x01)
        _, log = open_one(damaged, CONFIG)
        found = read_all(log)
        assert found == EXPECTED[: len(found)]
        assert len(found) in (4 + position // BATCH_SIZE, 5 + position // BATCH_SIZE)


@pytest.mark.parametrize("clean", [True, False])
def test_damage_to_any_other_file_never_hides_data(clean: bool) -> None:
    fs = synced_log(clean=clean)
    others = [path for path in fs.files() if not path.endswith((".log", ".lock"))]
    assert len(others) >= 8
    refused = accepted = 0
    for path in others:
        for position in range(len(fs.files()[path])):
            for bits in (0x01, 0x40):
                damaged = flipped(fs, path, position, bits)
                try:
                    _, log = open_one(damaged, CONFIG)
                except StorageError as error:
                    refused += ROOT in str(error)
                    continue
                if not path.endswith("partition.metadata"):
                    assert read_all(log) == EXPECTED
                elif log.log_end_offset == 0:
                    # A directory of another topic id is set aside as a whole.
                    assert any(name.endswith("-stray") for name in damaged.list_directories(ROOT))
                accepted += 1
    assert refused > 100
    assert accepted > 100


@pytest.mark.parametrize("clean", [True, False])
def test_damage_to_any_other_file_lets_retention_delete_nothing(clean: bool) -> None:
    fs, start = log_with_a_start(clean=clean), 5
    others = [path for path in fs.files() if not path.endswith((".log", ".lock"))]
    refused = accepted = 0
    for path in others:
        if path.endswith(LOG_START_CHECKPOINT) and not clean:
            # Nothing but this file knows how far a log start had come when the process was killed.
            continue
        for position in range(len(fs.files()[path])):
            for bits in (0x01, 0x02, 0x04, 0x40):
                damaged = flipped(fs, path, position, bits)
                try:
                    manager, log = open_one(damaged, RETAINED)
                except StorageError:
                    refused += 1
                    continue
                if path.endswith("partition.metadata") and log.log_end_offset == 0:
                    continue
                run_inline(Retention(manager).delete_old_segments(log, NOW_MS))
                found = read_all(log)
                # What was deleted may come back where a file has forgotten it; the rest stays.
                assert found[-len(EXPECTED[start:]) :] == EXPECTED[start:], (path, position)
                assert log.offset_for_timestamp(NOW_MS) is not None
                accepted += 1
    assert refused > 100
    assert accepted > 100


def log_with_a_start(*, clean: bool) -> MemoryFileSystem:
    """Write four segments; deleted records have taken two of them, and half of the third."""
    fs = MemoryFileSystem()
    manager, log = open_one(fs, RETAINED)
    for value in VALUES:
        append(log, batch(value))
    log.flush()
    log.advance_high_watermark(len(VALUES))
    run_inline(delete_records(manager, [(log, 5)]))
    run_inline(Retention(manager).delete_old_segments(log, NOW_MS))
    assert log.segments.first.base_offset == 4
    log.flush()
    if clean:
        manager.close()
    else:
        manager.checkpoint_writer()()
    return fs.after_crash()


def test_an_index_that_leads_astray_is_made_anew() -> None:
    fs = synced_log(clean=True)
    path = f"{DIRECTORY}/00000000000000000000.index"
    for position in range(len(fs.files()[path])):
        for bits in (0x01, 0x02, 0x80):
            _, log = open_one(flipped(fs, path, position, bits), CONFIG)
            for offset in range(4):
                data = log.read(offset, 1).slice.read()
                assert read_batch_header(data).base_offset == offset
