"""The producer snapshot file, `%020d.snapshot`: the producer state as it was at that offset.

    version int16 = 1 | CRC-32C uint32 of all that follows | entry count int32
    entry = producer id int64 | producer epoch int16 | last sequence int32 | last offset int64
          | offset delta int32 | timestamp int64 | coordinator epoch int32
          | first offset of the open transaction int64 (-1 = none)

Only the newest batch of each producer is kept; replaying the log from the snapshot's offset brings
the others back. A snapshot that fails any check is unusable as a whole: the next older one is
taken, and more of the log replayed.
"""

import struct
from collections.abc import Iterable

from klamm.log.errors import StorageError
from klamm.log.producer_entry import BatchMetadata, ProducerStateEntry
from klamm.wire.records.crc import crc32c

_VERSION = 1
_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_NO_OFFSET = -1


class CorruptSnapshotError(StorageError):
    """The file is not a producer snapshot, or its checksum is not that of its bytes."""


def encode_snapshot(entries: Iterable[ProducerStateEntry]) -> bytes:
    """Return the snapshot file of these producers."""
    encoded = [
        _ENTRY.pack(
            entry.producer_id,
            entry.producer_epoch,
            entry.last_sequence,
            entry.last_data_offset,
            entry.last_offset_delta,
            entry.last_timestamp,
            entry.coordinator_epoch,
            _NO_OFFSET
            if entry.current_txn_first_offset is None
            else entry.current_txn_first_offset,
        )
        for entry in entries
    ]
    body = _COUNT.pack(len(encoded)) + b"".join(encoded)
    return _HEAD.pack(_VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes | memoryview) -> list[ProducerStateEntry]:
    """Return the producers of a snapshot file, each with its newest batch.

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
    return [_entry(fields) for fields in _ENTRY.iter_unpack(body)]


def _entry(fields: tuple[int, ...]) -> ProducerStateEntry:
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
