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
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeAlias

from klamm.coordinator.ports import CoordinatorRecord
from klamm.wire.messages.stored.classic_group import OffsetCommitValue

Partition: TypeAlias = tuple[str, int]


@dataclass(slots=True)
class PendingTopic:
    """The pending offsets of one topic, by partition.

    Attributes:
        values: None where it is superseded.
        places: of the records in the log, by the batches that were ever pending here. In a
            dictionary of their own: one transaction may commit tens of thousands of offsets, and as
            many pairs would cost more than everything else.
    """

    values: dict[int, OffsetCommitValue | None] = field(default_factory=dict)
    places: dict[int, int] = field(default_factory=dict)


GroupOffsets: TypeAlias = dict[str, PendingTopic]


class PendingOffsets:
    """The pending offsets of a shard."""

    def __init__(self) -> None:
        self._places = count()
        # By producer and by group. None of producer, group and topic is listed without a pending
        # offset.
        self._of_producer: dict[int, dict[str, GroupOffsets]] = {}
        self._producers: dict[str, set[int]] = {}

    # --- what others ask ---

    def of(self, group_id: str) -> Iterator[Partition]:
        """The partitions of a group that have pending offsets; one may come twice."""
        for offsets in self._offsets(group_id):
            for topic, pending in offsets.items():
                for partition in pending.values:
                    yield topic, partition

    def has_any(self, group_id: str) -> bool:
        return group_id in self._producers

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        return any(
            topic in offsets and partition in offsets[topic].values
            for offsets in self._offsets(group_id)
        )

    def values(self, group_id: str, topic: str, partition: int) -> Iterator[OffsetCommitValue]:
        """What may become the offset of a partition."""
        for offsets in self._offsets(group_id):
            value = offsets[topic].values.get(partition) if topic in offsets else None
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

    def add(self, producer_id: int, records: Iterable[CoordinatorRecord]) -> list[str]:
        """A transaction commits offsets, which replace those that it committed before.

        Returns:
            The groups that they are of; one may come twice.
        """
        place = next(self._places)
        group_ids: list[str] = []
        group_id = topic = None
        pending = PendingTopic()
        for record in records:
            key: Any = record.key
            value: Any = record.value
            if key.topic != topic or key.group != group_id:
                group_id, topic = key.group, key.topic
                pending = self._begin(producer_id, key.group, key.topic)
                group_ids.append(key.group)
            pending.values[key.partition] = value
            pending.places[key.partition] = place
        return group_ids

    def _begin(self, producer_id: int, group_id: str, topic: str) -> PendingTopic:
        groups = self._of_producer.setdefault(producer_id, {})
        if group_id not in groups:
            groups[group_id] = {}
            self._producers.setdefault(group_id, set()).add(producer_id)
        return groups[group_id].setdefault(topic, PendingTopic())

    def take(self, producer_id: int) -> dict[str, GroupOffsets]:
        """A transaction has ended: what it had committed, by group, superseded or not."""
        taken = self._of_producer.pop(producer_id, {})
        for group_id in taken:
            self._forget_producer(group_id, producer_id)
        return taken

    def supersede(
        self, group_id: str, topic: str, partition: int, place: int | None = None
    ) -> None:
        """An offset came into force, of the record at that place, or of the newest."""
        for offsets in self._offsets(group_id):
            pending = offsets.get(topic)
            if pending is None or partition not in pending.places:
                continue
            if place is None or pending.places[partition] < place:
                pending.values[partition] = None

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """The offset of a partition has been removed."""
        for producer_id in list(self._producers.get(group_id, ())):
            groups = self._of_producer[producer_id]
            offsets = groups[group_id]
            pending = offsets.get(topic)
            if pending is not None and partition in pending.places:
                del pending.values[partition], pending.places[partition]
                if not pending.values:
                    del offsets[topic]
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
