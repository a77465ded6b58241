"""A data directory with something of everything, and the offline checker over it."""

from collections.abc import Iterable, Mapping
from uuid import UUID

from klamm.log.append_origin import AppendOrigin
from klamm.log.check.contents import Owner
from klamm.log.check.directory import check_directories
from klamm.log.check.findings import Finding
from klamm.log.config import LogConfig
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.partition_log import PartitionLog
from klamm.log.tests.support import NOW_MS, ROOT, TOPIC, TOPIC_ID, batch, open_manager
from klamm.wire.records.batch import read_batch_header, with_offset_and_epoch
from klamm.wire.records.control import build_end_transaction_marker
from klamm.wire.records.record import Record

COMPACTED = "c"
COMPACTED_ID = UUID("12345678-1234-5678-1234-567812345678")
CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=100)


class KnownPartitions:
    """Stands for the metadata log: it has one or two partitions, in one directory.

    Args:
        compacts: whether the first one is compacted.
        compacted: whether there is the second one, which is.
    """

    def __init__(
        self,
        directory_id: UUID,
        *,
        compacts: bool = False,
        compacted: bool = False,
        replicas: tuple[int, ...] = (1,),
    ) -> None:
        place = frozenset({directory_id})
        self._owners = {(TOPIC, 0): Owner(TOPIC_ID, compacts, replicas, place)}
        if compacted:
            self._owners[COMPACTED, 0] = Owner(COMPACTED_ID, True, replicas, place)

    def understands(self, topic: str) -> bool:
        return False

    def see(self, topic: str, record: Record, *, applies: bool) -> str | None:
        return None

    def owners(self) -> Mapping[tuple[str, int], Owner]:
        return self._owners


def check(
    fs: MemoryFileSystem, contents: KnownPartitions | None = None, root: str = ROOT
) -> list[Finding]:
    """Check the directory; nothing in it may change."""
    before = fs.operations
    found: list[Finding] = []
    summary = check_directories(
        fs, [root], contents=contents, on_finding=found.append, producers_expire=False
    )
    assert fs.operations == before
    assert bool(summary.faults) == any(not finding.is_note for finding in found)
    return found


def faults(findings: Iterable[Finding]) -> list[str]:
    return [str(finding) for finding in findings if not finding.is_note]


def put(fs: MemoryFileSystem, path: str, data: bytes) -> None:
    """Make a file, or put other bytes into it."""
    fs.open(path, create=True)
    fs.overwrite(path, data)


def append_all(log: PartitionLog) -> None:
    """Fill segments: plain, compressed, idempotent and transactional batches, in three epochs."""
    log.producers.verification_required = False
    sequences = {7: 0, 9: 0}

    def produce(
        producer_id: int, *values: bytes, epoch: int, codec: int = 0, transactional: bool = False
    ) -> None:
        records = batch(
            *values,
            timestamp=NOW_MS + log.log_end_offset,
            codec=codec,
            producer_id=producer_id,
            producer_epoch=0,
            sequence=sequences[producer_id],
            transactional=transactional,
        )
        sequences[producer_id] += len(values)
        log.append(records, leader_epoch=epoch, now_ms=NOW_MS)

    def end_transaction(*, commit: bool, epoch: int) -> None:
        marker = build_end_transaction_marker(
            producer_id=9, producer_epoch=0, commit=commit, coordinator_epoch=3, timestamp=NOW_MS
        )
        log.append(marker, leader_epoch=epoch, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)

    for codec in range(5):
        produce(7, b"one", b"two", epoch=0, codec=codec)
    for epoch in (2, 3):
        log.append(batch(b"plain"), leader_epoch=epoch, now_ms=NOW_MS)
        produce(9, b"aborted", epoch=epoch, transactional=True)
        produce(7, b"between", epoch=epoch)
        end_transaction(commit=False, epoch=epoch)
        produce(9, b"committed", epoch=epoch, transactional=True)
        end_transaction(commit=True, epoch=epoch)
    produce(9, b"open", epoch=3, transactional=True)


def append_with_gaps(log: PartitionLog) -> None:
    """Fill a log as compaction leaves it: single batches with many offsets between them."""
    for number in range(5):
        records = batch(b"value", timestamp=NOW_MS + number)
        prefix = with_offset_and_epoch(read_batch_header(records), number * 1000 + 500, 0)
        log.append(
            prefix + records[len(prefix) :],
            leader_epoch=0,
            now_ms=NOW_MS,
            origin=AppendOrigin.REPLICATION,
        )


def written_directory(
    *, clean: bool, compacted: bool = True, config: LogConfig = CONFIG
) -> tuple[MemoryFileSystem, KnownPartitions]:
    """Write two partitions, then stop cleanly or by a kill."""
    fs = MemoryFileSystem()
    manager = open_manager(fs)
    log = manager.open_partition(TOPIC, 0, TOPIC_ID, config, NOW_MS)
    append_all(log)
    log.flush()
    log.advance_high_watermark(5)
    log.increment_log_start_offset(3)
    log.advance_high_watermark(log.log_end_offset)
    if compacted:
        cleaned = manager.open_partition(COMPACTED, 0, COMPACTED_ID, config, NOW_MS)
        append_with_gaps(cleaned)
        cleaned.advance_high_watermark(cleaned.log_end_offset)
        cleaned.flush()
    if clean:
        manager.close()
        if compacted:
            put(fs, f"{ROOT}/cleaner-offset-checkpoint", f"0\n1\n{COMPACTED} 0 2000\n".encode())
    else:
        manager.write_checkpoints()
    return fs.after_kill(), KnownPartitions(manager.directory_id, compacted=compacted)
