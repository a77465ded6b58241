"""Offsets that were committed in transactions which nobody has ended yet.

A transaction may commit offsets of several groups, and several transactions may commit the same
partition. Until the marker of its transaction is in the log, an offset is only pending: nobody
fetches it, and whoever asks for stable offsets has to wait. Then it becomes the offset of its
partition or vanishes.

The last record in the log wins, not the last marker, for this is what compaction keeps: an offset
that was pending while a later record of its partition came into force is *superseded*. It keeps its
partition unstable until its marker, and becomes nothing. What removes an offset from the log
removes the pending ones of its partition, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import NamedTuple

from klamm.wire.messages.stored.classic_group import OffsetCommitKey, OffsetCommitValue

Partition = tuple[str, int]


class PendingOffset(NamedTuple):
    """An offset without its marker; value is None when it is superseded.

    Attributes:
        place: of its record in the log, among all that were ever pending here.
    """

    key: OffsetCommitKey
    value: OffsetCommitValue | None
    place: int


class PendingOffsets:
    """The pending offsets of a shard."""

    def __init__(self) -> None:
        self._places = count()
        # Neither a group nor a partition nor a producer is listed without a pending offset.
        self._of_producer: dict[int, dict[tuple[str, str, int], PendingOffset]] = {}
        self._producers: dict[str, dict[Partition, set[int]]] = {}

    # --- what others ask ---

    def of(self, group_id: str) -> Iterable[Partition]:
        """The partitions of a group that have pending offsets, as they are now."""
        return self._producers.get(group_id, {}).keys()

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        return (topic, partition) in self._producers.get(group_id, {})

    def values(self, group_id: str, topic: str, partition: int) -> Iterator[OffsetCommitValue]:
        """What may become the offset of a partition."""
        for producer_id in self._producers.get(group_id, {}).get((topic, partition), ()):
            value = self._of_producer[producer_id][group_id, topic, partition].value
            if value is not None:
                yield value

    @property
    def group_ids(self) -> list[str]:
        """The groups that have pending offsets."""
        return list(self._producers)

    # --- replay ---

    def add(self, producer_id: int, key: OffsetCommitKey, value: OffsetCommitValue) -> None:
        """A transaction commits an offset; it replaces the one that it committed before."""
        pending = PendingOffset(key, value, next(self._places))
        self._of_producer.setdefault(producer_id, {})[_name(key)] = pending
        partitions = self._producers.setdefault(key.group, {})
        partitions.setdefault((key.topic, key.partition), set()).add(producer_id)

    def take(self, producer_id: int) -> list[PendingOffset]:
        """A transaction has ended: what it had committed, superseded or not."""
        taken = list(self._of_producer.pop(producer_id, {}).values())
        for pending in taken:
            self._forget_producer(pending.key, producer_id)
        return taken

    def supersede(self, key: OffsetCommitKey, place: int | None = None) -> None:
        """An offset came into force, of the record at that place, or of the newest."""
        for producer_id in self._producers.get(key.group, {}).get((key.topic, key.partition), ()):
            offsets = self._of_producer[producer_id]
            pending = offsets[_name(key)]
            if place is None or pending.place < place:
                offsets[_name(key)] = pending._replace(value=None)

    def remove(self, key: OffsetCommitKey) -> None:
        """The offset of a partition has been removed."""
        producers = self._producers.get(key.group, {}).get((key.topic, key.partition), set())
        for producer_id in list(producers):
            offsets = self._of_producer[producer_id]
            del offsets[_name(key)]
            if not offsets:
                del self._of_producer[producer_id]
            self._forget_producer(key, producer_id)

    def _forget_producer(self, key: OffsetCommitKey, producer_id: int) -> None:
        partitions = self._producers[key.group]
        producers = partitions[key.topic, key.partition]
        producers.remove(producer_id)
        if not producers:
            del partitions[key.topic, key.partition]
        if not partitions:
            del self._producers[key.group]


def _name(key: OffsetCommitKey) -> tuple[str, str, int]:
    return key.group, key.topic, key.partition
