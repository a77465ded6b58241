"""The checker over `__consumer_offsets`, where a coordinator commits for the producers.

It numbers nothing: each commit in a transaction has base sequence 0, in Apache Kafka, too. All else
is judged there as it is everywhere.
"""

import pytest

from klamm.log.append_origin import AppendOrigin
from klamm.log.config import LogConfig
from klamm.log.manager import LogManager
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.partition_log import PartitionLog
from klamm.log.tests.checking import check, faults
from klamm.log.tests.support import NOW_MS, TOPIC_ID, batch, open_manager
from klamm.wire.records.control import build_end_transaction_marker

OFFSETS = "__consumer_offsets"
# Small enough that there is a snapshot of producers for each few transactions.
CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=100)
TRANSACTIONS = 8


def open_topic(fs: MemoryFileSystem, topic: str) -> tuple[LogManager, PartitionLog]:
    manager = open_manager(fs)
    log = manager.open_partition(topic, 3, TOPIC_ID, CONFIG, NOW_MS)
    log.producers.verification_required = False
    manager.note_boot()
    return manager, log


def commit_offsets(log: PartitionLog, *, epoch: int = 0) -> None:
    """One TxnOffsetCommit of a group, as its coordinator writes it."""
    records = batch(b"offset", producer_id=9, producer_epoch=epoch, sequence=0, transactional=True)
    log.append(records, leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)


def end_transaction(log: PartitionLog, *, commit: bool, epoch: int = 0) -> None:
    marker = build_end_transaction_marker(
        producer_id=9, producer_epoch=epoch, commit=commit, coordinator_epoch=0, timestamp=NOW_MS
    )
    log.append(marker, leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)


def written(topic: str, *, clean: bool = True) -> MemoryFileSystem:
    """Transactions that commit offsets once or twice, and every other one of them ends by abort.

    The epoch is raised half way, as transactions version 2 do with each.
    """
    fs = MemoryFileSystem()
    manager, log = open_topic(fs, topic)
    for number in range(TRANSACTIONS):
        epoch = number * 2 // TRANSACTIONS
        for _ in range(1 + number % 2):
            commit_offsets(log, epoch=epoch)
        end_transaction(log, commit=number % 2 == 0, epoch=epoch)
    log.advance_high_watermark(log.log_end_offset)
    log.flush()
    if clean:
        manager.close()
    else:
        manager.write_checkpoints()
    return fs.after_kill()


def flip(fs: MemoryFileSystem, suffix: str) -> str:
    """Change the last byte of the last such file; return its path."""
    path = max(path for path in fs.files() if path.endswith(suffix))
    data = bytearray(fs.files()[path])
    data[-1] ^= 1
    fs.overwrite(path, bytes(data))
    return path


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_every_commit_in_a_transaction_has_the_same_sequence(clean: bool) -> None:
    assert faults(check(written(OFFSETS, clean=clean))) == []


@pytest.mark.parametrize("topic", ["t", "__transaction_state", "consumer_offsets"])
def test_in_any_other_topic_they_are_twins(topic: str) -> None:
    found = faults(check(written(topic)))
    assert found
    assert all("producer 9 sent sequences up to 0 once" in fault for fault in found)


@pytest.mark.parametrize(
    ("suffix", "what"),
    [
        (".log", "the checksum is"),
        (".txnindex", "last stable offset"),
        (".snapshot", "the checksum is"),
    ],
)
def test_damage_is_found_all_the_same(suffix: str, what: str) -> None:
    fs = written(OFFSETS)
    path = flip(fs, suffix)
    assert any(fault.startswith(path) and what in fault for fault in faults(check(fs)))


def test_a_snapshot_of_an_earlier_state() -> None:
    """It would let a zombie in: the epoch that it has is that of the first transactions."""
    fs = written(OFFSETS)
    first, *_, last = sorted(path for path in fs.files() if path.endswith(".snapshot"))
    fs.overwrite(last, fs.files()[first])
    found = faults(check(fs))
    assert found
    for fault in found:
        assert fault.startswith(last)
        assert "producer 9: epoch 0, the log has 1" in fault


def test_a_segment_is_missing() -> None:
    """It is named; whether compaction has taken it, only the metadata log could say."""
    fs = written(OFFSETS)
    _, second, *_ = sorted(path for path in fs.files() if path.endswith(".log"))
    for path in list(fs.files()):
        if path.startswith(second.removesuffix("log")):
            fs.remove(path)
    assert any("are missing, which is right where" in str(finding) for finding in check(fs))
