"""A bound on the memory that indexes of cold segments take.

The index of an active segment is always in memory. Those of older segments are loaded when a
reader goes there, and the least recently used are forgotten when all of them together exceed the
budget: they can be read again from their files.
"""

from collections import OrderedDict
from typing import Protocol


class CachedIndexes(Protocol):
    """Something whose loaded indexes can be forgotten."""

    def index_bytes(self) -> int: ...

    def forget_indexes(self) -> None: ...


class IndexCache:
    """The cold segments whose indexes are loaded, least recently used first."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self._owners: OrderedDict[CachedIndexes, int] = OrderedDict()
        self._bytes = 0

    @property
    def bytes_used(self) -> int:
        return self._bytes

    def touch(self, owner: CachedIndexes) -> None:
        """Note that the owner's indexes were just used, and forget others over the budget."""
        self.remove(owner)
        size = owner.index_bytes()
        self._owners[owner] = size
        self._bytes += size
        while self._bytes > self.bytes_max and len(self._owners) > 1:
            oldest, oldest_size = self._owners.popitem(last=False)
            self._bytes -= oldest_size
            oldest.forget_indexes()

    def remove(self, owner: CachedIndexes) -> None:
        self._bytes -= self._owners.pop(owner, 0)
