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

from collections.abc import Iterator
from itertools import count
from typing import TypeAlias

from klamm.wire.messages.stored.classic_group import OffsetCommitKey, OffsetCommitValue

Partition: TypeAlias = tuple[str, int]
# The value, None when it is superseded; and the place of its record in the log, among all that were
# ever pending here.
PendingOffset: TypeAlias = tuple[OffsetCommitValue | None, int]
GroupOffsets: TypeAlias = dict[Partition, PendingOffset]


class PendingOffsets:
    """The pending offsets of a shard."""

    def __init__(self) -> None:
        self._places = count()
        # By producer and by group. Neither is listed without a pending offset.
        self._of_producer: dict[int, dict[str, GroupOffsets]] = {}
        self._producers: dict[str, set[int]] = {}

    # --- what others ask ---

    def of(self, group_id: str) -> Iterator[Partition]:
        """The partitions of a group that have pending offsets; one may come twice."""
        for offsets in self._offsets(group_id):
            yield from offsets

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        return any((topic, partition) in offsets for offsets in self._offsets(group_id))

    def values(self, group_id: str, topic: str, partition: int) -> Iterator[OffsetCommitValue]:
        """What may become the offset of a partition."""
        for offsets in self._offsets(group_id):
            value, _ = offsets.get((topic, partition), (None, 0))
            if value is not None:
                yield value

    @property
    def group_ids(self) -> list[str]:
        """The groups that have pending offsets."""
        return list(self._producers)

    def _offsets(self, group_id: str) -> Iterator[GroupOffsets]:
        """Those of each producer."""
        for producer_id in self._producers.get(group_id, ()):
            yield self._of_producer[producer_id][group_id]

    # --- replay ---

    def add(self, producer_id: int, key: OffsetCommitKey, value: OffsetCommitValue) -> None:
        """A transaction commits an offset; it replaces the one that it committed before."""
        groups = self._of_producer.get(producer_id)
        if groups is None:
            groups = self._of_producer[producer_id] = {}
        offsets = groups.get(key.group)
        if offsets is None:
            offsets = groups[key.group] = {}
            self._producers.setdefault(key.group, set()).add(producer_id)
        offsets[key.topic, key.partition] = (value, next(self._places))

    def take(self, producer_id: int) -> dict[str, GroupOffsets]:
        """A transaction has ended: what it had committed, by group, superseded or not."""
        taken = self._of_producer.pop(producer_id, {})
        for group_id in taken:
            self._forget_producer(group_id, producer_id)
        return taken

    def supersede(self, group_id: str, partition: Partition, place: int | None = None) -> None:
        """An offset came into force, of the record at that place, or of the newest."""
        if group_id not in self._producers:
            return
        for offsets in self._offsets(group_id):
            pending = offsets.get(partition)
            if pending is not None and (place is None or pending[1] < place):
                offsets[partition] = (None, pending[1])

    def remove(self, group_id: str, partition: Partition) -> None:
        """The offset of a partition has been removed."""
        for producer_id in list(self._producers.get(group_id, ())):
            groups = self._of_producer[producer_id]
            offsets = groups[group_id]
            offsets.pop(partition, None)
            if not offsets:
                del groups[group_id]
                self._forget_producer(group_id, producer_id)
            if not groups:
                del self._of_producer[producer_id]

    def _forget_producer(self, group_id: str, producer_id: int) -> None:
        producers = self._producers[group_id]
        producers.remove(producer_id)
        if not producers:
            del self._producers[group_id]
