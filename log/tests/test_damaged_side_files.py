"""Files beside the batches that say something wrong, or nothing any more."""

import logging

import pytest

from klamm.log.config import LogConfig
from klamm.log.errors import CorruptFileError, CorruptLogError
from klamm.log.layout import (
    BOOT_FILE,
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    STRAY_SUFFIX,
)
from klamm.log.log_start import delete_records
from klamm.log.manager import LogManager
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.partition_log import PartitionLog
from klamm.log.retention import Retention
from klamm.log.tests.checking import check, faults
from klamm.log.tests.support import (
    DIRECTORY,
    NOW_MS,
    ROOT,
    append,
    batch,
    open_one,
    read_all,
)
from klamm.log.work import run_inline

DAY_MS = 24 * 3600 * 1000
SIZE = len(batch(b"0000"))
CONFIG = LogConfig(segment_bytes=4 * SIZE, index_interval_bytes=SIZE, retention_ms=7 * DAY_MS)
FIRST = f"{DIRECTORY}/{0:020d}"
LOG_STARTS = f"{ROOT}/{LOG_START_CHECKPOINT}"
RECOVERY_POINTS = f"{ROOT}/{RECOVERY_POINT_CHECKPOINT}"
EPOCHS = f"{DIRECTORY}/{LEADER_EPOCH_CHECKPOINT}"
COUNT = 12


def written(*, start: int = 0, clean: bool = True) -> MemoryFileSystem:
    """Write three segments of four batches, of two epochs, each batch a second later."""
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    for index in range(COUNT):
        records = batch(b"%04d" % index, timestamp=timestamp(index))
        log.append(records, leader_epoch=index // 6, now_ms=NOW_MS)
    log.flush()
    log.advance_high_watermark(COUNT)
    if start:
        assert run_inline(delete_records(manager, [(log, start)])) == [start]
        log.flush()
    if clean:
        manager.close()
        return fs.after_crash()
    manager.checkpoint_writer()()
    return fs.after_kill()


def timestamp(index: int) -> int:
    return NOW_MS + 1000 * index


def retain(manager: LogManager, log: PartitionLog) -> int:
    now_ms = timestamp(COUNT)
    return run_inline(Retention(manager).delete_old_segments(log, now_ms)).segments


def offsets(log: PartitionLog) -> list[int]:
    return [record.offset for record in read_all(log)]


def with_bit(fs: MemoryFileSystem, path: str, position: int, bit: int) -> MemoryFileSystem:
    damaged = fs.after_crash()
    data = bytearray(damaged.files()[path])
    data[position] ^= 1 << bit
    damaged.overwrite(path, bytes(data))
    return damaged


# --- time indexes ---


def test_no_bit_of_a_time_index_lets_retention_delete_or_a_search_go_astray() -> None:
    fs = written()
    paths = [path for path in fs.files() if path.endswith(".timeindex")]
    assert len(paths) == 3
    for path in paths:
        for position in range(len(fs.files()[path])):
            for bit in range(8):
                manager, log = open_one(with_bit(fs, path, position, bit), CONFIG)
                for index in (0, 3, 5, 11):
                    found = log.offset_for_timestamp(timestamp(index))
                    assert found is not None
                    assert found.offset == index
                assert log.offset_for_timestamp(timestamp(COUNT)) is None
                newest = log.offset_of_max_timestamp()
                assert newest is not None
                assert newest.offset == COUNT - 1
                assert retain(manager, log) == 0
                assert append(log, batch(b"more", timestamp=timestamp(COUNT))) == COUNT


def test_nor_where_the_newest_record_is_near_the_beginning() -> None:
    """Then the batch that the last entry names is not among the last ones."""
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    for index in range(COUNT):
        append(log, batch(b"%04d" % index, timestamp=timestamp(-index % 4)))
    log.flush()
    log.advance_high_watermark(COUNT)
    manager.close()
    fs = fs.after_crash()
    path = f"{FIRST}.timeindex"
    for position in range(len(fs.files()[path])):
        for bit in range(8):
            manager, log = open_one(with_bit(fs, path, position, bit), CONFIG)
            assert log.segments.first.max_timestamp == timestamp(3)
            assert retain(manager, log) == 0


@pytest.mark.parametrize("entries", [0, 1])
def test_a_time_index_that_was_cut_short_is_made_anew(entries: int) -> None:
    fs = written()
    path = f"{FIRST}.timeindex"
    assert len(fs.files()[path]) > 12
    fs.overwrite(path, fs.files()[path][: 12 * entries])
    manager, log = open_one(fs, CONFIG)
    assert log.segments.first.max_timestamp == timestamp(3)
    found = log.offset_for_timestamp(timestamp(3))
    assert found is not None
    assert found.offset == 3
    assert retain(manager, log) == 0


def test_a_batch_that_is_damaged_says_nothing_about_its_time_index() -> None:
    fs = written()
    for position in range(35, 43):
        manager, log = open_one(with_bit(fs, f"{FIRST}.log", 3 * SIZE + position, 0), CONFIG)
        assert log.segments.first.max_timestamp == timestamp(3)
        assert retain(manager, log) == 0


def test_the_age_of_a_closed_segment_takes_no_whole_index(monkeypatch: pytest.MonkeyPatch) -> None:
    _, log = open_one(written(), CONFIG)
    monkeypatch.setattr(type(log.segments.first), "_load_offset_index", None)
    monkeypatch.setattr(type(log.segments.first), "_load_time_index", None)
    assert log.segments.first.largest_timestamp == timestamp(3)


# --- the log start ---


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_start_above_the_end_is_damage(clean: bool) -> None:
    fs = written(start=5, clean=clean)
    fs.overwrite(LOG_STARTS, fs.files()[LOG_STARTS].replace(b" 5\n", b" 25\n"))
    before = fs.files()
    for _ in range(2):
        with pytest.raises(CorruptLogError, match=f"ends here, but {LOG_START_CHECKPOINT}.* 25"):
            open_one(fs, CONFIG)
        # Also in a later boot, when nobody can tell any more how the log was left.
        fs = fs.after_crash()
    logs = {path: data for path, data in before.items() if path.endswith(".log")}
    assert logs.items() <= fs.files().items()


def test_after_a_power_cut_the_segments_below_the_start_are_set_aside() -> None:
    fs = written(start=5, clean=False).after_crash()
    fs.overwrite(LOG_STARTS, fs.files()[LOG_STARTS].replace(b" 5\n", b" 25\n"))
    before = {path: data for path, data in fs.files().items() if path.endswith(".log")}
    manager, log = open_one(fs, CONFIG)
    assert (log.log_start_offset, log.log_end_offset) == (25, 25)
    append(log, batch(b"more"))
    manager.close()
    fs = fs.after_crash()
    for path, data in before.items():
        assert fs.files()[path + STRAY_SUFFIX] == data
    assert not faults(check(fs))
    _, log = open_one(fs, CONFIG)
    assert offsets(log) == [25]


def test_a_log_start_that_hides_batches_is_not_believed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fs = written(start=5)
    fs.overwrite(LOG_STARTS, fs.files()[LOG_STARTS].replace(b" 5\n", b" 9\n"))
    manager, log = open_one(fs, CONFIG)
    assert offsets(log) == list(range(5, COUNT))
    assert f"begins at 5, because {LOG_START_CHECKPOINT} has 9" in caplog.text
    manager.close()
    caplog.clear()
    manager, log = open_one(fs.after_crash(), CONFIG)
    assert log.log_start_offset == 5
    assert not caplog.records


@pytest.mark.parametrize("clean", [True, False])
def test_a_first_segment_that_is_missing_is_told_of(
    clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    fs = written(clean=clean)
    for path in fs.files():
        if path.startswith(FIRST):
            fs.remove(path)
    found = check(fs)
    assert any("missing" in finding.what or "begins" in finding.what for finding in found)
    _, log = open_one(fs, CONFIG)
    assert offsets(log) == list(range(4, COUNT))
    assert "the first segment begins at 4" in caplog.text
    assert "missing" in caplog.text


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("start", [4, 6])
def test_nothing_is_missing_where_retention_was(
    clean: bool, start: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    fs = written(start=start, clean=clean)
    for path in fs.files():
        if path.startswith(FIRST):
            fs.remove(path)
    assert not faults(check(fs))
    _, log = open_one(fs, CONFIG)
    assert offsets(log) == list(range(start, COUNT))
    assert not caplog.records


# --- checkpoints of no bytes ---


@pytest.mark.parametrize("path", [LOG_STARTS, RECOVERY_POINTS])
def test_an_emptied_checkpoint_is_refused_after_a_clean_stop(path: str) -> None:
    fs = written(start=5)
    fs.overwrite(path, b"")
    assert faults(check(fs))
    with pytest.raises(CorruptFileError, match="has no bytes"):
        open_one(fs, CONFIG)


@pytest.mark.parametrize("path", [LOG_STARTS, RECOVERY_POINTS])
def test_it_is_told_of_after_a_kill_because_kafka_may_have_made_it_so(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    fs = written(clean=False)
    fs.overwrite(path, b"")
    found = check(fs)
    assert not faults(found)
    assert any("no bytes" in str(finding) for finding in found)
    _, log = open_one(fs, CONFIG)
    assert offsets(log) == list(range(COUNT))
    assert f"{path} has no bytes" in caplog.text


@pytest.mark.parametrize("clean", [True, False])
def test_checkpoints_of_no_bytes_are_well_where_there_is_no_data(
    clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    fs = MemoryFileSystem()
    manager, _ = open_one(fs, CONFIG)
    manager.write_checkpoints()
    if clean:
        manager.close()
    fs = fs.after_crash()
    for path in (LOG_STARTS, RECOVERY_POINTS):
        fs.overwrite(path, b"")
    open_one(fs, CONFIG)
    assert not caplog.records


def test_after_a_kill_of_kafka_they_are_nothing_to_tell_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fs = written(clean=False)
    for path in (LOG_STARTS, RECOVERY_POINTS):
        fs.overwrite(path, b"")
    fs.remove(f"{ROOT}/{BOOT_FILE}")
    assert check(fs) == []
    _, log = open_one(fs, CONFIG)
    assert offsets(log) == list(range(COUNT))
    assert not caplog.records


# --- leader epochs ---


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("is_emptied", [True, False])
def test_lost_epochs_are_made_anew(clean: bool, is_emptied: bool) -> None:
    fs = written(start=2, clean=clean)
    before = fs.files()[EPOCHS]
    if is_emptied:
        fs.overwrite(EPOCHS, b"")
    else:
        fs.remove(EPOCHS)
    manager, log = open_one(fs, CONFIG)
    assert log.leader_epochs.entries == ((0, 2), (1, 6))
    log.append(batch(b"more"), leader_epoch=2, now_ms=NOW_MS)
    manager.close()
    assert fs.files()[EPOCHS] == before.replace(b"\n2\n", b"\n3\n") + b"2 12\n"
    assert not faults(check(fs.after_crash()))


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_of_which_everything_was_deleted_has_lost_no_epochs(
    clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    fs = written(start=COUNT, clean=clean)
    for _ in range(2):
        manager, log = open_one(fs, CONFIG)
        assert (log.log_start_offset, log.leader_epochs.entries) == (COUNT, ())
        manager.close()
    assert not caplog.records
