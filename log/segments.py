"""The segments of one log in the order of their offsets."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from klamm.log.segment import Segment


class Segments:
    """A sorted list of segments.

    Attributes:
        active: the last one; there is none while the list is empty.
    """

    __slots__ = ("_base_offsets", "_segments", "active")

    active: Segment

    def __init__(self) -> None:
        self._segments: list[Segment] = []
        self._base_offsets: list[int] = []

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __getitem__(self, index: int) -> Segment:
        return self._segments[index]

    @property
    def base_offsets(self) -> list[int]:
        return self._base_offsets

    @property
    def first(self) -> Segment:
        return self._segments[0]

    @property
    def size_in_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    def add(self, segment: Segment) -> None:
        assert not self._segments or segment.base_offset > self._base_offsets[-1]
        self._segments.append(segment)
        self._base_offsets.append(segment.base_offset)
        self.active = segment

    def floor_index(self, offset: int) -> int:
        """Return the index of the last segment that begins at or below offset; -1 without one."""
        base_offsets = self._base_offsets
        if offset >= base_offsets[-1]:
            return len(base_offsets) - 1
        return bisect_right(base_offsets, offset) - 1

    def end_of(self, index: int, log_end_offset: int) -> int:
        """Return the offset behind the segment at index."""
        if index + 1 < len(self._base_offsets):
            return self._base_offsets[index + 1]
        return log_end_offset

    def index_of(self, base_offset: int) -> int:
        """Return the index of the segment that begins at base_offset.

        Raises:
            ValueError: there is none.
        """
        index = bisect_left(self._base_offsets, base_offset)
        if index == len(self._base_offsets) or self._base_offsets[index] != base_offset:
            raise ValueError(f"no segment begins at {base_offset}")
        return index

    def replace(self, index: int, count: int, segment: Segment) -> None:
        """Put one segment in the place of several, of which the first has its base offset."""
        assert count > 0
        assert self._base_offsets[index] == segment.base_offset
        self._segments[index : index + count] = [segment]
        self._base_offsets[index : index + count] = [segment.base_offset]
        self.active = self._segments[-1]

    def pop_last(self) -> Segment:
        self._base_offsets.pop()
        popped = self._segments.pop()
        if self._segments:
            self.active = self._segments[-1]
        else:
            del self.active
        return popped

    def pop_first(self) -> Segment:
        assert len(self._segments) > 1, "the last one is active"
        del self._base_offsets[0]
        return self._segments.pop(0)
