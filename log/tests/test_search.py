"""Searching by timestamp, and for aborted transactions."""

import pytest

from klamm.log.append_origin import AppendOrigin
from klamm.log.config import LogConfig
from klamm.log.errors import CorruptLogError, LogError
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.partition_log import PartitionLog
from klamm.log.tests.support import DIRECTORY, NOW_MS, append, batch, open_one
from klamm.wire.records.batch import encode_batch_header, read_batch_header
from klamm.wire.records.codecs import Codec
from klamm.wire.records.control import build_end_transaction_marker
from klamm.wire.records.record import build_batch

CONFIG = LogConfig(segment_bytes=250, index_interval_bytes=1)
T = NOW_MS


def timed(*timestamps: int, codec: int = 0) -> bytes:
    return build_batch([(b"k", b"v", (), timestamp) for timestamp in timestamps], codec=codec)


@pytest.fixture
def log() -> PartitionLog:
    """Offset n has timestamp T + 10 n, except that 7 is older than all and 4 newer than all."""
    _, log = open_one(MemoryFileSystem(), CONFIG)
    times = [T, T + 10, T + 20, T + 30, T + 900, T + 50, T + 60, T - 500, T + 80, T + 90]
    for index in range(0, 10, 2):
        append(log, timed(*times[index : index + 2], codec=Codec.LZ4 if index == 4 else 0))
    log.advance_high_watermark(10)
    assert len(log.segments) > 2
    return log


@pytest.mark.parametrize(
    ("timestamp", "found"),
    [
        (0, (T, 0)),
        (T, (T, 0)),
        (T + 1, (T + 10, 1)),
        (T + 30, (T + 30, 3)),
        (T + 31, (T + 900, 4)),
        (T + 900, (T + 900, 4)),
    ],
)
def test_the_first_record_not_older_is_found(
    log: PartitionLog, timestamp: int, found: tuple[int, int]
) -> None:
    assert log.offset_for_timestamp(timestamp) == (*found, 0)


def test_nothing_is_newer_than_the_newest(log: PartitionLog) -> None:
    assert log.offset_for_timestamp(T + 901) is None


def test_records_below_the_log_start_are_not_found(log: PartitionLog) -> None:
    log.increment_log_start_offset(5)
    assert log.offset_for_timestamp(0) == (T + 50, 5, 0)
    # The segment with the newest record has no other that matches: later ones are looked at.
    assert log.offset_for_timestamp(T + 61) == (T + 80, 8, 0)


def test_the_greatest_timestamp_is_found_in_a_compressed_batch(log: PartitionLog) -> None:
    assert log.offset_of_max_timestamp() == (T + 900, 4, 0)


def test_the_first_of_equal_timestamps_is_found() -> None:
    _, log = open_one(MemoryFileSystem(), CONFIG)
    for _ in range(8):
        append(log, timed(T - 1, T, T))
    assert log.offset_of_max_timestamp() == (T, 1, 0)


def test_an_empty_log_has_no_greatest_timestamp_and_one_without_any_its_first_record() -> None:
    _, log = open_one(MemoryFileSystem(), CONFIG)
    assert log.offset_of_max_timestamp() is None
    assert log.offset_for_timestamp(0) is None
    append(log, timed(-1, -1))
    assert log.offset_of_max_timestamp() == (-1, 0, 0)


def test_the_search_is_the_same_after_a_restart() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    for index in range(12):
        append(log, timed(T + index * 7 % 50))
    expected = [log.offset_for_timestamp(T + at) for at in range(60)]
    greatest = log.offset_of_max_timestamp()
    _, killed = open_one(fs.after_kill(), CONFIG)
    manager.close()
    _, closed = open_one(fs, CONFIG)
    for reopened in (killed, closed):
        assert [reopened.offset_for_timestamp(T + at) for at in range(60)] == expected
        assert reopened.offset_of_max_timestamp() == greatest


def test_garbage_under_a_right_checksum_is_the_producers_fault() -> None:
    _, log = open_one(MemoryFileSystem())
    good = timed(T)
    payload = b"\xff" * 20
    append(log, encode_batch_header(read_batch_header(good), payload) + payload)
    with pytest.raises(LogError, match="CORRUPT_MESSAGE"):
        log.offset_for_timestamp(T)


def test_damage_is_the_disks_fault() -> None:
    fs = MemoryFileSystem()
    _, log = open_one(fs)
    append(log, timed(T))
    path = f"{DIRECTORY}/00000000000000000000.log"
    fs.overwrite(path, fs.files()[path][:-1] + b"\xff")
    with pytest.raises(CorruptLogError):
        log.offset_for_timestamp(T)


# --- aborted transactions ------------------------------------------------------------------------


class Transactions:
    """A log with transactions of several producers in it."""

    def __init__(self) -> None:
        self.fs = MemoryFileSystem()
        self.manager, self.log = open_one(self.fs, CONFIG)
        self.log.producers.verification_required = False
        self.sequences: dict[int, int] = {}

    def write(self, producer_id: int) -> int:
        sequence = self.sequences.get(producer_id, 0)
        self.sequences[producer_id] = sequence + 1
        return append(
            self.log,
            batch(
                b"v",
                producer_id=producer_id,
                producer_epoch=0,
                sequence=sequence,
                transactional=True,
            ),
        )

    def end(self, producer_id: int, *, commit: bool) -> None:
        records = build_end_transaction_marker(
            producer_id=producer_id,
            producer_epoch=0,
            commit=commit,
            coordinator_epoch=0,
            timestamp=T,
        )
        self.log.append(records, leader_epoch=0, now_ms=T, origin=AppendOrigin.COORDINATOR)
        self.log.advance_high_watermark(self.log.log_end_offset)


@pytest.fixture
def transactions() -> Transactions:
    """1 aborted in 0..3, 2 committed in 1..4, 3 aborted in 5..9, 4 open from 6 on."""
    made = Transactions()
    made.write(1)
    made.write(2)
    made.write(1)
    made.end(1, commit=False)
    made.end(2, commit=True)
    made.write(3)
    made.write(4)
    made.write(3)
    made.write(4)
    made.end(3, commit=False)
    assert len(made.log.segments) > 2
    return made


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 10, [(1, 0), (3, 5)]),
        (0, 1, [(1, 0)]),
        (3, 5, [(1, 0)]),
        (4, 5, []),
        (4, 6, [(3, 5)]),
        (9, 10, [(3, 5)]),
    ],
)
def test_aborted_transactions_that_overlap_a_fetch(
    transactions: Transactions, start: int, end: int, expected: list[tuple[int, int]]
) -> None:
    assert transactions.log.aborted_transactions(start, end) == expected


def test_aborted_transactions_survive_a_restart(transactions: Transactions) -> None:
    expected = transactions.log.aborted_transactions(0, 10)
    _, killed = open_one(transactions.fs.after_kill(), CONFIG)
    transactions.manager.close()
    paths = [path for path in transactions.fs.files() if path.endswith(".txnindex")]
    assert len(paths) == 2
    _, closed = open_one(transactions.fs, CONFIG)
    for log in (killed, closed):
        assert log.aborted_transactions(0, 10) == expected
        log.advance_high_watermark(10)
        assert log.last_stable_offset == 6


def test_a_damaged_transaction_index_is_made_anew(transactions: Transactions) -> None:
    expected = transactions.log.aborted_transactions(0, 10)
    transactions.manager.close()
    for path in [path for path in transactions.fs.files() if path.endswith(".txnindex")]:
        transactions.fs.overwrite(path, transactions.fs.files()[path][:-3])
    _, log = open_one(transactions.fs, CONFIG)
    assert log.aborted_transactions(0, 10) == expected


def test_the_last_stable_offset_is_where_the_oldest_open_transaction_begins(
    transactions: Transactions,
) -> None:
    log = transactions.log
    assert log.last_stable_offset == 6
    transactions.end(4, commit=True)
    assert log.last_stable_offset == log.high_watermark == 11


def test_truncation_takes_ended_transactions_back(transactions: Transactions) -> None:
    log = transactions.log
    log.truncate_to(9, T)
    assert log.aborted_transactions(0, 9) == [(1, 0)]
    assert log.producers.first_undecided_offset == 5
    log.truncate_to(3, T)
    assert log.aborted_transactions(0, 9) == []
    assert log.producers.first_undecided_offset == 0
