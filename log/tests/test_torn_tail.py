"""Unsynced bytes that a crash tears or loses, at every byte (reliability row 2)."""

from klamm.log.config import LogConfig
from klamm.log.memory_fs import MemoryFileSystem, keep_names
from klamm.log.tests.support import (
    DIRECTORY,
    NOW_MS,
    append,
    batch,
    open_one,
    read_all,
    values_of,
)

CONFIG = LogConfig(index_interval_bytes=100)
LOG_PATH = f"{DIRECTORY}/00000000000000000000.log"
BATCH_SIZE = len(batch(b"0000"))


def written_log() -> MemoryFileSystem:
    """Three synced batches and three that are not."""
    fs = MemoryFileSystem()
    _, log = open_one(fs, CONFIG)
    for index in range(6):
        append(log, batch(b"%04d" % index))
        if index == 2:
            log.flush()
    return fs


def crash_with(fs: MemoryFileSystem, survivor: bytes) -> list[bytes | None]:
    """Crash so that the segment holds the given bytes; return what the log then holds."""
    crashed = fs.after_crash(
        lambda path, synced, current: survivor if path == LOG_PATH else synced, keep_names
    )
    _, log = open_one(crashed, CONFIG)
    values = values_of(log)
    assert log.log_end_offset == len(values)
    assert crashed.size(LOG_PATH) == len(values) * BATCH_SIZE
    assert append(log, batch(b"next")) == len(values)
    return values


def expected(size: int) -> list[bytes]:
    return [b"%04d" % index for index in range(size // BATCH_SIZE)]


def test_a_tail_torn_at_any_byte_is_cut_to_the_last_whole_batch() -> None:
    fs = written_log()
    current = fs.files()[LOG_PATH]
    for cut in range(3 * BATCH_SIZE, len(current) + 1):
        assert crash_with(fs, current[:cut]) == expected(cut)


def test_zeros_in_place_of_a_tail_are_cut() -> None:
    fs = written_log()
    current = fs.files()[LOG_PATH]
    for cut in range(3 * BATCH_SIZE, len(current)):
        survivor = current[:cut] + bytes(len(current) - cut)
        # A batch that ends in zeros is whole all the same.
        whole = cut
        while whole < len(current) and current[whole] == 0:
            whole += 1
        assert crash_with(fs, survivor) == expected(whole)


def test_a_hole_in_the_unsynced_part_ends_the_log_there() -> None:
    fs = written_log()
    current = fs.files()[LOG_PATH]
    for start in range(3 * BATCH_SIZE, 5 * BATCH_SIZE):
        hole = bytes(byte ^ 0xFF for byte in current[start : start + 16])
        survivor = current[:start] + hole + current[start + 16 :]
        assert crash_with(fs, survivor) == expected(start)


def test_the_end_of_a_segment_may_be_lost_while_the_next_one_is_kept() -> None:
    config = LogConfig(segment_bytes=3 * BATCH_SIZE)
    fs = MemoryFileSystem()
    _, log = open_one(fs, config)
    for index in range(7):
        append(log, batch(b"%04d" % index))
    assert len(log.segments) == 3
    for lost in range(3):
        crashed = fs.after_crash(
            lambda path, _, current, lost=lost: (  # type: ignore[misc]  # a default is a binding
                current[: (3 - lost) * BATCH_SIZE] if path == LOG_PATH else current
            ),
            keep_names,
        )
        _, log = open_one(crashed, config)
        assert values_of(log) == [b"%04d" % index for index in range(7 if lost == 0 else 3 - lost)]


def test_an_unsynced_snapshot_or_index_is_made_anew() -> None:
    config = LogConfig(segment_bytes=3 * BATCH_SIZE, index_interval_bytes=50)
    fs = MemoryFileSystem()
    _, log = open_one(fs, config)
    for sequence in range(9):
        record = batch(b"%04d" % sequence, producer_id=5, producer_epoch=0, sequence=sequence)
        append(log, record)
    state = dict(log.producers.entries)
    crashed = fs.after_crash(
        lambda path, synced, current: (
            current if path.endswith(".log") else max(synced, current[: len(current) // 2])
        ),
        keep_names,
    )
    _, recovered = open_one(crashed, config)
    assert dict(recovered.producers.entries) == state
    assert read_all(recovered) == read_all(log)
    for segment, original in zip(recovered.segments, log.segments, strict=True):
        assert segment.offset_index.entries() == original.offset_index.entries()


def test_a_snapshot_of_batches_that_were_lost_is_removed() -> None:
    fs = MemoryFileSystem()
    _, log = open_one(fs, CONFIG)
    append(log, batch(b"0000", producer_id=1, producer_epoch=0, sequence=0))
    log.flush()
    append(log, batch(b"0001", producer_id=2, producer_epoch=0, sequence=0))
    log.roll(NOW_MS)
    crashed = fs.after_crash(
        lambda path, synced, current: synced if path == LOG_PATH else current, keep_names
    )
    manager, log = open_one(crashed, CONFIG)
    assert set(log.producers.entries) == {1}
    # Another batch takes the place of the lost one; the snapshot must never speak for it, not
    # even when all newer ones are damaged.
    append(log, batch(b"0001", producer_id=3, producer_epoch=0, sequence=0))
    append(log, batch(b"0002"))
    log.roll(NOW_MS)
    append(log, batch(b"0003"))
    log.flush()
    manager.write_checkpoints()
    crashed.overwrite(f"{DIRECTORY}/00000000000000000003.snapshot", b"damaged")
    _, recovered = open_one(crashed.after_kill(), CONFIG)
    assert set(recovered.producers.entries) == {1, 3}


def test_a_snapshot_of_batches_that_were_truncated_is_removed() -> None:
    _, log = open_one(MemoryFileSystem(), CONFIG)
    append(log, batch(b"0000", producer_id=1, producer_epoch=0, sequence=0))
    append(log, batch(b"0001", producer_id=2, producer_epoch=0, sequence=0))
    log.roll(NOW_MS)
    log.truncate_to(1, NOW_MS)
    append(log, batch(b"0001", producer_id=3, producer_epoch=0, sequence=0))
    append(log, batch(b"0002"))
    append(log, batch(b"0003"))
    log.truncate_to(3, NOW_MS)
    assert set(log.producers.entries) == {1, 3}


def test_epochs_on_disk_may_be_older_than_a_truncation() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    for epoch in (0, 1):
        log.append(batch(b"%04d" % epoch), leader_epoch=epoch, now_ms=NOW_MS)
    manager.close()
    _, log = open_one(fs, CONFIG)
    log.truncate_to(0, NOW_MS)
    log.append(batch(b"new0", b"new1"), leader_epoch=1, now_ms=NOW_MS)
    assert log.leader_epochs.entries == ((1, 0),)
    _, recovered = open_one(fs.after_kill(), CONFIG)
    assert recovered.leader_epochs.entries == ((1, 0),)
