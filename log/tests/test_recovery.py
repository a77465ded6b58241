"""What start-up finds in a partition's directory, and what it makes of it, pass by pass."""

import pytest

from klamm.log.config import LogConfig
from klamm.log.errors import CorruptFileError, CorruptLogError
from klamm.log.log_start import delete_records
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.tests.support import (
    DIRECTORY,
    NOW_MS,
    append,
    batch,
    open_one,
    read_all,
    values_of,
)
from klamm.log.work import run_inline
from klamm.wire.records.record import build_batch

SIZE = len(batch(b"0000"))
CONFIG = LogConfig(segment_bytes=2 * SIZE, index_interval_bytes=1)
COMPACTED = LogConfig(
    segment_bytes=2 * SIZE, index_interval_bytes=1, cleanup_policy=frozenset({"compact"})
)
VALUES = [b"%04d" % index for index in range(6)]


def path(base_offset: int, suffix: str) -> str:
    return f"{DIRECTORY}/{base_offset:020d}{suffix}"


def log_of_three_segments(*, clean: bool = True) -> MemoryFileSystem:
    """Offsets 0 to 5, in segments that begin at 0, 2 and 4."""
    fs = MemoryFileSystem()
    manager, log = open_one(fs, COMPACTED)
    for value in VALUES:
        append(log, batch(value))
    assert log.segments.base_offsets == [0, 2, 4]
    if clean:
        manager.close()
        return fs
    return fs.after_kill()


def put(fs: MemoryFileSystem, where: str, data: bytes) -> None:
    fs.open(where, create=True).append([data], len(data))


# --- leftovers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("clean", [True, False])
def test_leftovers_of_deletion_compaction_and_checkpoints_go(clean: bool) -> None:
    fs = log_of_three_segments(clean=clean)
    before = set(fs.files())
    for suffix in (".log.deleted", ".index.deleted", ".snapshot.deleted", ".timeindex.cleaned"):
        put(fs, path(0, suffix), b"x")
    for name in ("leader-epoch-checkpoint.tmp", "partition.metadata.tmp"):
        put(fs, f"{DIRECTORY}/{name}", b"x")
    put(fs, path(9, ".index"), b"an index without a segment")
    put(fs, f"{DIRECTORY}/notes.txt", b"whatever somebody keeps here")
    _, log = open_one(fs, COMPACTED)
    assert values_of(log) == VALUES
    left = {name for name in fs.files() if "t-0" in name} - before
    assert {name for name in left if not name.endswith((".index", ".timeindex", ".snapshot"))} == {
        f"{DIRECTORY}/notes.txt"
    }
    assert path(9, ".index") not in left


# --- compaction that was cut short: five stages ------------------------------------------------

# What compaction made of the segments at 0 and 2: of four records two are left.
COMPACT = build_batch([(b"k", b"0001", (), 1)], base_offset=1) + build_batch(
    [(b"k", b"0003", (), 1)], base_offset=3
)
COMPACTED_VALUES = [b"0001", b"0003", b"0004", b"0005"]


def test_stage_1_output_not_finished() -> None:
    fs = log_of_three_segments()
    put(fs, path(0, ".log.cleaned"), COMPACT[:50])
    assert values_of(open_one(fs, COMPACTED)[1]) == VALUES


def test_stage_2_some_of_the_output_renamed() -> None:
    fs = log_of_three_segments()
    put(fs, path(0, ".index.swap"), b"")
    put(fs, path(0, ".log.cleaned"), COMPACT)
    assert values_of(open_one(fs, COMPACTED)[1]) == VALUES
    assert not [name for name in fs.files() if name.endswith((".swap", ".cleaned"))]


def test_stage_3_all_of_the_output_renamed() -> None:
    fs = log_of_three_segments()
    put(fs, path(0, ".log.swap"), COMPACT)
    # The output has none: no reader must look for a transaction that is gone.
    put(fs, path(0, ".txnindex"), b"")
    _, log = open_one(fs, COMPACTED)
    assert values_of(log) == COMPACTED_VALUES
    assert log.segments.base_offsets == [0, 4]
    assert path(0, ".txnindex") not in fs.files()


def test_stage_4_originals_renamed_for_deletion() -> None:
    fs = log_of_three_segments()
    put(fs, path(0, ".log.swap"), COMPACT)
    fs.rename(path(0, ".log"), path(0, ".log.deleted"))
    fs.rename(path(2, ".log"), path(2, ".log.deleted"))
    _, log = open_one(fs, COMPACTED)
    assert values_of(log) == COMPACTED_VALUES


def test_stage_5_some_of_the_output_renamed_back() -> None:
    fs = log_of_three_segments()
    for base_offset in (0, 2):
        for suffix in (".log", ".index", ".timeindex"):
            fs.remove(path(base_offset, suffix))
    put(fs, path(0, ".log"), COMPACT)
    put(fs, path(0, ".index.swap"), b"")
    put(fs, path(0, ".timeindex.swap"), b"")
    _, log = open_one(fs, COMPACTED)
    assert values_of(log) == COMPACTED_VALUES
    assert [record.offset for record in read_all(log, 2)] == [3, 4, 5]


def test_damaged_output_removes_no_original() -> None:
    fs = log_of_three_segments()
    put(fs, path(0, ".log.swap"), COMPACT[:-1] + b"\xff")
    with pytest.raises(CorruptLogError, match=r"\.log\.swap"):
        open_one(fs, COMPACTED)
    assert path(0, ".log") in fs.files()
    assert path(2, ".log") in fs.files()


# --- indexes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("base_offset", [0, 2, 4])
def test_a_missing_index_is_made_anew_after_a_clean_stop(suffix: str, base_offset: int) -> None:
    fs = log_of_three_segments()
    original = fs.files()[path(base_offset, suffix)]
    fs.remove(path(base_offset, suffix))
    manager, log = open_one(fs, COMPACTED)
    assert values_of(log) == VALUES
    manager.close()
    assert fs.files()[path(base_offset, suffix)] == original


def test_a_missing_index_never_cuts_a_damaged_segment() -> None:
    fs = log_of_three_segments()
    fs.remove(path(2, ".index"))
    fs.overwrite(path(2, ".log"), fs.files()[path(2, ".log")][:-1] + b"\xff")
    with pytest.raises(CorruptLogError):
        open_one(fs, COMPACTED)


def test_an_index_that_was_made_large_beforehand_is_made_anew_after_a_kill() -> None:
    # As Kafka leaves the active segment's: ten megabytes, zeros behind the entries.
    fs = log_of_three_segments(clean=False)
    for suffix in (".index", ".timeindex"):
        put(fs, path(4, suffix), bytes(1024))
    manager, log = open_one(fs, COMPACTED)
    assert values_of(log) == VALUES
    manager.close()
    assert len(fs.files()[path(4, ".index")]) == 8


# --- what must not be guessed --------------------------------------------------------------------


def test_synced_data_that_is_missing_closes_the_partition() -> None:
    for missing in (1, SIZE, 2 * SIZE):
        fs = log_of_three_segments()
        data = fs.files()[path(4, ".log")]
        fs.overwrite(path(4, ".log"), data[:-missing])
        with pytest.raises(CorruptLogError):
            open_one(fs, COMPACTED)
    fs = log_of_three_segments()
    for base_offset in (0, 2, 4):
        fs.remove(path(base_offset, ".log"))
    with pytest.raises(CorruptLogError, match="below 6 was synced"):
        open_one(fs, COMPACTED)


def test_unreadable_metadata_closes_the_partition() -> None:
    for name in ("leader-epoch-checkpoint", "partition.metadata"):
        fs = log_of_three_segments()
        fs.overwrite(f"{DIRECTORY}/{name}", b"garbage")
        with pytest.raises(CorruptFileError, match=name):
            open_one(fs, COMPACTED)


def test_an_empty_epoch_file_is_made_anew_from_the_batches() -> None:
    """Kafka makes it so, and writes it later."""
    fs = log_of_three_segments()
    fs.overwrite(f"{DIRECTORY}/leader-epoch-checkpoint", b"")
    _, log = open_one(fs, COMPACTED)
    assert log.leader_epochs.entries == ((0, 0),)


def test_damaged_snapshots_are_passed_over() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    for sequence, value in enumerate(VALUES):
        append(log, batch(value, producer_id=1, producer_epoch=0, sequence=sequence))
    state = dict(log.producers.entries)
    manager.close()
    snapshots = [name for name in fs.files() if name.endswith(".snapshot")]
    assert len(snapshots) == 3
    for count in range(1, 4):
        damaged = fs.after_kill()
        for name in snapshots[-count:]:
            damaged.overwrite(name, b"damaged")
        _, log = open_one(damaged, CONFIG)
        assert dict(log.producers.entries) == state


def test_records_of_several_epochs_deleted_beyond_what_the_checkpoint_calls_synced() -> None:
    """The epochs on disk begin behind the recovery point then, and the batches between are none of
    theirs."""
    fs = MemoryFileSystem()
    manager, log = open_one(fs)
    for epoch in (1, 1, 2):
        log.append(batch(), leader_epoch=epoch, now_ms=NOW_MS)
    log.flush()
    log.advance_high_watermark(3)
    manager.write_checkpoints()
    log.append(batch(), leader_epoch=2, now_ms=NOW_MS)
    log.flush()
    log.advance_high_watermark(4)
    run_inline(delete_records(manager, [(log, 4)]))
    log.flush()
    assert log.leader_epochs.entries == ((2, 4),)
    _, found = open_one(fs.after_kill())
    assert (found.log_start_offset, found.log_end_offset) == (4, 4)
    assert found.leader_epochs.entries == ()
