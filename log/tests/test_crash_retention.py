"""A crash after every file operation of retention and DeleteRecords (reliability row 6).

Whenever the crash comes, the log's start is not before what any reader or client has seen, nothing
below it is served, and nothing above it is lost. Recovering twice is recovering once.
"""

from dataclasses import replace

from klamm.log.config import LogConfig
from klamm.log.log_start import delete_records
from klamm.log.manager import LogManager
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.partition_log import PartitionLog
from klamm.log.retention import Retention
from klamm.log.tests.crashes import crashed_disks, every_stop, found_after
from klamm.log.tests.support import NOW_MS, append, batch, open_one, read_all, without_boot
from klamm.log.work import run_inline

DAY_MS = 24 * 60 * 60 * 1000
SIZE = len(batch(b"0000"))
CONFIG = LogConfig(segment_bytes=2 * SIZE, index_interval_bytes=1, retention_ms=-1)
COUNT = 11


class Watched:
    """A log whose start is noted each time when somebody could have seen it."""

    def __init__(self) -> None:
        self.start = 0

    def see(self, log: PartitionLog) -> None:
        assert log.log_start_offset >= self.start
        self.start = log.log_start_offset


def prepare() -> MemoryFileSystem:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    for index in range(COUNT):
        known = log.producers.entries.get(7)
        append(
            log,
            batch(
                b"%04d" % index,
                timestamp=NOW_MS + index,
                producer_id=7,
                producer_epoch=0,
                sequence=0 if known is None else known.last_sequence + 1,
            ),
        )
    log.advance_high_watermark(COUNT)
    manager.close()
    return fs


def run_retention(manager: LogManager, log: PartitionLog, watched: Watched, **limits: int) -> None:
    log.advance_high_watermark(log.log_end_offset)
    log.update_config(replace(CONFIG, **limits))
    work = Retention(manager).delete_old_segments(log, NOW_MS + DAY_MS)
    try:
        step = next(work)
        while True:
            watched.see(log)
            step = work.send(step() if step is not None else None)
    except StopIteration:
        watched.see(log)


def by_size(manager: LogManager, log: PartitionLog, watched: Watched) -> None:
    for keep in (4, 2):
        run_retention(manager, log, watched, retention_bytes=keep * SIZE)
        manager.write_checkpoints()
    log.flush()


def all_of_it(manager: LogManager, log: PartitionLog, watched: Watched) -> None:
    append(log, batch(b"more", timestamp=NOW_MS))
    run_retention(manager, log, watched, retention_ms=1000)
    manager.write_checkpoints()
    remove = manager.environment.deletions.all()
    remove()


def records_deleted(manager: LogManager, log: PartitionLog, watched: Watched) -> None:
    for offset in (3, 8, -1):
        (result,) = run_inline(delete_records(manager, [(log, offset)]))
        assert isinstance(result, int)
        watched.see(log)
        run_retention(manager, log, watched)
        # The checkpoint that is written every few seconds.
        manager.write_checkpoints()


SCENARIOS = [by_size, all_of_it, records_deleted]


def state_of(log: PartitionLog) -> tuple[object, ...]:
    return log.log_start_offset, log.log_end_offset, read_all(log), dict(log.producers.entries)


def check(fs: MemoryFileSystem, seen: int) -> None:
    manager, log = open_one(fs, CONFIG)
    assert log.log_start_offset >= seen
    assert log.log_start_offset >= log.segments.first.base_offset
    end = log.log_end_offset
    assert end >= COUNT
    assert [record.offset for record in read_all(log)] == list(range(log.log_start_offset, end))
    assert not [name for name in fs.files() if name.endswith(".deleted")]
    assert log.producers.entries[7].last_sequence == COUNT - 1
    log.flush()
    manager.write_checkpoints()
    files, state = without_boot(fs), state_of(log)
    again = fs.after_crash()
    manager, log = open_one(again, CONFIG)
    log.flush()
    manager.write_checkpoints()
    assert state_of(log) == state
    assert without_boot(again) == files


def test_the_log_start_never_moves_back_and_nothing_above_it_is_lost() -> None:
    prepared = prepare()
    for scenario in SCENARIOS:
        watched = Watched()

        def act(
            manager: LogManager,
            log: PartitionLog,
            scenario: object = scenario,
            watched: Watched = watched,
        ) -> None:
            watched.start = 0
            assert callable(scenario)
            scenario(manager, log, watched)

        count = 0
        for stopped in crashed_disks(prepared, CONFIG, act):
            count += 1
            for fs in found_after(stopped):
                check(fs, watched.start)
        assert count > 20


def test_a_crash_while_recovering_from_a_crash() -> None:
    prepared = prepare()
    watched = Watched()

    def act(manager: LogManager, log: PartitionLog) -> None:
        watched.start = 0
        by_size(manager, log, watched)

    for stopped in list(crashed_disks(prepared, CONFIG, act))[::3]:
        seen = watched.start
        for stop in every_stop():
            fs = stopped.after_kill()
            with stop.on(fs):
                open_one(fs, CONFIG)[1].flush()
            _, log = open_one(fs.after_crash(), CONFIG)
            assert log.log_start_offset >= 0
            offsets = [record.offset for record in read_all(log)]
            assert offsets == list(range(log.log_start_offset, COUNT))
        assert seen >= 0
