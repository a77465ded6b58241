"""A crash after every single file operation of a log's life (reliability rows 1, 2, 4, 8, 42).

A scenario runs on a disk that stops at the n-th operation, for n = 1, 2, 3 … until it comes to its
end. Each time the machine comes up again in several ways: with unsynced bytes lost, kept, torn or
zeroed, and with unsynced names lost, kept or half of them kept. Then must hold:

- every batch that was acknowledged as synced is there;
- what is there is a prefix of what was written: nothing half, nothing out of order;
- recovering again changes nothing, in no file;
- a crash during recovery, and a recovery after it, comes to the same records.
"""

from collections.abc import Callable
from functools import cache

import pytest

from klamm.log.append_origin import AppendOrigin
from klamm.log.config import LogConfig
from klamm.log.manager import LogManager
from klamm.log.memory_fs import (
    MemoryFileSystem,
    keep_bytes,
    keep_names,
    lose_bytes,
    lose_names,
    tear_bytes,
    zero_bytes,
)
from klamm.log.partition_log import PartitionLog
from klamm.log.tests import crashes
from klamm.log.tests.crashes import every_stop
from klamm.log.tests.support import (
    DIRECTORY,
    NOW_MS,
    TOPIC,
    append,
    batch,
    open_manager,
    open_one,
    open_partition,
    read_all,
    values_of,
)
from klamm.wire.records.control import build_end_transaction_marker

# Three or four batches fill a segment, and every second batch gets an index entry.
CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=100)
CRASHES = [
    *crashes.CRASHES,
    (keep_bytes, keep_names),
    (tear_bytes, keep_names),
    (zero_bytes, keep_names),
]


class Run:
    """What a scenario has written, and how much of it was acknowledged as synced."""

    def __init__(self, fs: MemoryFileSystem) -> None:
        self.fs = fs
        self.written: list[bytes] = []
        self.synced = 0
        self.is_deleted = False

    def append(self, log: PartitionLog, **fields: int) -> None:
        value = b"%04d" % len(self.written)
        # The write may be in the file when the crash comes before the append returns.
        self.written.append(value)
        append(log, batch(value, **fields))  # type: ignore[arg-type]  # only integers are passed

    def append_idempotent(self, log: PartitionLog) -> None:
        known = log.producers.entries.get(7)
        sequence = 0 if known is None else known.last_sequence + 1
        self.append(log, producer_id=7, producer_epoch=0, sequence=sequence)

    def flush(self, log: PartitionLog) -> None:
        log.flush()
        self.synced = len(self.written)


def append_and_roll(run: Run) -> None:
    _, log = open_one(run.fs, CONFIG)
    for index in range(12):
        run.append_idempotent(log)
        if index % 5 == 2:
            run.flush(log)
    run.flush(log)


def checkpoint(run: Run) -> None:
    manager, log = open_one(run.fs, CONFIG)
    for index in range(8):
        run.append(log)
        if index % 3 == 1:
            run.flush(log)
        if index % 3 == 2:
            manager.checkpoint_writer()()
    run.flush(log)
    manager.checkpoint_writer()()
    run.append(log)


def clean_shutdown(run: Run) -> None:
    for _ in range(3):
        manager, log = open_one(run.fs, CONFIG)
        for _ in range(3):
            run.append_idempotent(log)
        manager.close()
        run.synced = len(run.written)


def transactions(run: Run) -> None:
    manager, log = open_one(run.fs, CONFIG)
    log.producers.verification_required = False
    for index in range(6):
        run.append(log, producer_id=9, producer_epoch=0, sequence=index, transactional=True)
        if index % 2:
            marker = build_end_transaction_marker(
                producer_id=9,
                producer_epoch=0,
                commit=index == 3,
                coordinator_epoch=1,
                timestamp=NOW_MS,
            )
            log.append(marker, leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)
            run.flush(log)
    manager.close()


def truncate(run: Run) -> None:
    manager, log = open_one(run.fs, CONFIG)
    for _ in range(9):
        run.append(log)
    run.flush(log)
    manager.checkpoint_writer()()
    # From here on fewer are promised; which of the rest are left is open.
    run.synced = 4
    log.truncate_to(4, NOW_MS)
    log.flush()


def epochs(run: Run) -> None:
    _, log = open_one(run.fs, CONFIG)
    for epoch in range(5):
        value = b"%04d" % len(run.written)
        run.written.append(value)
        log.append(batch(value), leader_epoch=epoch, now_ms=NOW_MS)
        if epoch % 2:
            run.flush(log)


SCENARIOS = [append_and_roll, checkpoint, clean_shutdown, transactions, truncate, epochs]


@cache
def crashed_runs(scenario: Callable[[Run], None]) -> list[Run]:
    """Run a scenario with a stop at each of its operations, and once to its end."""
    runs: list[Run] = []
    for stop in every_stop():
        run = Run(MemoryFileSystem())
        runs.append(run)
        with stop.on(run.fs):
            scenario(run)
    return runs


def recover(fs: MemoryFileSystem) -> tuple[LogManager, PartitionLog]:
    manager, log = open_one(fs, CONFIG)
    log.flush()
    manager.checkpoint_writer()()
    return manager, log


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_synced_batch_survives_and_nothing_half_is_served(
    scenario: Callable[[Run], None],
) -> None:
    for run in crashed_runs(scenario):
        for surviving_bytes, surviving_names in CRASHES:
            fs = run.fs.after_crash(surviving_bytes, surviving_names)
            _, log = open_one(fs, CONFIG)
            values = values_of(log)
            assert values == run.written[: len(values)]
            assert len(values) >= run.synced
            # And the log goes on from there.
            next_offset = log.log_end_offset
            assert append(log, batch(b"next")) == next_offset
            assert read_all(log)[-1] == (next_offset, b"next")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_recovering_twice_equals_recovering_once(scenario: Callable[[Run], None]) -> None:
    for run in crashed_runs(scenario):
        for surviving_bytes, surviving_names in CRASHES:
            fs = run.fs.after_crash(surviving_bytes, surviving_names)
            _, log = recover(fs)
            once = fs.files()
            state = dict(log.producers.entries)
            again = fs.after_kill()
            _, log = recover(again)
            assert again.files() == once
            assert dict(log.producers.entries) == state


@pytest.mark.parametrize("scenario", [append_and_roll, clean_shutdown, transactions])
def test_a_crash_during_recovery_loses_nothing(scenario: Callable[[Run], None]) -> None:
    for run in crashed_runs(scenario)[::7]:
        crashed = run.fs.after_crash(tear_bytes, keep_names)
        _, log = recover(crashed.after_kill())
        expected = values_of(log)
        for stop in every_stop():
            fs = crashed.after_kill()
            with stop.on(fs):
                recover(fs)
            _, log = recover(fs.after_crash(lose_bytes, lose_names))
            assert values_of(log) == expected
            _, log = recover(fs.after_crash(tear_bytes, keep_names))
            assert values_of(log) == expected


def test_a_killed_process_loses_nothing_that_was_written() -> None:
    for run in crashed_runs(append_and_roll):
        _, log = open_one(run.fs.after_kill(), CONFIG)
        values = values_of(log)
        # The last append may have been the one that was cut short.
        assert run.written[:-1] == values[: len(run.written) - 1]


def test_a_partition_is_made_or_not_made() -> None:
    def create(run: Run) -> None:
        open_one(run.fs, CONFIG)[1].flush()

    for run in crashed_runs(create):
        for surviving_bytes, surviving_names in CRASHES:
            fs = run.fs.after_crash(surviving_bytes, surviving_names)
            manager, log = open_one(fs, CONFIG)
            assert (log.log_start_offset, log.log_end_offset) == (0, 0)
            assert append(log, batch(b"first")) == 0
            manager.close()
            manager = open_manager(fs)
            assert values_of(open_partition(manager, CONFIG)) == [b"first"]


def test_a_partition_is_deleted_as_a_whole_or_not_at_all() -> None:
    def delete(run: Run) -> None:
        manager, log = open_one(run.fs, CONFIG)
        for _ in range(9):
            run.append(log)
        run.flush(log)
        manager.checkpoint_writer()()
        run.is_deleted = True
        manager.delete_partition(TOPIC, 0)
        manager.remove_deleted()

    for run in crashed_runs(delete):
        for surviving_bytes, surviving_names in CRASHES:
            fs = run.fs.after_crash(surviving_bytes, surviving_names)
            manager = open_manager(fs)
            assert not any(name.endswith("-delete") for name in fs.list_directories("/data"))
            is_there = fs.exists(DIRECTORY)
            assert is_there or run.is_deleted or run.synced == 0
            values = values_of(open_partition(manager, CONFIG))
            assert values == (run.written[: len(values)] if is_there else [])
            assert len(values) >= (run.synced if is_there else 0)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_what_a_recovery_has_synced_survives_a_crash_after_it(
    scenario: Callable[[Run], None],
) -> None:
    for run in crashed_runs(scenario):
        # What the killed process left is in the page cache, names among it.
        fs = run.fs.after_kill()
        _, log = open_one(fs, CONFIG)
        log.flush()
        values = values_of(log)
        _, again = open_one(fs.after_crash(lose_bytes, lose_names), CONFIG)
        assert values_of(again) == values
        assert again.leader_epochs.entries == log.leader_epochs.entries
