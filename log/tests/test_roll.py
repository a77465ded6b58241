"""When a segment rolls, and what a roll leaves on disk."""

from klamm.log.config import LogConfig
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.partition_log import PartitionLog
from klamm.log.tests.support import DIRECTORY, NOW_MS, append, batch, open_one, values_of

SIZE = len(batch(b"0000"))
HOUR_MS = 3_600_000


def open_log(config: LogConfig) -> PartitionLog:
    return open_one(MemoryFileSystem(), config)[1]


def test_by_size() -> None:
    log = open_log(LogConfig(segment_bytes=3 * SIZE))
    rolled = [
        log.append(batch(b"%04d" % index), leader_epoch=0, now_ms=NOW_MS).rolled
        for index in range(7)
    ]
    assert rolled == [False, False, False, True, False, False, True]
    assert log.segments.base_offsets == [0, 3, 6]
    assert log.size_in_bytes == 7 * SIZE


def test_by_the_time_of_its_records() -> None:
    log = open_log(LogConfig(segment_ms=HOUR_MS))
    for minutes in (0, 30, 60):
        append(log, batch(timestamp=NOW_MS + minutes * 60_000), NOW_MS + HOUR_MS)
    assert len(log.segments) == 1
    append(log, batch(timestamp=NOW_MS + HOUR_MS + 1), NOW_MS + HOUR_MS)
    assert log.segments.base_offsets == [0, 3]


def test_by_the_clock_without_timestamps() -> None:
    log = open_log(LogConfig(segment_ms=HOUR_MS))
    append(log, batch(timestamp=-1), NOW_MS + HOUR_MS)
    append(log, batch(timestamp=-1), NOW_MS + HOUR_MS)
    assert len(log.segments) == 1
    append(log, batch(timestamp=-1), NOW_MS + HOUR_MS + 1)
    assert log.segments.base_offsets == [0, 2]


def test_an_empty_segment_does_not_roll() -> None:
    log = open_log(LogConfig(segment_ms=1))
    append(log, batch(), NOW_MS + HOUR_MS)
    assert len(log.segments) == 1
    assert log.roll(NOW_MS)
    assert not log.roll(NOW_MS)


def test_the_age_of_a_segment_survives_a_restart() -> None:
    fs = MemoryFileSystem()
    config = LogConfig(segment_ms=HOUR_MS)
    manager, log = open_one(fs, config)
    append(log, batch(timestamp=NOW_MS - HOUR_MS))
    manager.close()
    for reopened in (open_one(fs.after_kill(), config)[1], open_one(fs, config)[1]):
        append(reopened, batch(timestamp=NOW_MS + 1))
        assert reopened.segments.base_offsets == [0, 1]


def test_jitter_rolls_a_little_earlier_and_differs_between_segments() -> None:
    ages = set()
    for partition in range(20):
        manager, _ = open_one(MemoryFileSystem())
        config = LogConfig(segment_ms=1000, segment_jitter_ms=500)
        log = manager.open_partition("jitter", partition, manager.directory_id, config, NOW_MS)
        append(log, batch(timestamp=NOW_MS))
        age = 0
        while len(log.segments) == 1:
            age += 20
            append(log, batch(timestamp=NOW_MS + age))
        assert 500 < age <= 1020
        ages.add(age)
    assert len(ages) > 5


def test_by_a_full_index() -> None:
    log = open_log(LogConfig(index_interval_bytes=1, segment_index_bytes=40))
    for _ in range(14):
        append(log, batch())
    # Five entries of the offset index fit; the first batch of a segment needs none.
    assert log.segments.base_offsets == [0, 6, 12]


def test_by_a_full_time_index() -> None:
    log = open_log(LogConfig(index_interval_bytes=1, segment_index_bytes=36))
    for index in range(10):
        append(log, batch(timestamp=NOW_MS + index))
    # Three entries fit, and one of them is kept for the end.
    assert log.segments.base_offsets[:3] == [0, 3, 6]


def test_by_offsets_that_do_not_fit() -> None:
    log = open_log(LogConfig())
    append(log, batch())
    log.log_end_offset = 2**31
    append(log, batch())
    assert log.segments.base_offsets == [0, 2**31]
    log.log_end_offset = 2**31 + 2**31 - 1
    append(log, batch())
    assert log.segments.base_offsets == [0, 2**31]


def test_files_of_a_rolled_segment() -> None:
    fs = MemoryFileSystem()
    _, log = open_one(fs, LogConfig(segment_bytes=3 * SIZE, index_interval_bytes=1))
    for sequence in range(4):
        append(log, batch(b"0000", producer_id=1, producer_epoch=0, sequence=sequence))
    files = {path.removeprefix(DIRECTORY): len(data) for path, data in fs.files().items()}
    assert files["/00000000000000000000.log"] == 3 * SIZE
    assert files["/00000000000000000000.index"] == 2 * 8
    assert files["/00000000000000000000.timeindex"] == 12
    assert files["/00000000000000000003.log"] == SIZE
    assert files["/00000000000000000003.snapshot"] == 10 + 3 * 46
    assert "/00000000000000000000.txnindex" not in files


def test_a_roll_goes_over_the_leftovers_of_one_that_failed() -> None:
    fs = MemoryFileSystem()
    _, log = open_one(fs, LogConfig(segment_bytes=3 * SIZE))
    for index in range(3):
        append(log, batch(b"%04d" % index))
    leftover = fs.open(f"{DIRECTORY}/00000000000000000003.log", create=True)
    leftover.append([b"garbage"], 7)
    append(log, batch(b"0003"))
    assert values_of(log) == [b"%04d" % index for index in range(4)]
