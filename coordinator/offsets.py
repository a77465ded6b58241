"""Committed offsets: by group, topic and partition, each the last one that was stored.

A commit is decided by the group, stored as one batch and replayed, like everything else. Offsets
know groups only by what all kinds of groups have in common (`Group`); a commit by somebody who is
in no group makes an empty classic group, so that it can be listed, described and deleted. What is
committed in a transaction is pending until the transaction ends (pending_offsets.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from klamm.coordinator.classic.group import ClassicGroup
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.group import Group, Shard
from klamm.coordinator.offset_commits import OffsetCommit
from klamm.coordinator.pending_offsets import PendingOffsets
from klamm.coordinator.ports import CoordinatorRecord, OpenTransaction, TransactionMarker
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from klamm.wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from klamm.wire.messages.stored.classic_group import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from klamm.wire.schema import ZERO_UUID

NO_OFFSET = -1
# Offsets that are removed by one batch, before others have their turn.
OFFSETS_PER_STEP = 500
# The version of OffsetCommit from which an unknown group has a code of its own.
GROUP_ID_NOT_FOUND_FROM = 9

TopicOffsets = dict[int, OffsetCommitValue]
GroupOffsets = dict[str, TopicOffsets]
NONE: GroupOffsets = {}


class Committed(NamedTuple):
    """Where the offsets of one topic are put, and whether any may supersede a pending one."""

    group_id: str
    topic: str
    offsets: TopicOffsets
    may_supersede: bool


class Offsets:
    """The committed offsets of a shard."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        # Neither a group nor a topic is listed without an offset.
        self._committed: dict[str, GroupOffsets] = {}
        self.pending = PendingOffsets()

    # --- commands ---

    def check_commit(self, commit: OffsetCommit) -> None:
        """
        Raises:
            CoordinatorError: the group refuses the request.
        """
        request = commit.request
        group = self._shard.groups.get(request.group_id)
        if group is None:
            if request.generation_id_or_member_epoch < 0:
                # Somebody who is in no group; storing the offsets makes one.
                return
            if commit.api_version >= GROUP_ID_NOT_FOUND_FROM and not commit.is_transactional:
                raise group_not_found(request.group_id)
            raise CoordinatorError(ErrorCode.ILLEGAL_GENERATION)
        try:
            check_partition = group.check_offset_commit(
                request.member_id,
                request.group_instance_id,
                request.generation_id_or_member_epoch,
                is_transactional=commit.is_transactional,
                api_version=commit.api_version,
            )
            if check_partition is not None:
                for partition in commit.partitions:
                    check_partition(*partition)
        except CoordinatorError as error:
            if commit.is_transactional and error.code is ErrorCode.STALE_MEMBER_EPOCH:
                # Producers have never heard of member epochs.
                raise CoordinatorError(ErrorCode.ILLEGAL_GENERATION) from error
            raise

    def store_commit(
        self, commit: OffsetCommit, transaction: OpenTransaction | None = None
    ) -> None:
        """
        Raises:
            CoordinatorError: the log refuses it.
        """
        if commit.records:
            self._shard.journal.append(commit.records, transaction)

    def fetch(
        self,
        request: OffsetFetchRequestGroup,
        response: OffsetFetchResponseGroup,
        *,
        require_stable: bool = False,
    ) -> Iterator[None]:
        """Fill in the offsets of one group; yields where others may have their turn.

        What is fetched is the state of the first step.

        Args:
            require_stable: a partition with a pending offset is UNSTABLE_OFFSET_COMMIT.

        Raises:
            CoordinatorError: the member is unknown, or its epoch is not the one it has now.
        """
        group = self._shard.groups.get(request.group_id)
        committed = NONE
        unstable = set(self.pending.of(request.group_id)) if require_stable else set()
        if group is not None:
            group.check_offset_fetch(request.member_id, request.member_epoch)
            committed = {
                topic: partitions.copy() for topic, partitions in self._of(request.group_id).items()
            }
        if request.topics is None:
            for name, partitions in committed.items():
                topic = OffsetFetchResponseTopics(name=name)
                response.topics.append(topic)
                for index, value in partitions.items():
                    topic.partitions.append(
                        unstable_commit(index)
                        if (name, index) in unstable
                        else fetched(index, value)
                    )
                    yield
            return
        for asked in request.topics:
            topic = OffsetFetchResponseTopics(name=asked.name, topic_id=asked.topic_id)
            response.topics.append(topic)
            partitions = committed.get(asked.name, {})
            for index in asked.partition_indexes:
                if (asked.name, index) in unstable:
                    topic.partitions.append(unstable_commit(index))
                    yield
                    continue
                found = partitions.get(index)
                if found is not None and asked.topic_id not in (ZERO_UUID, found.topic_id):
                    # It is of an earlier topic of this name, unless it does not say of which.
                    found = found if found.topic_id == ZERO_UUID else None
                topic.partitions.append(fetched(index, found))
                yield

    def delete(
        self, request: OffsetDeleteRequest, response: OffsetDeleteResponse
    ) -> Iterator[None]:
        """Forget offsets of topics that exist; what becomes of each is added to the response.

        Raises:
            CoordinatorError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, or the log's refusal.
        """
        asked = []
        for topic in request.topics:
            answer = OffsetDeleteResponseTopic(name=topic.name)
            response.topics.append(answer)
            asked += [(answer, partition.partition_index) for partition in topic.partitions]
        for start in range(0, max(1, len(asked)), OFFSETS_PER_STEP):
            self._delete(request.group_id, asked[start : start + OFFSETS_PER_STEP])
            yield

    def _delete(self, group_id: str, asked: list[tuple[OffsetDeleteResponseTopic, int]]) -> None:
        group = self._shard.groups.get(group_id)
        if group is None:
            raise group_not_found(group_id)
        group.check_offset_delete()
        committed = self._of(group_id)
        removed: dict[tuple[str, int], None] = {}
        for topic, index in asked:
            code = ErrorCode.NONE
            if group.is_subscribed_to(topic.name):
                code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            elif index in committed.get(topic.name, {}) or self.pending.is_pending(
                group_id, topic.name, index
            ):
                removed[topic.name, index] = None
            topic.partitions.append(
                OffsetDeleteResponsePartition(partition_index=index, error_code=code)
            )
        if removed:
            self._shard.journal.append(tombstones(group_id, removed))

    # --- what the keepers of groups ask ---

    def of(self, group_id: str) -> Mapping[str, Mapping[int, OffsetCommitValue]]:
        """The offsets of a group by topic and partition, as they are now."""
        return self._of(group_id)

    def _of(self, group_id: str) -> GroupOffsets:
        return self._committed.get(group_id, NONE)

    def partitions(self, group_id: str) -> Iterator[tuple[str, int]]:
        """The partitions of a group that have an offset, be it a pending one."""
        committed = self._of(group_id)
        for topic, indexes in committed.items():
            for index in indexes:
                yield topic, index
        for topic, index in dict.fromkeys(self.pending.of(group_id)):
            if index not in committed.get(topic, {}):
                yield topic, index

    def values(self, group_id: str, topic: str, index: int) -> Iterator[OffsetCommitValue]:
        """What is or may become the offset of a partition."""
        committed = self._of(group_id).get(topic, {}).get(index)
        if committed is not None:
            yield committed
        yield from self.pending.values(group_id, topic, index)

    @property
    def group_ids(self) -> list[str]:
        """The groups that have offsets, be they pending."""
        return list(dict.fromkeys((*self._committed, *self.pending.group_ids)))

    # --- replay ---

    # One request may bring tens of thousands of offsets, all of one group and mostly of few topics:
    # what they have in common is looked up once.

    def replay(self, records: Iterable[CoordinatorRecord]) -> None:
        """Offsets that were committed outside of transactions, or removed."""
        committed: Committed | None = None
        for record in records:
            key: Any = record.key
            value: Any = record.value
            if value is None:
                self._remove(key.group, key.topic, key.partition)
                self.pending.remove(key.group, key.topic, key.partition)
                committed = None
                continue
            if committed is None or committed.group_id != key.group or committed.topic != key.topic:
                self._ensure_group(key.group)
                committed = self._begin(key.group, key.topic)
            committed.offsets[key.partition] = value
            if committed.may_supersede:
                self.pending.supersede(key.group, key.topic, key.partition)

    def replay_one(self, key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
        self.replay((CoordinatorRecord(key, value),))

    def replay_pending(self, records: Iterable[CoordinatorRecord], producer_id: int) -> None:
        """Commits in the transaction of that producer."""
        for group_id in self.pending.add(producer_id, records):
            self._ensure_group(group_id)

    def replay_marker(self, marker: TransactionMarker) -> None:
        """A transaction has ended: its offsets come into force, or are forgotten."""
        taken = self.pending.take(marker.producer_id)
        if not marker.is_commit:
            return
        for group_id, offsets in taken.items():
            for topic, pending in offsets.items():
                in_force = {
                    partition: value
                    for partition, value in pending.values.items()
                    if value is not None
                }
                if not in_force:
                    continue
                committed = self._begin(group_id, topic)
                committed.offsets.update(in_force)
                if committed.may_supersede:
                    for partition in in_force:
                        place = pending.places[partition]
                        self.pending.supersede(group_id, topic, partition, place)

    def _ensure_group(self, group_id: str) -> None:
        groups: dict[str, Group] = self._shard.groups
        if group_id not in groups:
            groups[group_id] = ClassicGroup(group_id)

    def _begin(self, group_id: str, topic: str) -> Committed:
        topics = self._committed.setdefault(group_id, {})
        return Committed(
            group_id, topic, topics.setdefault(topic, {}), self.pending.has_any(group_id)
        )

    def replay_legacy(
        self, key: LegacyOffsetCommitKey, value: LegacyOffsetCommitValue | None
    ) -> None:
        """The form of before Kafka 0.9, which may still be in an old log."""
        newer = None
        if value is not None:
            newer = OffsetCommitValue(
                offset=value.offset,
                metadata=value.metadata,
                commit_timestamp=value.commit_timestamp,
            )
        now = OffsetCommitKey(group=key.group, topic=key.topic, partition=key.partition)
        self.replay_one(now, newer)

    def _remove(self, group_id: str, topic: str, partition: int) -> None:
        topics = self._committed.get(group_id, {})
        partitions = topics.get(topic, {})
        partitions.pop(partition, None)
        if not partitions:
            topics.pop(topic, None)
        if not topics:
            self._committed.pop(group_id, None)


def group_not_found(group_id: str) -> CoordinatorError:
    return CoordinatorError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")


def fetched(index: int, value: OffsetCommitValue | None) -> OffsetFetchResponsePartitions:
    if value is None:
        return OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=NO_OFFSET, metadata=""
        )
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=value.offset,
        committed_leader_epoch=value.leader_epoch,
        metadata=value.metadata,
    )


def unstable_commit(index: int) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=NO_OFFSET,
        metadata="",
        error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT,
    )


def tombstones(group_id: str, partitions: Iterable[tuple[str, int]]) -> list[CoordinatorRecord]:
    """The records that remove offsets."""
    return [
        CoordinatorRecord(OffsetCommitKey(group=group_id, topic=topic, partition=index), None)
        for topic, index in partitions
    ]
