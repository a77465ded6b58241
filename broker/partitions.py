"""Every partition that this broker leads, by name and by topic id."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from klamm.broker.partition import Partition
from klamm.log.errors import LogError
from klamm.wire.errors import ErrorCode


class Partitions:
    """Finds partitions; knows nothing of how they come and go."""

    def __init__(self) -> None:
        # (topic, topic id, index) of partitions whose files can't be served.
        self._offline: set[tuple[str, UUID, int]] = set()
        self._by_name: dict[str, dict[int, Partition]] = {}
        self._by_id: dict[UUID, dict[int, Partition]] = {}

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self._by_id.values():
            yield from partitions.values()

    def add(self, partition: Partition) -> None:
        self._by_name.setdefault(partition.topic, {})[partition.index] = partition
        self._by_id.setdefault(partition.topic_id, {})[partition.index] = partition

    def add_offline(self, topic: str, topic_id: UUID, index: int) -> None:
        """A partition that exists, but whose log could not be opened."""
        self._offline.add((topic, topic_id, index))

    def remove_topic(self, topic_id: UUID) -> list[tuple[str, int]]:
        """Forget a topic and wake whoever is parked on it; return the names and numbers of its
        partitions, also of those that are offline."""
        offline = {entry for entry in self._offline if entry[1] == topic_id}
        self._offline -= offline
        removed = list(self._by_id.pop(topic_id, {}).values())
        for partition in removed:
            named = self._by_name.get(partition.topic, {})
            if named.get(partition.index) is partition:
                del named[partition.index]
                if not named:
                    del self._by_name[partition.topic]
            partition.delete()
        return [(partition.topic, partition.index) for partition in removed] + [
            (topic, index) for topic, _, index in offline
        ]

    def get(self, topic: str, index: int) -> Partition | None:
        partitions = self._by_name.get(topic)
        return None if partitions is None else partitions.get(index)

    def find(self, topic: str, index: int) -> Partition:
        """Raises LogError UNKNOWN_TOPIC_OR_PARTITION or KAFKA_STORAGE_ERROR."""
        partitions = self._by_name.get(topic)
        partition = None if partitions is None else partitions.get(index)
        if partition is None:
            if any(entry[::2] == (topic, index) for entry in self._offline):
                raise LogError(ErrorCode.KAFKA_STORAGE_ERROR)
            raise LogError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return partition

    def topic_of(self, topic_id: UUID) -> str | None:
        """The name of the topic that has this id now."""
        for partition in self._by_id.get(topic_id, {}).values():
            return partition.topic
        return next((entry[0] for entry in self._offline if entry[1] == topic_id), None)

    def find_by_id(self, topic_id: UUID, index: int) -> Partition:
        """Raises LogError UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION or KAFKA_STORAGE_ERROR."""
        partitions = self._by_id.get(topic_id)
        if any(entry[1:] == (topic_id, index) for entry in self._offline):
            raise LogError(ErrorCode.KAFKA_STORAGE_ERROR)
        if partitions is None:
            raise LogError(ErrorCode.UNKNOWN_TOPIC_ID)
        partition = partitions.get(index)
        if partition is None:
            raise LogError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return partition
