"""The cluster's metadata in memory: always and only the fold of the metadata records.

`replay` is the one way in. Names and records are Kafka's own, so that a reader of KRaft is at home.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from klamm.wire.messages.stored.metadata import (
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)

NO_CONFIGS: Mapping[str, str] = {}
# In a PartitionChangeRecord: the leader stays as it is.
NO_LEADER_CHANGE = -2
# In a PartitionChangeRecord: whether the leader recovers stays as it is.
NO_RECOVERY_CHANGE = -1
# Of a leader that has all that was committed.
RECOVERED = 0
NO_LEADER = -1
NOBODY: list[int] = []


class ResourceType(enum.IntEnum):
    """What has configs, by its number in the config APIs and records."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


@dataclass(slots=True)
class PartitionState:
    """Who holds a partition and who leads it.

    Attributes:
        eligible_leader_replicas: those that may lead although they are not in sync (KIP-966).
        last_known_elr: where nobody may, the one that led last.
    """

    index: int
    replicas: list[int]
    isr: list[int]
    leader: int
    leader_epoch: int
    partition_epoch: int
    leader_recovery_state: int = 0
    directories: list[UUID] = field(default_factory=list)
    eligible_leader_replicas: list[int] = field(default_factory=list)
    last_known_elr: list[int] = field(default_factory=list)


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
        # What Kafka guards a cluster with, and klamm does not know yet: only whether there is any.
        self.acls: set[UUID] = set()
        self.scram_credentials: set[tuple[str, int]] = set()
        self.delegation_tokens: set[str] = set()
        self.client_quotas: set[tuple[object, ...]] = set()
        # How many replicas are assigned to each log directory.
        self.directory_sizes: dict[UUID, int] = {}
        # How many records have been replayed; two images with the same number are equal.
        self.version = 0
        self._configs: dict[tuple[int, str], dict[str, str]] = {}
        # Names that contain '.' or '_', by what they become when the two are made the same.
        self._unified_names: dict[str, dict[str, None]] = {}

    def topic(self, name: str) -> TopicState | None:
        return self.topics.get(name)

    def topic_configs(self, name: str) -> Mapping[str, str]:
        return self._configs.get((ResourceType.TOPIC, name), NO_CONFIGS)

    def broker_configs(self, node_id: str) -> Mapping[str, str]:
        """Dynamic settings of one broker, or of all of them (the empty name)."""
        return self._configs.get((ResourceType.BROKER, node_id), NO_CONFIGS)

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
            record.eligible_leader_replicas or NOBODY,
            record.last_known_elr or NOBODY,
        )
        self._count(state.directories, 1)
        if state.index < len(partitions):
            self._count(partitions[state.index].directories, -1)
            partitions[state.index] = state
        else:
            assert state.index == len(partitions), "partitions are numbered without gaps"
            partitions.append(state)

    def _count(self, directories: list[UUID], change: int) -> None:
        sizes = self.directory_sizes
        for directory in directories:
            sizes[directory] = sizes.get(directory, 0) + change

    def _partition_change(self, record: PartitionChangeRecord) -> None:
        state = self.topics_by_id[record.topic_id].partitions[record.partition_id]
        if record.isr is not None:
            state.isr = list(record.isr)
        if record.replicas is not None:
            state.replicas = list(record.replicas)
        if record.leader != NO_LEADER_CHANGE:
            state.leader = record.leader
            state.leader_epoch += 1
        if record.leader_recovery_state != NO_RECOVERY_CHANGE:
            state.leader_recovery_state = record.leader_recovery_state
        if record.directories is not None:
            self._count(state.directories, -1)
            self._count(record.directories, 1)
            state.directories = list(record.directories)
        if record.eligible_leader_replicas is not None:
            state.eligible_leader_replicas = record.eligible_leader_replicas
        if record.last_known_elr is not None:
            state.last_known_elr = record.last_known_elr
        state.partition_epoch += 1

    def _clear_elr(self, record: ClearElrRecord) -> None:
        """Of one topic, or of all of them (the empty name)."""
        named = self.topics.get(record.topic_name)
        for topic in self.topics.values() if not record.topic_name else [named] if named else []:
            for state in topic.partitions:
                state.eligible_leader_replicas, state.last_known_elr = [], []

    def _remove_topic(self, record: RemoveTopicRecord) -> None:
        topic = self.topics_by_id.pop(record.topic_id)
        for state in topic.partitions:
            self._count(state.directories, -1)
        # The name may already belong to a newer topic.
        if self.topics.get(topic.name) is topic:
            del self.topics[topic.name]
            names = self._unified_names[unified(topic.name)]
            del names[topic.name]
            if not names:
                del self._unified_names[unified(topic.name)]
        self._configs.pop((ResourceType.TOPIC, topic.name), None)

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

    def _unregister_broker(self, record: UnregisterBrokerRecord) -> None:
        self.brokers.pop(record.broker_id, None)

    def _producer_ids(self, record: ProducerIdsRecord) -> None:
        self.next_producer_id = record.next_producer_id

    def _acl(self, record: AccessControlEntryRecord) -> None:
        self.acls.add(record.id)

    def _remove_acl(self, record: RemoveAccessControlEntryRecord) -> None:
        self.acls.discard(record.id)

    def _scram(self, record: UserScramCredentialRecord) -> None:
        self.scram_credentials.add((record.name, record.mechanism))

    def _remove_scram(self, record: RemoveUserScramCredentialRecord) -> None:
        self.scram_credentials.discard((record.name, record.mechanism))

    def _token(self, record: DelegationTokenRecord) -> None:
        self.delegation_tokens.add(record.token_id)

    def _remove_token(self, record: RemoveDelegationTokenRecord) -> None:
        self.delegation_tokens.discard(record.token_id)

    def _client_quota(self, record: ClientQuotaRecord) -> None:
        entity = [(part.entity_type, part.entity_name) for part in record.entity]
        key = (*sorted(entity, key=str), record.key)
        if record.remove:
            self.client_quotas.discard(key)
        else:
            self.client_quotas.add(key)

    def _nothing(self, record: Any) -> None:
        """Who is up, and what keeps a quorum going: a broker that is alone needs neither."""


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
    ClearElrRecord: MetadataImage._clear_elr,
    UnregisterBrokerRecord: MetadataImage._unregister_broker,
    AccessControlEntryRecord: MetadataImage._acl,
    RemoveAccessControlEntryRecord: MetadataImage._remove_acl,
    UserScramCredentialRecord: MetadataImage._scram,
    RemoveUserScramCredentialRecord: MetadataImage._remove_scram,
    DelegationTokenRecord: MetadataImage._token,
    RemoveDelegationTokenRecord: MetadataImage._remove_token,
    ClientQuotaRecord: MetadataImage._client_quota,
    BrokerRegistrationChangeRecord: MetadataImage._nothing,
    FenceBrokerRecord: MetadataImage._nothing,
    UnfenceBrokerRecord: MetadataImage._nothing,
    RegisterControllerRecord: MetadataImage._nothing,
    NoOpRecord: MetadataImage._nothing,
    ZkMigrationStateRecord: MetadataImage._nothing,
}
