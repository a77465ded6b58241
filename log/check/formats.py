"""The small binary files as they lie on disk, each entry with the byte where it stands.

Written beside the code that the broker reads with, and sharing nothing with it: what one of the
two gets wrong, the other one notices. docs/files.md describes the formats.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from klamm.wire.records.crc import crc32c

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")
_TXN_ENTRY = struct.Struct(">hqqqq")
_SNAPSHOT_HEAD = struct.Struct(">hIi")
_SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")
# The checksum of a snapshot begins behind the version and itself.
_SNAPSHOT_CHECKED_FROM = 6

OFFSET_ENTRY_SIZE = _OFFSET_ENTRY.size
TIME_ENTRY_SIZE = _TIME_ENTRY.size
TXN_ENTRY_SIZE = _TXN_ENTRY.size

SNAPSHOT_VERSION = 1
TXN_ENTRY_VERSION = 0


class Malformed(Exception):  # noqa: N818 - a place in a file, not a fault of the program
    """From this byte on, the file is not what its name says."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"byte {position}: {reason}")
        self.position = position
        self.reason = reason


class OffsetEntry(NamedTuple):
    """Of an offset index: the batch at that position ends with that offset."""

    at: int
    offset: int
    position: int


class TimeEntry(NamedTuple):
    """Of a time index: up to that offset, nothing is later than that timestamp."""

    at: int
    timestamp: int
    offset: int


class TxnEntry(NamedTuple):
    """Of a transaction index: an aborted transaction, whose marker stands at last_offset."""

    at: int
    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class SnapshotEntry(NamedTuple):
    """Of a producer snapshot: a producer and one of its batches. Offsets are -1 for none."""

    at: int
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    txn_first_offset: int


def offset_entries(data: bytes, base_offset: int) -> Iterator[OffsetEntry]:
    """Yield the whole entries of an offset index; a rest that is no entry is left out."""
    whole = len(data) - len(data) % OFFSET_ENTRY_SIZE
    for at in range(0, whole, OFFSET_ENTRY_SIZE):
        relative, position = _OFFSET_ENTRY.unpack_from(data, at)
        yield OffsetEntry(at, base_offset + relative, position)


def time_entries(data: bytes, base_offset: int) -> Iterator[TimeEntry]:
    """Yield the whole entries of a time index."""
    whole = len(data) - len(data) % TIME_ENTRY_SIZE
    for at in range(0, whole, TIME_ENTRY_SIZE):
        timestamp, relative = _TIME_ENTRY.unpack_from(data, at)
        yield TimeEntry(at, timestamp, base_offset + relative)


def txn_entries(data: bytes) -> Iterator[TxnEntry]:
    """Yield the whole entries of a transaction index."""
    whole = len(data) - len(data) % TXN_ENTRY_SIZE
    for at in range(0, whole, TXN_ENTRY_SIZE):
        yield TxnEntry(at, *_TXN_ENTRY.unpack_from(data, at))


def snapshot_entries(data: bytes) -> list[SnapshotEntry]:
    """Return the entries of a producer snapshot.

    Raises:
        Malformed: another version, length or checksum.
    """
    if len(data) < _SNAPSHOT_HEAD.size:
        raise Malformed(len(data), f"{len(data)} bytes are no producer snapshot")
    version, stored_crc, count = _SNAPSHOT_HEAD.unpack_from(data)
    if version != SNAPSHOT_VERSION:
        raise Malformed(0, f"version {version} is unknown")
    crc = crc32c(memoryview(data)[_SNAPSHOT_CHECKED_FROM:])
    if crc != stored_crc:
        raise Malformed(2, f"the checksum is {stored_crc:#010x}, the bytes have {crc:#010x}")
    size = len(data) - _SNAPSHOT_HEAD.size
    if count < 0 or count * _SNAPSHOT_ENTRY.size != size:
        raise Malformed(_SNAPSHOT_CHECKED_FROM, f"{count} entries in {size} bytes")
    return [
        SnapshotEntry(at, *_SNAPSHOT_ENTRY.unpack_from(data, at))
        for at in range(_SNAPSHOT_HEAD.size, len(data), _SNAPSHOT_ENTRY.size)
    ]
