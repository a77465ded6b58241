"""The sparse map from offsets to file positions of one segment.

File `.index`: 8-byte entries, big-endian: int32 offset relative to the segment's base, int32
position of the batch that ends with that offset. Entries grow strictly in both fields. An entry
says "the batch at this position ends at this offset", so a lookup takes the greatest entry not
above the target and scans batches from there.

In memory the two columns are arrays, so a lookup is one bisection in C and the file's bytes are
made by two strided copies. The file is written when the segment rolls or closes; a segment whose
file may be stale is rebuilt from its batches at start (see recovery.py).
"""

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right

from klamm.log.config import INT32_MAX
from klamm.log.errors import CorruptFileError

_ENTRY = struct.Struct(">ii")
ENTRY_SIZE = _ENTRY.size
_IS_LITTLE_ENDIAN = sys.byteorder == "little"


class OffsetIndex:
    """The entries of one segment's offset index."""

    __slots__ = ("_offsets", "_positions", "base_offset")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self._offsets = array("i")
        self._positions = array("i")

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def size_in_bytes(self) -> int:
        return len(self._offsets) * ENTRY_SIZE

    @property
    def last_offset(self) -> int:
        """The offset of the last entry, or the segment's base offset when there is none."""
        return self.base_offset + (self._offsets[-1] if self._offsets else 0)

    def entries(self) -> list[tuple[int, int]]:
        """Return all (offset, position), for checkers."""
        base = self.base_offset
        return [(base + o, p) for o, p in zip(self._offsets, self._positions, strict=True)]

    def is_full(self, index_bytes_max: int) -> bool:
        return len(self._offsets) >= index_bytes_max // ENTRY_SIZE

    def append(self, offset: int, position: int) -> None:
        """Note that the batch at position ends with offset."""
        relative = offset - self.base_offset
        assert 0 <= relative <= INT32_MAX
        assert not self._offsets or relative > self._offsets[-1]
        self._offsets.append(relative)
        self._positions.append(position)

    def lookup(self, offset: int) -> tuple[int, int]:
        """Return the greatest entry (offset, position) at or below offset.

        Its position is at or before the first batch that ends at or after offset. Without such an
        entry it is 0, and the offset says nothing.
        """
        slot = bisect_right(self._offsets, min(offset - self.base_offset, INT32_MAX)) - 1
        if slot < 0:
            return self.base_offset, 0
        return self.base_offset + self._offsets[slot], self._positions[slot]

    def upper_bound_offset(self, position: int) -> int | None:
        """Return the offset of the first entry at or behind position, None when there is none."""
        slot = bisect_left(self._positions, position)
        return self.base_offset + self._offsets[slot] if slot < len(self._offsets) else None

    def truncate_to(self, offset: int) -> None:
        """Drop all entries at or above offset."""
        kept = bisect_right(self._offsets, min(offset - 1 - self.base_offset, INT32_MAX))
        del self._offsets[kept:]
        del self._positions[kept:]

    def encode(self) -> bytes:
        """Return the bytes of the index file."""
        interleaved = array("i", bytes(self.size_in_bytes))
        interleaved[0::2] = self._offsets
        interleaved[1::2] = self._positions
        if _IS_LITTLE_ENDIAN:
            interleaved.byteswap()
        return interleaved.tobytes()

    @staticmethod
    def decode_entry(data: bytes, base_offset: int) -> tuple[int, int]:
        """Return (offset, position) of one entry of the file."""
        relative, position = _ENTRY.unpack(data)
        return base_offset + relative, position

    @classmethod
    def decode(cls, data: bytes, base_offset: int, log_size: int, file: str) -> "OffsetIndex":
        """Read the bytes of an index file.

        Args:
            log_size: size of the segment; no entry may point behind it.
            file: name for the error.

        Raises:
            CorruptFileError: the bytes cannot be the index of such a segment. The caller rebuilds.
        """
        if len(data) % ENTRY_SIZE:
            raise CorruptFileError(file, f"{len(data)} bytes are not a multiple of {ENTRY_SIZE}")
        interleaved = array("i", data)
        if _IS_LITTLE_ENDIAN:
            interleaved.byteswap()
        index = cls(base_offset)
        index._offsets = offsets = interleaved[0::2]
        index._positions = positions = interleaved[1::2]
        if not _grows(offsets) or not _grows(positions):
            raise CorruptFileError(file, "entries do not grow")
        if offsets and (offsets[0] < 0 or positions[0] < 0 or positions[-1] >= log_size):
            raise CorruptFileError(file, "an entry points outside its segment")
        return index


def _grows(column: "array[int]") -> bool:
    return all(map(int.__lt__, column, column[1:]))
