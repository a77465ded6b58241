"""What an OffsetCommit request asks for, before any group is looked at.

Topics and partitions that do not exist are refused one by one, and the rest goes on; what becomes
a record depends on the request and the topics alone. So a long request can be prepared step by
step, while other requests are served, and is then decided and stored in a single one.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from klamm.coordinator.java_strings import length
from klamm.coordinator.ports import CoordinatorRecord, TopicDescription, Topics
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from klamm.wire.messages.stored.classic_group import OffsetCommitKey, OffsetCommitValue
from klamm.wire.records.batch import NO_PRODUCER_ID
from klamm.wire.schema import ZERO_UUID

TOPIC_IDS_FROM = 10
# With a retention time of its own (version 2 to 4) an offset is stored as Kafka 2.0 did it: later
# versions of the record have no room for it.
VALUE_VERSION = 4
VALUE_VERSION_WITH_EXPIRY = 1
NO_RETENTION_TIME = -1


class OffsetCommit:
    """One OffsetCommit request under way.

    Args:
        now_ms: wall time; from it the offsets expire.
        metadata_max: the longest metadata, in Java's characters.
        producer_id: whose transaction commits; -1 for none.

    Attributes:
        records: what is stored if the group has nothing against it.
        partitions: topic name, topic id and number of each record.
    """

    def __init__(
        self,
        request: OffsetCommitRequest,
        topics: Topics,
        *,
        api_version: int,
        now_ms: int,
        metadata_max: int,
        producer_id: int = NO_PRODUCER_ID,
    ) -> None:
        self.request = request
        self.api_version = api_version
        self.producer_id = producer_id
        self.records: list[CoordinatorRecord] = []
        self.partitions: list[tuple[str, UUID, int]] = []
        self._topics = topics
        self._uses_ids = api_version >= TOPIC_IDS_FROM
        self._now_ms = now_ms
        self._metadata_max = metadata_max
        self._has_expiry = request.retention_time_ms != NO_RETENTION_TIME
        self._expires_at = now_ms + request.retention_time_ms if self._has_expiry else -1
        # By id or by name, whichever the request uses.
        self._refused: dict[UUID | str, OffsetCommitResponseTopic] = {}
        self._accepted: list[OffsetCommitResponseTopic] = []

    def prepare(self) -> Iterator[None]:
        """Look at every partition; yields where others may have their turn."""
        for topic in self.request.topics:
            if self._uses_ids:
                known = self._topics.find_by_id(topic.topic_id)
                unknown = ErrorCode.UNKNOWN_TOPIC_ID
            else:
                known = self._topics.find(topic.name)
                unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if known is None:
                self._refuse(topic.topic_id, topic.name, topic.partitions, unknown)
            else:
                yield from self._prepare_topic(topic, known)
            yield

    def _prepare_topic(
        self, topic: OffsetCommitRequestTopic, known: TopicDescription
    ) -> Iterator[None]:
        accepted = OffsetCommitResponseTopic(name=known.name, topic_id=known.topic_id)
        missing = []
        partition_count = known.partition_count
        for partition in topic.partitions:
            if not 0 <= partition.partition_index < partition_count:
                missing.append(partition)
                continue
            code = ErrorCode.NONE
            if length(partition.committed_metadata or "") > self._metadata_max:
                code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                self._add_record(known, partition)
            accepted.partitions.append(
                OffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=code
                )
            )
            yield
        if missing:
            self._refuse(known.topic_id, known.name, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if accepted.partitions:
            self._accepted.append(accepted)

    def _add_record(self, topic: TopicDescription, partition: OffsetCommitRequestPartition) -> None:
        index = partition.partition_index
        self.partitions.append((topic.name, topic.topic_id, index))
        self.records.append(
            CoordinatorRecord(
                OffsetCommitKey(group=self.request.group_id, topic=topic.name, partition=index),
                OffsetCommitValue(
                    offset=partition.committed_offset,
                    leader_epoch=partition.committed_leader_epoch,
                    metadata=partition.committed_metadata or "",
                    commit_timestamp=self._now_ms,
                    expire_timestamp=self._expires_at,
                    # A record with an expiry time of its own is too old a version for the id.
                    topic_id=ZERO_UUID if self._has_expiry else topic.topic_id,
                ),
                VALUE_VERSION_WITH_EXPIRY if self._has_expiry else VALUE_VERSION,
                self.producer_id,
            )
        )

    def _refuse(
        self,
        topic_id: UUID,
        name: str,
        partitions: list[OffsetCommitRequestPartition],
        code: ErrorCode,
    ) -> None:
        self._refused_topic(topic_id, name).partitions += [
            OffsetCommitResponsePartition(
                partition_index=partition.partition_index, error_code=code
            )
            for partition in partitions
        ]

    def _refused_topic(self, topic_id: UUID, name: str) -> OffsetCommitResponseTopic:
        key = topic_id if self._uses_ids else name
        topic = self._refused.get(key)
        if topic is None:
            topic = self._refused[key] = OffsetCommitResponseTopic(name=name, topic_id=topic_id)
        return topic

    @property
    def is_transactional(self) -> bool:
        return self.producer_id != NO_PRODUCER_ID

    @property
    def concerns_nobody(self) -> bool:
        """Nothing in it exists, so no group is asked, as in Kafka."""
        return not self._accepted

    def response(self, refusal: ErrorCode = ErrorCode.NONE) -> OffsetCommitResponse:
        """The reply: what does not exist comes first, then the rest.

        Args:
            refusal: why the group does not take any of it.
        """
        if refusal is not ErrorCode.NONE:
            for topic in self._accepted:
                for partition in topic.partitions:
                    partition.error_code = refusal
        if not self._refused:
            return OffsetCommitResponse(topics=self._accepted)
        for topic in self._accepted:
            self._refused_topic(topic.topic_id, topic.name).partitions += topic.partitions
        return OffsetCommitResponse(topics=list(self._refused.values()))
