"""Metadata logs as Apache Kafka writes them, in memory."""

from __future__ import annotations

from collections.abc import Sequence

from klamm.broker.loading import METADATA_LOG_CONFIG, METADATA_TOPIC_ID
from klamm.broker.metadata.records import encode_metadata_record
from klamm.broker.metadata.store import MetadataStore
from klamm.broker.metadata.topics import METADATA_TOPIC
from klamm.log.manager import LogManager
from klamm.log.memory_fs import MemoryFileSystem
from klamm.wire.records.record import build_batch
from klamm.wire.schema import Message

ROOT = "/data"
METADATA = f"{ROOT}/{METADATA_TOPIC}-0"
NODE_ID = 1
NOW_MS = 1_700_000_000_000


def add_records(fs: MemoryFileSystem, *records: Message) -> None:
    """Append metadata records to a directory that nobody uses; it is left clean."""
    logs = LogManager.open(fs, ROOT, node_id=NODE_ID)
    store = MetadataStore(fs, ROOT)
    log = logs.open_partition(METADATA_TOPIC, 0, METADATA_TOPIC_ID, METADATA_LOG_CONFIG, NOW_MS)
    store.lead(log, NODE_ID, logs.directory_id, NOW_MS)
    store.append_and_replay(records, NOW_MS)
    logs.close()


def write_file(fs: MemoryFileSystem, path: str, content: bytes) -> None:
    for directory in (ROOT, path.rpartition("/")[0]):
        fs.make_directory(directory)
    file = fs.open(path, create=True)
    file.append([content], len(content))
    file.datasync()


def data_batch(records: Sequence[Message], base_offset: int = 0, epoch: int = 0) -> bytes:
    """A batch of metadata records."""
    return build_batch(
        [(None, encode_metadata_record(record), (), NOW_MS) for record in records],
        base_offset=base_offset,
        partition_leader_epoch=epoch,
    )
