"""What the tests of the log share: batches, an open partition, and everything it holds."""

from typing import NamedTuple
from uuid import UUID

from klamm.log.config import LogConfig
from klamm.log.fs import FileSystem
from klamm.log.layout import BOOT_FILE
from klamm.log.manager import LogManager
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.partition_log import PartitionLog
from klamm.wire.records.batch import read_batch_header
from klamm.wire.records.record import RecordToBuild, build_batch, iter_records

ROOT = "/data"
TOPIC = "t"
TOPIC_ID = UUID("00112233-4455-6677-8899-aabbccddeeff")
OTHER_TOPIC_ID = UUID("ffeeddcc-bbaa-9988-7766-554433221100")
NOW_MS = 1_700_000_000_000
DIRECTORY = f"{ROOT}/{TOPIC}-0"


def batch(
    *values: bytes,
    timestamp: int = NOW_MS,
    key: bytes | None = b"k",
    codec: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    sequence: int = -1,
    transactional: bool = False,
) -> bytes:
    """Return a batch with one record per value, as a client sends it."""
    records: list[RecordToBuild] = [(key, value, (), timestamp) for value in values or (b"v",)]
    return build_batch(
        records,
        codec=codec,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
        transactional=transactional,
    )


def open_manager(fs: FileSystem, root: str = ROOT) -> LogManager:
    return LogManager.open(fs, root, node_id=1)


def open_partition(
    manager: LogManager,
    config: LogConfig | None = None,
    *,
    topic_id: UUID = TOPIC_ID,
    now_ms: int = NOW_MS,
) -> PartitionLog:
    return manager.open_partition(TOPIC, 0, topic_id, config or LogConfig(), now_ms)


def open_one(
    fs: FileSystem, config: LogConfig | None = None, root: str = ROOT
) -> tuple[LogManager, PartitionLog]:
    """Open the directory and its one partition, as a start does."""
    manager = open_manager(fs, root)
    log = open_partition(manager, config)
    manager.note_boot()
    return manager, log


def append(log: PartitionLog, records: bytes, now_ms: int = NOW_MS) -> int:
    """Append as a client; return the base offset."""
    return log.append(records, leader_epoch=0, now_ms=now_ms).base_offset


def without_boot(fs: MemoryFileSystem) -> dict[str, bytes]:
    """Return all files but the one that is another in every boot."""
    return {path: data for path, data in fs.files().items() if not path.endswith(BOOT_FILE)}


class Read(NamedTuple):
    """One record as a reader sees it."""

    offset: int
    value: bytes | None


def read_all(log: PartitionLog, start: int | None = None, max_bytes: int = 300) -> list[Read]:
    """Read the whole log as a consumer does, fetch by fetch, opening every batch."""
    found: list[Read] = []
    offset = log.log_start_offset if start is None else start
    while offset < log.log_end_offset:
        read = log.read(offset, max_bytes)
        data = read.slice.read()
        if not data:
            break
        position = 0
        while position + 61 <= len(data):
            header = read_batch_header(data, position)
            if position + header.size_in_bytes > len(data):
                break
            assert header.next_offset > offset or position == 0
            if not header.is_control:
                found += [
                    Read(record.offset, record.value)
                    for record in iter_records(memoryview(data)[position:])
                    if record.offset >= offset
                ]
            offset = header.next_offset
            position += header.size_in_bytes
        assert position > 0, "the first batch is always returned whole"
    return found


def values_of(log: PartitionLog) -> list[bytes | None]:
    return [record.value for record in read_all(log)]
