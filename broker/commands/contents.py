"""The records of the internal topics: whether they can be understood, and what they make.

The metadata is folded here anew and in the simplest way, so that a mistake of the broker's own
image does not hide itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from klamm.broker.commands.stored import METADATA, decode_stored
from klamm.log.check.contents import Owner
from klamm.wire.errors import WireError
from klamm.wire.messages.stored.metadata import (
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from klamm.wire.records.record import Record

TOPIC_RESOURCE = 2
CLEANUP_POLICY = "cleanup.policy"
COMPACT = "compact"
# Topics that are compacted whatever their settings say.
COMPACTED_TOPICS = frozenset({"__consumer_offsets", "__transaction_state"})


@dataclass(slots=True)
class _Topic:
    name: str
    partitions: dict[int, PartitionRecord] = field(default_factory=dict)


class BrokerContents:
    """What the records of a data directory say; see klamm.log.check.contents."""

    def __init__(self) -> None:
        self._topics: dict[UUID, _Topic] = {}
        self._names: set[str] = set()
        self._policies: dict[str, str] = {}
        self._has_metadata = False

    def understands(self, topic: str) -> bool:
        return decode_stored(topic) is not None

    def see(self, topic: str, record: Record, *, applies: bool) -> str | None:
        decode = decode_stored(topic)
        assert decode is not None
        try:
            decoded = decode(record.key, record.value)
        except WireError as error:
            return f"the record can't be understood: {error}"
        if topic == METADATA and applies:
            self._has_metadata = True
            replay = _REPLAY.get(type(decoded))
            if replay is not None:
                return replay(self, decoded)
        return None

    def owners(self) -> Mapping[tuple[str, int], Owner] | None:
        if not self._has_metadata:
            return None
        return {
            (topic.name, index): Owner(
                topic_id,
                self._compacts(topic.name),
                tuple(partition.replicas),
                frozenset(partition.directories),
            )
            for topic_id, topic in self._topics.items()
            for index, partition in topic.partitions.items()
        }

    def _compacts(self, topic: str) -> bool:
        return topic in COMPACTED_TOPICS or COMPACT in self._policies.get(topic, "")

    # --- the fold ---

    def _topic(self, record: TopicRecord) -> str | None:
        if record.name in self._names:
            return f"topic {record.name!r} is there already"
        self._names.add(record.name)
        self._topics[record.topic_id] = _Topic(record.name)
        return None

    def _partition(self, record: PartitionRecord) -> str | None:
        topic = self._topics.get(record.topic_id)
        if topic is None:
            return f"a partition of a topic that is not there: {record.topic_id}"
        topic.partitions[record.partition_id] = record
        return None

    def _partition_change(self, record: PartitionChangeRecord) -> str | None:
        topic = self._topics.get(record.topic_id)
        partition = None if topic is None else topic.partitions.get(record.partition_id)
        if partition is None:
            return f"a change of a partition that is not there: {record.topic_id}"
        if record.replicas is not None:
            partition.replicas = record.replicas
        if record.directories is not None:
            partition.directories = record.directories
        return None

    def _remove_topic(self, record: RemoveTopicRecord) -> str | None:
        topic = self._topics.pop(record.topic_id, None)
        if topic is None:
            return f"the end of a topic that is not there: {record.topic_id}"
        self._names.discard(topic.name)
        self._policies.pop(topic.name, None)
        return None

    def _config(self, record: ConfigRecord) -> str | None:
        if record.resource_type == TOPIC_RESOURCE and record.name == CLEANUP_POLICY:
            self._policies[record.resource_name] = record.value or ""
        return None


_REPLAY: dict[type, Callable[[BrokerContents, Any], str | None]] = {
    TopicRecord: BrokerContents._topic,
    PartitionRecord: BrokerContents._partition,
    PartitionChangeRecord: BrokerContents._partition_change,
    RemoveTopicRecord: BrokerContents._remove_topic,
    ConfigRecord: BrokerContents._config,
}
