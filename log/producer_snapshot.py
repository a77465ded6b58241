"""The producer snapshot file, `%020d.snapshot`: the producer state as it was at that offset.

    version int16 = 1 | CRC-32C uint32 of all that follows | entry count int32
    entry = producer id int64 | producer epoch int16 | last sequence int32 | last offset int64
          | offset delta int32 | timestamp int64 | coordinator epoch int32
          | first offset of the open transaction int64 (-1 = none)

A producer has one entry for each of its remembered batches, the newest last; one without a batch
has last offset -1. Kafka writes the newest batch alone, and of several entries takes the last one,
so each can read the other's files. With all five of them a retry of an older batch is known as a
duplicate after a restart, too; Kafka refuses it as out of order then.

A snapshot that fails any check is unusable as a whole: the next older one is taken, and more of the
log replayed.
"""

import struct
from collections.abc import Iterable

from klamm.log.errors import StorageError
from klamm.log.producer_entry import BatchMetadata, ProducerStateEntry
from klamm.wire.records.batch import NO_SEQUENCE, NO_TIMESTAMP
from klamm.wire.records.crc import crc32c

_VERSION = 1
_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_NO_OFFSET = -1
_NO_BATCH = BatchMetadata(NO_SEQUENCE, _NO_OFFSET, 0, NO_TIMESTAMP)


class CorruptSnapshotError(StorageError):
    """The file is not a producer snapshot, or its checksum is not that of its bytes."""


def encode_snapshot(entries: Iterable[ProducerStateEntry]) -> bytes:
    """Return the snapshot file of these producers."""
    encoded: list[bytes] = []
    for entry in entries:
        *older, newest = entry.batches or [_NO_BATCH]
        encoded += [_encode_entry(entry, batch, batch.timestamp) for batch in older]
        encoded.append(_encode_entry(entry, newest, entry.last_timestamp))
    body = _COUNT.pack(len(encoded)) + b"".join(encoded)
    return _HEAD.pack(_VERSION, crc32c(body)) + body


def _encode_entry(entry: ProducerStateEntry, batch: BatchMetadata, timestamp: int) -> bytes:
    first_offset = entry.current_txn_first_offset
    return _ENTRY.pack(
        entry.producer_id,
        entry.producer_epoch,
        batch.last_sequence,
        batch.last_offset,
        batch.offset_delta,
        timestamp,
        entry.coordinator_epoch,
        _NO_OFFSET if first_offset is None else first_offset,
    )


def decode_snapshot(data: bytes | memoryview) -> list[ProducerStateEntry]:
    """Return the producers of a snapshot file with their remembered batches.

    Raises:
        CorruptSnapshotError: another version, another length than its count says, or a checksum
            that does not fit.
    """
    if len(data) < _HEAD.size + _COUNT.size:
        raise CorruptSnapshotError(f"a producer snapshot of {len(data)} bytes")
    version, stored_crc = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise CorruptSnapshotError(f"unknown producer snapshot version {version}")
    crc = crc32c(memoryview(data)[_HEAD.size :])
    if crc != stored_crc:
        raise CorruptSnapshotError(f"stored checksum {stored_crc:#010x}, computed {crc:#010x}")
    (count,) = _COUNT.unpack_from(data, _HEAD.size)
    body = memoryview(data)[_HEAD.size + _COUNT.size :]
    if count * _ENTRY.size != len(body):
        raise CorruptSnapshotError(f"{count} producers in {len(body)} bytes")
    producers: dict[int, ProducerStateEntry] = {}
    for fields in _ENTRY.iter_unpack(body):
        entry = _decode_entry(fields)
        older = producers.get(entry.producer_id)
        if older is not None and older.producer_epoch == entry.producer_epoch:
            older.batches.extend(entry.batches)
            entry.batches = older.batches
        producers[entry.producer_id] = entry
    return list(producers.values())


def _decode_entry(fields: tuple[int, ...]) -> ProducerStateEntry:
    (
        producer_id,
        epoch,
        last_sequence,
        last_offset,
        offset_delta,
        timestamp,
        coordinator_epoch,
        txn_first_offset,
    ) = fields
    return ProducerStateEntry(
        producer_id,
        epoch,
        coordinator_epoch,
        timestamp,
        txn_first_offset if txn_first_offset >= 0 else None,
        [BatchMetadata(last_sequence, last_offset, offset_delta, timestamp)]
        if last_offset >= 0
        else (),
    )
