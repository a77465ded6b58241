"""The sparse map from timestamps to offsets of one segment.

File `.timeindex`: 12-byte entries, big-endian: int64 greatest timestamp so far, int32 offset
(relative to the segment's base) of the last record of the batch that brought it. Timestamps grow
strictly. When the segment rolls or closes, one last entry with its greatest timestamp is added, so
the last entry of a closed segment tells its age.
"""

import struct
import sys
from array import array
from bisect import bisect_right

from klamm.log.config import INT32_MAX
from klamm.log.errors import CorruptFileError

_ENTRY = struct.Struct(">qi")
ENTRY_SIZE = _ENTRY.size
NO_TIMESTAMP = -1
_IS_LITTLE_ENDIAN = sys.byteorder == "little"


class TimeIndex:
    """The entries of one segment's time index."""

    __slots__ = ("_offsets", "_timestamps", "base_offset")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self._timestamps = array("q")
        self._offsets = array("i")

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def size_in_bytes(self) -> int:
        return len(self._offsets) * ENTRY_SIZE

    @property
    def last_entry(self) -> tuple[int, int]:
        """(timestamp, offset) of the last entry; (-1, base offset) when there is none."""
        if not self._offsets:
            return NO_TIMESTAMP, self.base_offset
        return self._timestamps[-1], self.base_offset + self._offsets[-1]

    def entries(self) -> list[tuple[int, int]]:
        """Return all (timestamp, offset), for checkers."""
        base = self.base_offset
        return [(t, base + o) for t, o in zip(self._timestamps, self._offsets, strict=True)]

    def is_full(self, index_bytes_max: int) -> bool:
        # One slot is kept for the entry that is added when the segment rolls.
        return len(self._offsets) >= index_bytes_max // ENTRY_SIZE - 1

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry, unless the timestamp is not greater than the last one."""
        if timestamp <= (self._timestamps[-1] if self._timestamps else NO_TIMESTAMP):
            return
        relative = offset - self.base_offset
        assert 0 <= relative <= INT32_MAX
        assert not self._offsets or relative >= self._offsets[-1]
        self._timestamps.append(timestamp)
        self._offsets.append(relative)

    def lookup(self, timestamp: int) -> int:
        """Return the offset of the last entry whose timestamp is not greater than this one."""
        entry = self.floor_entry(timestamp)
        return self.base_offset if entry is None else entry[1]

    def floor_entry(self, timestamp: int) -> tuple[int, int] | None:
        """Return the last (timestamp, offset) whose timestamp is not greater than this one."""
        slot = bisect_right(self._timestamps, timestamp) - 1
        if slot < 0:
            return None
        return self._timestamps[slot], self.base_offset + self._offsets[slot]

    def truncate_to(self, offset: int) -> None:
        """Drop all entries at or above offset."""
        kept = bisect_right(self._offsets, min(offset - 1 - self.base_offset, INT32_MAX))
        del self._offsets[kept:]
        del self._timestamps[kept:]

    def encode(self) -> bytes:
        """Return the bytes of the index file."""
        timestamps = self._timestamps[:]
        offsets = self._offsets[:]
        if _IS_LITTLE_ENDIAN:
            timestamps.byteswap()
            offsets.byteswap()
        halves = array("i", timestamps.tobytes())
        interleaved = array("i", bytes(self.size_in_bytes))
        interleaved[0::3] = halves[0::2]
        interleaved[1::3] = halves[1::2]
        interleaved[2::3] = offsets
        return interleaved.tobytes()

    @staticmethod
    def decode_entry(data: bytes, base_offset: int) -> tuple[int, int]:
        """Return (timestamp, offset) of one entry of the file."""
        timestamp, relative = _ENTRY.unpack(data)
        return timestamp, base_offset + relative

    @classmethod
    def decode(cls, data: bytes, base_offset: int, file: str) -> "TimeIndex":
        """Read the bytes of an index file.

        Raises:
            CorruptFileError: the bytes cannot be a time index. The caller rebuilds.
        """
        if len(data) % ENTRY_SIZE:
            raise CorruptFileError(file, f"{len(data)} bytes are not a multiple of {ENTRY_SIZE}")
        interleaved = array("i", data)
        halves = array("i", bytes(len(interleaved) // 3 * 8))
        halves[0::2] = interleaved[0::3]
        halves[1::2] = interleaved[1::3]
        timestamps = array("q", halves.tobytes())
        offsets = interleaved[2::3]
        if _IS_LITTLE_ENDIAN:
            timestamps.byteswap()
            offsets.byteswap()
        if not all(map(int.__lt__, timestamps, timestamps[1:])):
            raise CorruptFileError(file, "timestamps do not grow")
        if not all(map(int.__le__, offsets, offsets[1:])):
            raise CorruptFileError(file, "offsets go back")
        if offsets and (offsets[0] < 0 or timestamps[0] < 0):
            raise CorruptFileError(file, "a negative entry")
        index = cls(base_offset)
        index._timestamps = timestamps
        index._offsets = offsets
        return index
