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
        self._by_name: dict[str, dict[int, Partition]] = {}
        self._by_id: dict[UUID, dict[int, Partition]] = {}
        # Partitions whose files can't be served: names of topics, and numbers.
        self._offline: dict[UUID, tuple[str, set[int]]] = {}
        self._offline_ids: dict[str, UUID] = {}

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self._by_id.values():
            yield from partitions.values()

    def add(self, partition: Partition) -> None:
        self._by_name.setdefault(partition.topic, {})[partition.index] = partition
        self._by_id.setdefault(partition.topic_id, {})[partition.index] = partition

    def add_offline(self, topic: str, topic_id: UUID, index: int) -> None:
        """A partition that exists, but whose log could not be opened."""
        self._offline.setdefault(topic_id, (topic, set()))[1].add(index)
        self._offline_ids[topic] = topic_id

    def take_offline(self, partition: Partition) -> None:
        """A partition whose disk has failed: nobody reads or writes it any more."""
        self._remove(partition)
        del self._by_id[partition.topic_id][partition.index]
        self.add_offline(partition.topic, partition.topic_id, partition.index)
        partition.take_offline()

    def remove_topic(self, topic_id: UUID) -> list[tuple[str, int]]:
        """Forget a topic and wake whoever is parked on it; return the names and numbers of its
        partitions, also of those that are offline."""
        removed = list(self._by_id.pop(topic_id, {}).values())
        for partition in removed:
            self._remove(partition)
            partition.delete()
        topic, offline = self._offline.pop(topic_id, ("", set()))
        if self._offline_ids.get(topic) == topic_id:
            del self._offline_ids[topic]
        return [(partition.topic, partition.index) for partition in removed] + [
            (topic, index) for index in offline
        ]

    def _remove(self, partition: Partition) -> None:
        named = self._by_name.get(partition.topic, {})
        if named.get(partition.index) is partition:
            del named[partition.index]
            if not named:
                del self._by_name[partition.topic]

    def get(self, topic: str, index: int) -> Partition | None:
        partitions = self._by_name.get(topic)
        return None if partitions is None else partitions.get(index)

    def find(self, topic: str, index: int) -> Partition:
        """Raises LogError UNKNOWN_TOPIC_OR_PARTITION or KAFKA_STORAGE_ERROR."""
        partitions = self._by_name.get(topic)
        partition = None if partitions is None else partitions.get(index)
        if partition is None:
            offline_id = self._offline_ids.get(topic)
            if offline_id is not None and index in self._offline[offline_id][1]:
                raise LogError(ErrorCode.KAFKA_STORAGE_ERROR)
            raise LogError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return partition

    def topic_of(self, topic_id: UUID) -> str | None:
        """The name of the topic that has this id now."""
        for partition in self._by_id.get(topic_id, {}).values():
            return partition.topic
        offline = self._offline.get(topic_id)
        return None if offline is None else offline[0]

    def find_by_id(self, topic_id: UUID, index: int) -> Partition:
        """Raises LogError UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION or KAFKA_STORAGE_ERROR."""
        partitions = self._by_id.get(topic_id)
        partition = None if partitions is None else partitions.get(index)
        if partition is not None:
            return partition
        offline = self._offline.get(topic_id)
        if offline is not None and index in offline[1]:
            raise LogError(ErrorCode.KAFKA_STORAGE_ERROR)
        if partitions is None:
            raise LogError(ErrorCode.UNKNOWN_TOPIC_ID)
        raise LogError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
