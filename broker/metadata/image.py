"""The cluster's metadata in memory: always and only the fold of the metadata records.

`replay` is the one way in. Names and records are Kafka's own, so that a reader of KRaft is at home.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from klamm.wire.messages.stored.metadata import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
NO_CONFIGS: Mapping[str, str] = {}
# In a PartitionChangeRecord: the leader stays as it is.
NO_LEADER_CHANGE = -2


@dataclass(slots=True)
class PartitionState:
    """Who holds a partition and who leads it."""

    index: int
    replicas: list[int]
    isr: list[int]
    leader: int
    leader_epoch: int
    partition_epoch: int
    leader_recovery_state: int = 0
    directories: list[UUID] = field(default_factory=list)


@dataclass(slots=True)
class TopicState:
    """One topic; partitions are numbered without gaps."""

    name: str
    topic_id: UUID
    partitions: list[PartitionState] = field(default_factory=list)


class MetadataImage:
    """What the metadata log says so far."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicState] = {}
        self.topics_by_id: dict[UUID, TopicState] = {}
        self.features: dict[str, int] = {}
        self.brokers: dict[int, RegisterBrokerRecord] = {}
        self.next_producer_id = 0
        # How many records have been replayed; two images with the same number are equal.
        self.version = 0
        self._configs: dict[tuple[int, str], dict[str, str]] = {}
        # Names that contain '.' or '_', by what they become when the two are made the same.
        self._unified_names: dict[str, dict[str, None]] = {}

    def topic(self, name: str) -> TopicState | None:
        return self.topics.get(name)

    def topic_configs(self, name: str) -> Mapping[str, str]:
        return self._configs.get((TOPIC_RESOURCE, name), NO_CONFIGS)

    def broker_configs(self, node_id: str) -> Mapping[str, str]:
        """Dynamic settings of one broker, or of all of them (the empty name)."""
        return self._configs.get((BROKER_RESOURCE, node_id), NO_CONFIGS)

    def resource_configs(self, resource_type: int, name: str) -> Mapping[str, str]:
        """What is stored for any kind of resource, by its number in the config APIs."""
        return self._configs.get((resource_type, name), NO_CONFIGS)

    def configured(self, resource_type: int) -> list[str]:
        """The names of the resources of one kind for which something is stored."""
        return [name for kind, name in self._configs if kind == resource_type]

    def colliding_topic(self, name: str) -> str | None:
        """A topic whose name differs from `name` only in '.' and '_'."""
        if "." not in name and "_" not in name:
            return None
        return next(iter(self._unified_names.get(unified(name), ())), None)

    @property
    def partition_count(self) -> int:
        return sum(len(topic.partitions) for topic in self.topics.values())

    def replay(self, record: Any) -> None:
        """Apply one metadata record."""
        apply = REPLAY.get(type(record))
        assert apply is not None, f"{type(record).__name__} is not part of the image"
        apply(self, record)
        self.version += 1

    def _topic(self, record: TopicRecord) -> None:
        topic = TopicState(record.name, record.topic_id)
        self.topics[topic.name] = topic
        self.topics_by_id[topic.topic_id] = topic
        self._unified_names.setdefault(unified(topic.name), {})[topic.name] = None

    def _partition(self, record: PartitionRecord) -> None:
        partitions = self.topics_by_id[record.topic_id].partitions
        state = PartitionState(
            record.partition_id,
            list(record.replicas),
            list(record.isr),
            record.leader,
            record.leader_epoch,
            record.partition_epoch,
            record.leader_recovery_state,
            list(record.directories),
        )
        if state.index < len(partitions):
            partitions[state.index] = state
        else:
            assert state.index == len(partitions), "partitions are numbered without gaps"
            partitions.append(state)

    def _partition_change(self, record: PartitionChangeRecord) -> None:
        state = self.topics_by_id[record.topic_id].partitions[record.partition_id]
        if record.isr is not None:
            state.isr = list(record.isr)
        if record.replicas is not None:
            state.replicas = list(record.replicas)
        if record.leader != NO_LEADER_CHANGE:
            state.leader = record.leader
            state.leader_epoch += 1
        state.partition_epoch += 1

    def _remove_topic(self, record: RemoveTopicRecord) -> None:
        topic = self.topics_by_id.pop(record.topic_id)
        # The name may already belong to a newer topic.
        if self.topics.get(topic.name) is topic:
            del self.topics[topic.name]
            names = self._unified_names[unified(topic.name)]
            del names[topic.name]
            if not names:
                del self._unified_names[unified(topic.name)]
        self._configs.pop((TOPIC_RESOURCE, topic.name), None)

    def _config(self, record: ConfigRecord) -> None:
        key = (record.resource_type, record.resource_name)
        if record.value is not None:
            self._configs.setdefault(key, {})[record.name] = record.value
        else:
            configs = self._configs.get(key, {})
            configs.pop(record.name, None)
            if not configs:
                self._configs.pop(key, None)

    def _feature_level(self, record: FeatureLevelRecord) -> None:
        self.features[record.name] = record.feature_level

    def _register_broker(self, record: RegisterBrokerRecord) -> None:
        self.brokers[record.broker_id] = record

    def _producer_ids(self, record: ProducerIdsRecord) -> None:
        self.next_producer_id = record.next_producer_id


def unified(name: str) -> str:
    return name.replace(".", "_")


REPLAY: dict[type, Callable[[MetadataImage, Any], None]] = {
    TopicRecord: MetadataImage._topic,
    PartitionRecord: MetadataImage._partition,
    PartitionChangeRecord: MetadataImage._partition_change,
    RemoveTopicRecord: MetadataImage._remove_topic,
    ConfigRecord: MetadataImage._config,
    FeatureLevelRecord: MetadataImage._feature_level,
    RegisterBrokerRecord: MetadataImage._register_broker,
    ProducerIdsRecord: MetadataImage._producer_ids,
}
