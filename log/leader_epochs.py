"""Which leader epoch wrote which offsets: the cache behind leader-epoch-checkpoint.

An entry (epoch, start offset) says that the epoch's first batch has that offset; it ends where the
next entry starts. Epochs and start offsets both rise strictly. Followers and consumers find with
it where two logs diverge (KIP-101, KIP-279, KIP-320).

The checkpoint file is text: a line with the version 0, a line with the number of entries, then
one line `epoch start_offset` per entry.
"""

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from klamm.log.errors import StorageError

UNDEFINED_EPOCH = -1
UNDEFINED_EPOCH_OFFSET = -1
_VERSION = 0


class CorruptEpochsError(StorageError):
    """The checkpoint is not what this module writes."""


class EpochEntry(NamedTuple):
    """The first offset that an epoch wrote."""

    epoch: int
    start_offset: int


class LeaderEpochCache:
    """The epochs of one partition's log, in order. Few: one entry per change of leader."""

    def __init__(self, entries: Iterable[EpochEntry] = ()) -> None:
        self._entries: list[EpochEntry] = []
        for entry in entries:
            self.assign(entry.epoch, entry.start_offset)

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        return tuple(self._entries)

    @property
    def latest_epoch(self) -> int | None:
        """The newest epoch that has written anything."""
        return self._entries[-1].epoch if self._entries else None

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that a batch of this epoch begins at the offset; True where that is news.

        Entries that the new one contradicts (an epoch not lower, or an offset not lower) go:
        what is being written now is the truth.
        """
        assert epoch >= 0
        assert start_offset >= 0
        entries = self._entries
        if entries:
            latest = entries[-1]
            if latest.epoch == epoch and latest.start_offset <= start_offset:
                return False
        while entries and (entries[-1].epoch >= epoch or entries[-1].start_offset >= start_offset):
            entries.pop()
        entries.append(EpochEntry(epoch, start_offset))
        return True

    def epoch_for_offset(self, offset: int) -> int | None:
        """Return the epoch that wrote the offset; None where the log begins later."""
        index = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        return self._entries[index - 1].epoch if index else None

    def end_offset_for(self, requested_epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return the largest epoch not above the requested one, and where it ends.

        The newest epoch ends at the log's end. A request below the first known epoch gets its own
        number and the first known start, since what lay before is deleted. An undefined or unknown
        higher epoch gets (-1, -1).
        """
        entries = self._entries
        if requested_epoch == UNDEFINED_EPOCH:
            return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
        if entries and entries[-1].epoch == requested_epoch:
            return requested_epoch, log_end_offset
        index = bisect_right(entries, requested_epoch, key=lambda entry: entry.epoch)
        if index == len(entries):
            return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
        end_offset = entries[index].start_offset
        if index == 0:
            return requested_epoch, end_offset
        return entries[index - 1].epoch, end_offset

    def truncate_from_end(self, end_offset: int) -> bool:
        """Drop the epochs that begin at or above the new end of the log; True where any did."""
        before = len(self._entries)
        if end_offset >= 0:
            while self._entries and self._entries[-1].start_offset >= end_offset:
                self._entries.pop()
        return len(self._entries) != before

    def truncate_from_start(self, start_offset: int) -> bool:
        """Drop the epochs that end at or below the new start of the log; True where any changed.

        The epoch that holds the new start stays, and begins there from now on.
        """
        index = bisect_right(self._entries, start_offset, key=lambda entry: entry.start_offset)
        if index == 0:
            return False
        kept = EpochEntry(self._entries[index - 1].epoch, start_offset)
        if index == 1 and self._entries[0] == kept:
            return False
        self._entries[:index] = [kept]
        return True

    def clear(self) -> None:
        """Forget every epoch."""
        self._entries.clear()

    def encode(self) -> bytes:
        """Return the content of the checkpoint file."""
        lines = [str(_VERSION), str(len(self._entries))]
        lines += [f"{entry.epoch} {entry.start_offset}" for entry in self._entries]
        return "".join(f"{line}\n" for line in lines).encode("ascii")

    @classmethod
    def decode(cls, data: bytes) -> "LeaderEpochCache":
        """Return the cache that a checkpoint file holds.

        Raises:
            CorruptEpochsError: another version, another number of lines than stated, a line that
                is not two non-negative numbers, or entries that do not grow.
        """
        try:
            text = data.decode("ascii")
        except UnicodeDecodeError:
            raise CorruptEpochsError("not text") from None
        if not text.endswith("\n"):
            raise CorruptEpochsError("the last line has no end")
        lines = text[:-1].split("\n")
        if len(lines) < 2 or not all(line.isdecimal() for line in lines[:2]):
            raise CorruptEpochsError("no version and count in the first two lines")
        version, count = int(lines[0]), int(lines[1])
        if version != _VERSION:
            raise CorruptEpochsError(f"unknown version {version}")
        if count != len(lines) - 2:
            raise CorruptEpochsError(f"{count} entries stated, {len(lines) - 2} lines found")
        cache = cls()
        for index, line in enumerate(lines[2:]):
            fields = line.split(" ")
            if len(fields) != 2 or not all(field.isdecimal() for field in fields):
                raise CorruptEpochsError(f"not an epoch and an offset: {line[:80]!r}")
            cache.assign(int(fields[0]), int(fields[1]))
            if len(cache._entries) != index + 1:
                raise CorruptEpochsError(f"out of order: {line[:80]!r}")
        return cache
