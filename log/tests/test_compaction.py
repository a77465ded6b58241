"""Compaction of a log: what stays, what goes, and when."""

from dataclasses import replace

import pytest

from klamm.log.cleaner.pace import Pace
from klamm.log.config import INT64_MAX
from klamm.log.errors import LogError
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.partition_log import PartitionLog
from klamm.log.tests.compaction import (
    CONFIG,
    Batch,
    batches_of,
    committed_records,
    compact,
    end_transaction,
    records_of,
    settle,
    values,
    write,
)
from klamm.log.tests.support import NOW_MS, open_one
from klamm.wire.records.codecs import Codec

DAY_MS = 24 * 60 * 60 * 1000


def batch_at(log: PartitionLog, offset: int) -> Batch:
    (found,) = [
        b for b in batches_of(log) if b.header.base_offset <= offset <= b.header.last_offset
    ]
    return found


# --- values --------------------------------------------------------------------------------------


def test_the_last_value_of_each_key_stays_where_it_was() -> None:
    manager, log = open_one(MemoryFileSystem(), CONFIG)
    for index in range(20):
        write(log, (b"k%d" % (index % 3), b"%d" % index))
    settle(log)
    stats = compact(manager)
    assert stats is not None
    assert (stats.records_read, stats.records_written, stats.keys) == (20, 3, 3)
    assert values(log) == [(17, b"17"), (18, b"18"), (19, b"19")]
    assert (log.log_start_offset, log.log_end_offset) == (0, 20)
    # A reader that was anywhere goes on with what is left.
    assert log.read(3, 10_000).slice.size > 0


def test_what_is_not_superseded_is_copied_byte_by_byte() -> None:
    manager, log = open_one(MemoryFileSystem(), CONFIG)
    for index in range(8):
        write(log, (b"k%d" % index, b"%d" % index), codec=index % 5)
    settle(log)
    before = [segment.file().pread(segment.size, 0) for segment in log.segments]
    compact(manager)
    after = [segment.file().pread(segment.size, 0) for segment in log.segments]
    assert b"".join(after) == b"".join(before)


@pytest.mark.parametrize("codec", list(Codec))
def test_a_batch_that_loses_records_keeps_its_offsets_sequences_and_codec(codec: int) -> None:
    manager, log = open_one(MemoryFileSystem(), CONFIG)
    fields = {"producer_id": 7, "epoch": 3, "codec": int(codec), "timestamp": NOW_MS - 50}
    write(log, (b"a", b"1"), (b"b", b"2"), (b"c", b"3"), (b"d", b"4"), sequence=10, **fields)
    write(log, (b"a", b"5"), (b"d", b"6"), sequence=14, **fields)
    settle(log)
    compact(manager)
    first, _ = batches_of(log)[:2]
    header = first.header
    assert (header.base_offset, header.last_offset, header.record_count) == (0, 3, 2)
    assert (header.base_sequence, header.last_sequence) == (10, 13)
    assert (header.codec, header.producer_id, header.producer_epoch) == (codec, 7, 3)
    assert header.max_timestamp == NOW_MS - 50 + 2
    assert [(r.offset, r.key, r.timestamp, r.sequence) for r in first.records] == [
        (1, b"b", NOW_MS - 49, 11),
        (2, b"c", NOW_MS - 48, 12),
    ]


def test_log_append_time_stays() -> None:
    config = replace(CONFIG, message_timestamp_type="LogAppendTime")
    manager, log = open_one(MemoryFileSystem(), config)
    write(log, (b"a", b"1"), (b"b", None), now_ms=NOW_MS + 7)
    write(log, (b"a", b"2"), now_ms=NOW_MS + 9)
    settle(log)
    compact(manager)
    first = batches_of(log)[0]
    assert first.header.has_delete_horizon
    assert [(r.key, r.timestamp) for r in first.records] == [(b"b", NOW_MS + 7)]


def test_long_keys_and_short_ones_do_not_collide() -> None:
    manager, log = open_one(MemoryFileSystem(), replace(CONFIG, segment_bytes=4000))
    keys = [b"x" * size for size in (0, 1, 22, 23, 24, 25, 200)]
    for number in range(3):
        for key in keys:
            write(log, (key, b"%d" % number))
    settle(log)
    compact(manager)
    assert records_of(log) == [(14 + at, key, b"2") for at, key in enumerate(keys)]


def test_records_without_a_key_go() -> None:
    # They come from a time when the topic was not compacted.
    fs = MemoryFileSystem()
    manager, log = open_one(fs, replace(CONFIG, cleanup_policy=frozenset({"delete"})))
    write(log, (None, b"1"), (b"a", b"2"), (None, b"3"))
    write(log, (None, b"4"))
    settle(log)
    log.update_config(CONFIG)
    stats = compact(manager)
    assert stats is not None
    assert stats.keyless_records == 3
    assert values(log) == [(1, b"2")]


def test_headers_and_large_records_survive() -> None:
    manager, log = open_one(MemoryFileSystem(), replace(CONFIG, segment_bytes=10**6))
    large = b"v" * 20_000
    write(log, *((b"k%d" % index, large) for index in range(20)))
    write(log, *((b"k%d" % index, b"new") for index in range(0, 20, 2)))
    settle(log)
    compact(manager)
    assert records_of(log) == [
        *((index, b"k%d" % index, large) for index in range(1, 20, 2)),
        *((20 + index // 2, b"k%d" % index, b"new") for index in range(0, 20, 2)),
    ]


def test_another_compaction_goes_on_where_the_last_one_ended() -> None:
    manager, log = open_one(MemoryFileSystem(), CONFIG)
    for number in range(4):
        for key in range(6):
            write(log, (b"k%d" % key, b"%d" % number))
        settle(log)
        stats = compact(manager)
        assert stats is not None
        assert log.cleaner_offset == log.log_end_offset
        assert stats.map_bytes_read < 600
    assert values(log) == [(18 + key, b"3") for key in range(6)]
    assert compact(manager) is None


# --- segments ------------------------------------------------------------------------------------


def test_small_segments_are_put_together() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    for index in range(30):
        write(log, (b"k%d" % (index % 4), b"%d" % index))
        log.roll(NOW_MS)
    settle(log, rolls=False)
    assert len(log.segments) == 31
    compact(manager)
    first = len(log.segments)
    assert first < 31
    log.cleaner_offset = None
    compact(manager)
    assert len(log.segments) < first
    # Each ends where the next one begins.
    for index in range(len(log.segments) - 1):
        assert log.segments[index].next_offset() == log.segments[index + 1].base_offset
    snapshots = sorted(name[-29:-9] for name in fs.files() if name.endswith(".snapshot"))
    assert set(snapshots) <= {f"{base:020d}" for base in log.segments.base_offsets}


def test_the_indexes_of_what_was_written_are_right() -> None:
    manager, log = open_one(MemoryFileSystem(), replace(CONFIG, segment_bytes=5000))
    for index in range(60):
        write(log, (b"k%d" % (index % 40), b"%d" % index), timestamp=NOW_MS + index)
    settle(log)
    compact(manager)
    segment = log.segments.first
    batches = [b.header for b in batches_of(log) if b.header.last_offset < segment.next_offset()]
    entries = segment.offset_index.entries()
    assert [offset for offset, _ in entries] == [h.last_offset for h in batches[1:]]
    for header in batches:
        position = segment.position_of(header.base_offset)
        assert position is not None
        assert segment.header_at(position) == header
    assert segment.max_timestamp == NOW_MS + 59
    found = log.offset_for_timestamp(NOW_MS + 30)
    assert found is not None
    assert (found.offset, found.timestamp) == (30, NOW_MS + 30)


def test_files_of_the_originals_wait_for_their_removal() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, replace(CONFIG, file_delete_delay_ms=5000))
    deletions = manager.environment.deletions
    for index in range(20):
        write(log, (b"k", b"%d" % index))
    settle(log)
    read = log.read(0, 10_000)
    compact(manager)
    assert b"k" in read.slice.read()
    assert deletions.due(0) is None
    assert deletions.due(4999) is None
    assert [name for name in fs.files() if name.endswith(".deleted")]
    assert not [name for name in fs.files() if name.endswith((".cleaned", ".swap"))]
    remove = deletions.due(5000)
    assert remove is not None
    remove()
    assert not [name for name in fs.files() if name.endswith(".deleted")]


def test_all_that_is_read_and_written_counts_for_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[int] = []
    monkeypatch.setattr(Pace, "moved", lambda self, byte_count: moved.append(byte_count))
    manager, log = open_one(MemoryFileSystem(), CONFIG)
    for index in range(20):
        write(log, (b"k%d" % (index % 15), b"%d" % index))
    settle(log)
    stats = compact(manager)
    assert stats is not None
    assert stats.bytes_written > 0
    assert sum(moved) == stats.map_bytes_read + stats.bytes_read + stats.bytes_written


def test_a_map_that_is_too_small_takes_several_rounds() -> None:
    def run(dedupe_buffer_size: int) -> list[tuple[int, bytes | None]]:
        manager, log = open_one(MemoryFileSystem(), CONFIG)
        for index in range(60):
            write(log, (b"k%02d" % (index * 7 % 25), b"%d" % index), (b"x%d" % (index % 5), b"x"))
        settle(log)
        compact(manager, dedupe_buffer_size=dedupe_buffer_size)
        assert log.cleaner_offset == log.segments.active.base_offset
        return values(log)

    assert run(2000) == run(10**6)
    assert run(1) == run(10**6)


# --- tombstones ----------------------------------------------------------------------------------


def test_a_tombstone_stays_until_its_horizon() -> None:
    manager, log = open_one(MemoryFileSystem(), CONFIG)
    write(log, (b"a", b"1"), (b"b", b"2"))
    write(log, (b"a", None), (b"c", b"3"), timestamp=NOW_MS - 5)
    settle(log)
    compact(manager, NOW_MS)
    found = batch_at(log, 2)
    assert values(log) == [(1, b"2"), (2, None), (3, b"3")]
    assert found.header.has_delete_horizon
    assert found.header.base_timestamp == NOW_MS + 1000
    assert [r.timestamp for r in found.records] == [NOW_MS - 5, NOW_MS - 4]
    assert found.header.max_timestamp == NOW_MS - 4

    def again(now_ms: int) -> None:
        write(log, (b"z", b"z"))
        settle(log)
        assert compact(manager, now_ms) is not None

    again(NOW_MS + 999)
    assert (2, None) in values(log)
    # The horizon is not moved.
    assert batch_at(log, 2).header.base_timestamp == NOW_MS + 1000
    again(NOW_MS + 1000)
    assert (2, None) not in values(log)
    assert (3, b"3") in values(log)


def test_a_tombstone_can_be_kept_for_ever() -> None:
    config = replace(CONFIG, delete_retention_ms=INT64_MAX)
    manager, log = open_one(MemoryFileSystem(), config)
    write(log, (b"a", None), (b"b", b"2"), timestamp=NOW_MS - 5)
    for turn in range(3):
        write(log, (b"z", b"z"))
        settle(log)
        assert compact(manager, NOW_MS + turn) is not None
        found = batch_at(log, 0)
        assert found.header.base_timestamp == INT64_MAX
        assert [r.timestamp for r in found.records] == [NOW_MS - 5, NOW_MS - 4]
    assert (0, None) in values(log)


def test_a_value_after_the_tombstone_removes_it_at_once() -> None:
    manager, log = open_one(MemoryFileSystem(), CONFIG)
    write(log, (b"a", None))
    write(log, (b"a", b"2"))
    settle(log)
    compact(manager)
    assert values(log) == [(1, b"2")]


def test_a_tombstone_in_the_dirty_part_removes_the_value_in_the_clean_one() -> None:
    manager, log = open_one(MemoryFileSystem(), CONFIG)
    write(log, (b"a", b"1"))
    settle(log)
    compact(manager)
    write(log, (b"a", None))
    settle(log)
    compact(manager)
    assert values(log) == [(1, None)]


# --- producers -----------------------------------------------------------------------------------


def test_an_empty_batch_holds_the_last_sequence_of_a_producer() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    write(log, (b"a", b"1"), (b"b", b"1"), producer_id=7, epoch=2, sequence=0)
    write(log, (b"a", b"2"), (b"b", b"2"), producer_id=7, epoch=2, sequence=2)
    write(log, (b"a", b"3"), (b"b", b"3"))
    settle(log)
    compact(manager)
    first = batches_of(log)[0]
    assert (first.header.base_offset, first.header.last_offset) == (2, 3)
    assert (first.header.record_count, first.header.base_timestamp) == (0, -1)
    assert (first.header.last_sequence, first.header.max_timestamp) == (3, NOW_MS + 1)
    # Without any snapshot the log still knows it.
    for name in [name for name in fs.files() if name.endswith(".snapshot")]:
        fs.remove(name)
    manager, log = open_one(fs.after_kill(), CONFIG)
    entry = log.producers.entries[7]
    assert (entry.producer_epoch, entry.last_sequence, entry.last_data_offset) == (2, 3, 3)
    with pytest.raises(LogError):
        write(log, (b"a", b"4"), producer_id=7, epoch=2, sequence=5)
    write(log, (b"a", b"4"), producer_id=7, epoch=2, sequence=4)
    settle(log)
    compact(manager)
    assert [b.header.base_offset for b in batches_of(log)][:1] != [2]


def test_the_end_of_each_segment_is_kept() -> None:
    manager, log = open_one(MemoryFileSystem(), CONFIG)
    for index in range(12):
        write(log, (b"k", b"%d" % index))
    settle(log)
    write(log, (b"k", b"last"))
    compact(manager)
    headers = [b.header for b in batches_of(log)]
    assert headers[-2].next_offset == headers[-1].base_offset == 12
    assert values(log) == [(11, b"11"), (12, b"last")]
    assert log.read(5, 10_000).slice.size > 0


# --- transactions --------------------------------------------------------------------------------


def transaction(
    log: PartitionLog, producer_id: int, sequence: int, *keys: bytes, commit: bool
) -> int:
    """Write one transaction; return the offset of its marker."""
    log.producers.verification_required = False
    write(
        log,
        *((key, b"t%d" % producer_id) for key in keys),
        producer_id=producer_id,
        epoch=0,
        sequence=sequence,
        transactional=True,
    )
    return end_transaction(log, producer_id, 0, commit=commit)


def test_aborted_records_go_at_once_whatever_their_keys() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    write(log, (b"a", b"1"), (b"b", b"1"))
    aborted = transaction(log, 5, 0, b"a", b"c", commit=False)
    committed = transaction(log, 6, 0, b"b", b"d", commit=True)
    transaction(log, 5, 2, b"e", commit=True)
    settle(log)
    expected = [entry for entry in committed_records(log) if entry[0] != 1]
    compact(manager)
    assert committed_records(log) == records_of(log) == expected
    offsets = [b.header.base_offset for b in batches_of(log)]
    assert aborted in offsets
    assert committed in offsets
    _, log = open_one(fs.after_kill(), CONFIG)
    log.advance_high_watermark(log.log_end_offset)
    assert committed_records(log) == expected


def test_a_marker_goes_after_its_records_and_its_horizon() -> None:
    manager, log = open_one(MemoryFileSystem(), CONFIG)
    committed = transaction(log, 5, 0, b"a", commit=True)
    aborted = transaction(log, 6, 0, b"a", commit=False)
    # Other batches of the same producers, so that these are not their last ones.
    for producer_id in (5, 6):
        write(log, (b"p%d" % producer_id, b"1"), producer_id=producer_id, epoch=0, sequence=1)

    def again(now_ms: int) -> set[int]:
        write(log, (b"a", b"1"))
        settle(log)
        assert compact(manager, now_ms) is not None
        return {b.header.base_offset for b in batches_of(log) if b.header.is_control}

    # The value of the committed one goes, and is met for the last time. So is the aborted one.
    assert again(NOW_MS) == {committed, aborted}
    assert not batch_at(log, committed).header.has_delete_horizon
    # Now nothing of them is met any more.
    assert again(NOW_MS + 10) == {committed, aborted}
    assert batch_at(log, committed).header.base_timestamp == NOW_MS + 1010
    assert batch_at(log, aborted).header.base_timestamp == NOW_MS + 1010
    assert again(NOW_MS + 1009) == {committed, aborted}
    assert again(NOW_MS + 1010) == set()
    assert log.aborted_transactions(0, log.log_end_offset) == []


def test_a_marker_that_holds_a_producers_epoch_is_kept() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    marker = end_transaction(log, 5, 4, commit=False)
    for number in range(4):
        write(log, (b"a", b"%d" % number))
        settle(log)
        compact(manager, NOW_MS + number * DAY_MS)
    assert batch_at(log, marker).records
    for name in [name for name in fs.files() if name.endswith(".snapshot")]:
        fs.remove(name)
    manager, log = open_one(fs.after_kill(), CONFIG)
    assert log.producers.entries[5].producer_epoch == 4


def test_a_transaction_across_segments_whose_marker_is_in_the_active_one() -> None:
    manager, log = open_one(MemoryFileSystem(), CONFIG)
    log.producers.verification_required = False
    fields = {"producer_id": 5, "epoch": 0}
    write(log, (b"a", b"0"))
    write(log, (b"a", b"1"), sequence=0, transactional=True, **fields)
    log.roll(NOW_MS)
    write(log, (b"b", b"2"), sequence=1, transactional=True, **fields)
    settle(log)
    # Nothing above the last stable offset is compacted.
    assert compact(manager) is None
    end_transaction(log, 5, 0, commit=False)
    settle(log, rolls=False)
    compact(manager)
    assert committed_records(log) == [(0, b"a", b"0")]
    assert records_of(log) == [(0, b"a", b"0")]


def test_nothing_at_or_above_the_last_stable_offset_is_touched() -> None:
    manager, log = open_one(MemoryFileSystem(), CONFIG)
    log.producers.verification_required = False
    write(log, (b"a", b"0"))
    write(log, (b"a", b"1"))
    log.roll(NOW_MS)
    write(log, (b"a", b"2"), producer_id=5, epoch=0, sequence=0, transactional=True)
    log.roll(NOW_MS)
    write(log, (b"a", b"3"))
    settle(log)
    assert log.last_stable_offset == 2
    compact(manager)
    assert log.cleaner_offset == 2
    assert values(log) == [(1, b"1"), (2, b"2"), (3, b"3")]
