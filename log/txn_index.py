"""The aborted transactions of one segment.

File `.txnindex`: 34-byte entries, big-endian: int16 version (0), int64 producer id, first offset,
last offset, last stable offset. One entry per aborted transaction whose marker lies in the segment,
in the order of the markers; there is no file when there is none. Consumers that read committed data
get the entries that overlap what they fetch, and drop those producers' batches.
"""

import struct
from typing import NamedTuple

from klamm.log.errors import CorruptFileError

CURRENT_VERSION = 0
_ENTRY = struct.Struct(">hqqqq")
ENTRY_SIZE = _ENTRY.size


class AbortedTransactionEntry(NamedTuple):
    """One aborted transaction: its first and last (marker) offset, and the LSO after its end."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """The entries of one segment's transaction index."""

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: list[AbortedTransactionEntry] = []

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def size_in_bytes(self) -> int:
        return len(self.entries) * ENTRY_SIZE

    def append(self, entry: AbortedTransactionEntry) -> None:
        assert not self.entries or entry.last_offset > self.entries[-1].last_offset
        self.entries.append(entry)

    def collect(
        self, fetch_offset: int, upper_bound_offset: int, found: list[AbortedTransactionEntry]
    ) -> bool:
        """Add the transactions that overlap [fetch_offset, upper_bound_offset) to `found`.

        Returns:
            Whether the search is complete: no later segment can hold another one.
        """
        for entry in self.entries:
            if entry.last_offset >= fetch_offset and entry.first_offset < upper_bound_offset:
                found.append(entry)
            if entry.last_stable_offset >= upper_bound_offset:
                return True
        return False

    def truncate_to(self, offset: int) -> None:
        """Drop the transactions whose marker is at or above offset."""
        self.entries = [entry for entry in self.entries if entry.last_offset < offset]

    def encode(self) -> bytes:
        """Return the bytes of the index file."""
        return b"".join(_ENTRY.pack(CURRENT_VERSION, *entry) for entry in self.entries)

    @classmethod
    def decode(cls, data: bytes, base_offset: int, file: str) -> "TransactionIndex":
        """Read the bytes of an index file.

        Raises:
            CorruptFileError: the bytes cannot be such an index. The caller rebuilds.
        """
        if len(data) % ENTRY_SIZE:
            raise CorruptFileError(file, f"{len(data)} bytes are not a multiple of {ENTRY_SIZE}")
        index = cls()
        last_offset = base_offset - 1
        for version, *fields in _ENTRY.iter_unpack(data):
            entry = AbortedTransactionEntry(*fields)
            if version != CURRENT_VERSION:
                raise CorruptFileError(file, f"unknown entry version {version}")
            if entry.last_offset <= last_offset or entry.first_offset > entry.last_offset:
                raise CorruptFileError(file, "entries are out of order")
            last_offset = entry.last_offset
            index.entries.append(entry)
        return index
