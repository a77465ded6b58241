"""A crash after every file operation of compaction, and of every rename of it (reliability row 5).

Whenever the crash comes, the log holds each key's latest value, nothing but what was written, the
markers of all transactions whose records it holds, and each producer's last sequence. There is one
copy of everything. Recovering twice is recovering once, and the next compaction comes to the same
end.
"""

from collections.abc import Callable
from functools import cache

import pytest

from klamm.log.config import LogConfig
from klamm.log.manager import LogManager
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.partition_log import PartitionLog
from klamm.log.tests.checking import KnownPartitions
from klamm.log.tests.checking import check as check_offline
from klamm.log.tests.compaction import (
    CONFIG,
    batches_of,
    committed_records,
    compact,
    end_transaction,
    records_of,
    settle,
    write,
)
from klamm.log.tests.crashes import crashed_disks, every_stop, found_after
from klamm.log.tests.support import NOW_MS, ROOT, open_one, without_boot

LATER_MS = NOW_MS + 10_000


class Written:
    """What was written, as somebody remembers it who only watched."""

    def __init__(self, log: PartitionLog) -> None:
        self.end_offset = log.log_end_offset
        self.records = {offset: (key, value) for offset, key, value in records_of(log)}
        committed = committed_records(log)
        self.latest = {key: (offset, value) for offset, key, value in committed}
        self.committed = {offset for offset, _, _ in committed}
        # Offset of each batch of a transaction → offset of its marker.
        self.marker_of: dict[int, int] = {}
        pending: dict[int, list[int]] = {}
        for batch in batches_of(log):
            header = batch.header
            if header.is_control:
                for offset in pending.pop(header.producer_id, []):
                    self.marker_of[offset] = header.base_offset
            elif header.is_transactional:
                pending.setdefault(header.producer_id, []).append(header.base_offset)
        self.producers = {
            entry.producer_id: (entry.producer_epoch, entry.last_sequence)
            for entry in log.producers.entries.values()
        }


@cache
def prepared() -> tuple[MemoryFileSystem, Written]:
    """Six keys in ten segments, with tombstones, transactions, and producers that have stopped."""
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    log.producers.verification_required = False
    for number in range(4):
        write(log, (b"a", b"a%d" % number), (b"b", b"b%d" % number), codec=number)
        write(
            log,
            (b"c", b"c%d" % number),
            (b"a", b"x%d" % number),
            producer_id=5,
            epoch=0,
            sequence=2 * number,
            transactional=True,
        )
        write(log, (b"d%d" % number, b"d"), (b"e", None if number % 2 else b"e"))
        if number != 1:
            end_transaction(log, 5, 0, commit=number == 2)
        write(log, (b"a", b"y%d" % number), producer_id=6 + number, epoch=1, sequence=0)
        write(log, (b"a", b"z%d" % number))
    settle(log)
    written = Written(log)
    manager.close()
    return fs, written


def once(manager: LogManager, log: PartitionLog) -> None:
    compact(manager)


def twice_in_rounds(manager: LogManager, log: PartitionLog) -> None:
    """Several rounds, another compaction that drops tombstones and markers, and the removal."""
    compact(manager, dedupe_buffer_size=900)
    log.cleaner_offset = log.segments[2].base_offset
    manager.write_checkpoints()
    compact(manager, LATER_MS)
    log.cleaner_offset = 0
    compact(manager, 2 * LATER_MS)
    remove = manager.environment.deletions.all()
    remove()
    log.flush()


def files_of_compaction(fs: MemoryFileSystem) -> list[str]:
    return [name for name in fs.files() if name.endswith((".cleaned", ".swap", ".deleted"))]


def check_content(log: PartitionLog, written: Written, *, tombstones_may_go: bool) -> None:
    log.advance_high_watermark(log.log_end_offset)
    assert (log.log_start_offset, log.log_end_offset) == (0, written.end_offset)
    batches = batches_of(log)
    last_offset = -1
    for header, _ in batches:
        assert header.base_offset > last_offset
        last_offset = header.last_offset
    for offset, key, value in records_of(log):
        assert written.records[offset] == (key, value)
    committed = committed_records(log)
    assert {offset for offset, _, _ in committed} <= written.committed
    found = {key: (offset, value) for offset, key, value in committed}
    for key, latest in written.latest.items():
        assert found.get(key) == latest or (tombstones_may_go and latest[1] is None)
    present = {header.base_offset for header, _ in batches}
    for header, _ in batches:
        if header.is_transactional and not header.is_control:
            assert written.marker_of[header.base_offset] in present
    known = log.producers.entries
    for producer_id, (epoch, last_sequence) in written.producers.items():
        entry = known[producer_id]
        assert (entry.producer_epoch, entry.last_sequence) == (epoch, last_sequence)
    assert log.last_stable_offset == log.log_end_offset


def check(fs: MemoryFileSystem, written: Written, *, tombstones_may_go: bool) -> None:
    manager, log = open_one(fs, CONFIG)
    check_content(log, written, tombstones_may_go=tombstones_may_go)
    assert not files_of_compaction(fs)
    log.flush()
    manager.write_checkpoints()
    files = without_boot(fs)
    again = fs.after_crash()
    manager, log = open_one(again, CONFIG)
    log.advance_high_watermark(log.log_end_offset)
    log.flush()
    manager.write_checkpoints()
    assert without_boot(again) == files


def test_every_key_keeps_its_latest_value_wherever_compaction_stops() -> None:
    fs, written = prepared()
    count = 0
    for stopped in crashed_disks(fs, CONFIG, once):
        count += 1
        for found in found_after(stopped):
            check(found, written, tombstones_may_go=False)
    assert count > 100


def test_rounds_tombstones_and_markers() -> None:
    fs, written = prepared()
    for number, stopped in enumerate(crashed_disks(fs, CONFIG, twice_in_rounds)):
        # Of the long way, each stop is looked at in one of the ways in which it may end.
        found = list(found_after(stopped))[number % 5]
        check(found, written, tombstones_may_go=True)


def test_the_next_compaction_comes_to_the_same_end() -> None:
    fs, _ = prepared()
    whole = fs.after_kill()
    manager, log = open_one(whole, CONFIG)
    compact(manager)
    expected = records_of(log)
    for stopped in crashed_disks(fs, CONFIG, once):
        manager, log = open_one(stopped.after_crash(), CONFIG)
        log.advance_high_watermark(log.log_end_offset)
        log.flush()
        compact(manager)
        assert records_of(log) == expected


def test_a_crash_while_recovering_from_a_crash() -> None:
    fs, written = prepared()
    for stopped in list(crashed_disks(fs, CONFIG, once))[::9]:
        for stop in every_stop():
            found = stopped.after_kill()
            with stop.on(found):
                open_one(found, CONFIG)[1].flush()
            _, log = open_one(found.after_crash(), CONFIG)
            check_content(log, written, tombstones_may_go=False)


def test_producers_are_known_without_any_snapshot() -> None:
    fs, written = prepared()
    compacted = fs.after_kill()
    manager, log = open_one(compacted, CONFIG)
    twice_in_rounds(manager, log)
    for name in [name for name in compacted.files() if name.endswith(".snapshot")]:
        compacted.remove(name)
    _, log = open_one(compacted.after_kill(), CONFIG)
    check_content(log, written, tombstones_may_go=True)


def test_a_log_that_is_not_compacted_any_more_takes_no_gap_for_damage() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    for number in range(20):
        write(log, (b"k%d" % (number % 3), b"%d" % number))
    settle(log)
    compact(manager)
    expected = records_of(log)
    manager.abandon()
    # Even when the checkpoints of the last seconds are lost.
    for name in ("recovery-point-offset-checkpoint", "cleaner-offset-checkpoint"):
        fs.overwrite(f"{ROOT}/{name}", b"0\n0\n")
    _, log = open_one(fs.after_kill(), LogConfig())
    assert records_of(log) == expected
    assert log.log_end_offset == 20


@pytest.mark.parametrize("act", [once, twice_in_rounds])
def test_the_offline_checker_finds_nothing_after_a_recovery(
    act: Callable[[LogManager, PartitionLog], None],
) -> None:
    fs, _ = prepared()
    for number, stopped in enumerate(crashed_disks(fs, CONFIG, act)):
        found = stopped.after_kill() if number % 2 else stopped.after_crash()
        manager, log = open_one(found, CONFIG)
        log.advance_high_watermark(log.log_end_offset)
        manager.close()
        known = KnownPartitions(manager.directory_id, compacts=True)
        assert check_offline(found, known) == []
