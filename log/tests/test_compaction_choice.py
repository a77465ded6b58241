"""Which log is compacted, and how far."""

from dataclasses import replace
from uuid import UUID

import pytest

from klamm.log.checkpoint import read_offsets
from klamm.log.cleaner.candidates import judge
from klamm.log.clock_jumps import PAUSE_MS
from klamm.log.config import INT64_MAX
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.retention import Retention
from klamm.log.tests.compaction import (
    CONFIG,
    cleaner,
    compact,
    settle,
    values,
    write,
)
from klamm.log.tests.support import NOW_MS, ROOT, TOPIC, open_one
from klamm.log.work import run_inline


def test_only_compacted_logs_are_chosen() -> None:
    for policy, is_chosen in (
        ({"delete"}, False),
        ({"compact"}, True),
        ({"compact", "delete"}, True),
        (set(), False),
    ):
        config = replace(CONFIG, cleanup_policy=frozenset({"delete"}))
        manager, log = open_one(MemoryFileSystem(), config)
        write(log, (b"a", b"1"))
        settle(log)
        log.update_config(replace(CONFIG, cleanup_policy=frozenset(policy)))
        assert (cleaner(manager).choose(manager, NOW_MS) is not None) == is_chosen


def test_the_share_of_dirty_bytes_decides() -> None:
    config = replace(CONFIG, min_cleanable_dirty_ratio=0.5)
    manager, log = open_one(MemoryFileSystem(), config)
    for index in range(4):
        write(log, (b"k%d" % index, b"1"))
    settle(log)
    assert compact(manager) is not None
    for index in range(4):
        write(log, (b"k%d" % index, b"1"))
    settle(log)
    candidate = judge(log, NOW_MS)
    assert candidate.clean_bytes == candidate.cleanable_bytes
    assert candidate.cleanable_ratio == 0.5
    # It has to be more than that.
    assert compact(manager) is None
    log.update_config(replace(config, min_cleanable_dirty_ratio=0.49))
    assert compact(manager) is not None


def test_the_dirtiest_log_is_first() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    other = manager.open_partition("u", 0, UUID(int=7), CONFIG, NOW_MS)
    for each in (log, other):
        for _ in range(3):
            write(each, (b"k", b"1"))
        settle(each)
        assert compact(manager) is not None
    write(log, (b"k", b"1"))
    settle(log)
    for _ in range(2):
        write(other, (b"k", b"1"))
    settle(other)
    candidate = cleaner(manager).choose(manager, NOW_MS)
    assert candidate is not None
    assert candidate.log is other


def test_young_segments_wait_for_their_time() -> None:
    config = replace(CONFIG, min_compaction_lag_ms=5000)
    manager, log = open_one(MemoryFileSystem(), config)
    for number in range(3):
        write(log, (b"k", b"%d" % number), timestamp=NOW_MS + 1000 * number)
        log.roll(NOW_MS)
    settle(log)
    assert compact(manager, NOW_MS + 4999) is None
    assert judge(log, NOW_MS + 5000).first_uncleanable_offset == 1
    assert judge(log, NOW_MS + 6000).first_uncleanable_offset == 2
    assert judge(log, NOW_MS + 7000).first_uncleanable_offset == 3


def test_old_records_are_compacted_however_few_they_are() -> None:
    config = replace(CONFIG, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=5000)
    manager, log = open_one(MemoryFileSystem(), config)
    write(log, (b"k", b"1"))
    settle(log)
    assert compact(manager, NOW_MS + 5000) is None
    assert compact(manager, NOW_MS + 5001) is not None
    log.update_config(replace(config, max_compaction_lag_ms=INT64_MAX))
    write(log, (b"k", b"2"))
    settle(log)
    assert compact(manager, 2**62) is None


def test_the_youngest_record_of_a_segment_holds_it_back() -> None:
    config = replace(CONFIG, min_compaction_lag_ms=5000)
    manager, log = open_one(MemoryFileSystem(), config)
    write(log, (b"k", b"1"), timestamp=NOW_MS - 10_000)
    write(log, (b"k", b"2"), timestamp=NOW_MS)
    log.roll(NOW_MS)
    settle(log)
    assert compact(manager, NOW_MS + 4999) is None
    assert compact(manager, NOW_MS + 5000) is not None


def test_the_oldest_record_of_a_segment_makes_it_due() -> None:
    config = replace(CONFIG, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=5000)
    manager, log = open_one(MemoryFileSystem(), config)
    write(log, (b"k", b"1"), timestamp=NOW_MS)
    write(log, (b"k", b"2"), timestamp=NOW_MS + 4000)
    settle(log)
    assert compact(manager, NOW_MS + 5001) is not None


@pytest.mark.parametrize("timestamp", [-1, 0])
def test_records_without_a_time_are_not_too_old(timestamp: int) -> None:
    config = replace(CONFIG, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=5000)
    manager, log = open_one(MemoryFileSystem(), config)
    write(log, (b"k", b"1"), timestamp=timestamp)
    settle(log)
    assert compact(manager, NOW_MS) is None


def test_what_a_crash_could_lose_supersedes_nothing() -> None:
    manager, log = open_one(MemoryFileSystem(), CONFIG)
    write(log, (b"k", b"1"))
    settle(log)
    write(log, (b"k", b"2"))
    log.roll(NOW_MS)
    log.advance_high_watermark(2)
    candidate = judge(log, NOW_MS)
    assert candidate.first_uncleanable_offset == 1
    log.flush()
    assert judge(log, NOW_MS).first_uncleanable_offset == 2
    assert compact(manager) is not None


@pytest.mark.parametrize("checkpoint", [None, 99])
def test_a_checkpoint_that_can_not_be_right_means_that_all_is_dirty(checkpoint: int | None) -> None:
    _, log = open_one(MemoryFileSystem(), CONFIG)
    write(log, (b"k", b"1"))
    settle(log)
    log.cleaner_offset = checkpoint
    assert judge(log, NOW_MS).first_dirty_offset == 0


def test_the_clean_part_begins_with_the_log() -> None:
    manager, log = open_one(MemoryFileSystem(), CONFIG)
    for number in range(10):
        write(log, (b"k%d" % number, b"1"))
    settle(log)
    compact(manager)
    log.cleaner_offset = 3
    log.increment_log_start_offset(5)
    assert judge(log, NOW_MS).first_dirty_offset == 5


def test_the_checkpoint_outlives_a_restart() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    write(log, (b"k", b"1"))
    settle(log)
    compact(manager)
    path = f"{ROOT}/cleaner-offset-checkpoint"
    assert read_offsets(fs.after_crash(), path) == {(TOPIC, 0): 1}
    _, log = open_one(fs.after_crash(), CONFIG)
    assert log.cleaner_offset == 1
    log.truncate_to(0, NOW_MS)
    assert log.cleaner_offset == 0


def test_compacted_and_deleted() -> None:
    config = replace(CONFIG, cleanup_policy=frozenset({"compact", "delete"}), retention_ms=1000)
    manager, log = open_one(MemoryFileSystem(), config)
    write(log, (b"a", b"1"), timestamp=NOW_MS)
    write(log, (b"a", b"2"), timestamp=NOW_MS + 500)
    write(log, (b"b", b"3"), timestamp=NOW_MS + 500)
    settle(log)
    compact(manager)
    assert values(log) == [(1, b"2"), (2, b"3")]
    write(log, (b"c", b"4"), timestamp=NOW_MS + 2000)
    settle(log)
    removed = run_inline(Retention(manager).delete_old_segments(log, NOW_MS + 1600))
    assert removed.segments == 1
    assert values(log) == [(3, b"4")]
    assert compact(manager) is not None


def test_compaction_pauses_after_a_jump_of_the_wall_clock() -> None:
    """Tombstones would go in a burst, and records be taken for old, because a clock was set."""
    manager, _ = open_one(MemoryFileSystem(), CONFIG)
    one = cleaner(manager)
    assert one.may_run(NOW_MS, 1000)
    assert one.may_run(NOW_MS + 15_000, 16_000)
    # A day ahead: that is believed after a while, and when it is set right, too.
    ahead_ms = NOW_MS + 86_400_000
    assert not one.may_run(ahead_ms, 30_000)
    assert not one.may_run(ahead_ms + PAUSE_MS - 1, 30_000 + PAUSE_MS - 1)
    assert one.may_run(ahead_ms + PAUSE_MS, 30_000 + PAUSE_MS)
    assert not one.may_run(NOW_MS + PAUSE_MS, 31_000 + PAUSE_MS)
    assert one.may_run(NOW_MS + 2 * PAUSE_MS, 31_000 + 2 * PAUSE_MS)
