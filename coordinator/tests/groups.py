"""A coordinator over fakes, and the requests about offsets that tests send to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TypeVar

from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.group_coordinator import GroupCoordinator
from klamm.coordinator.offset_commits import OffsetCommit
from klamm.coordinator.ports import (
    Client,
    CoordinatorRecord,
    OpenTransaction,
    TransactionMarker,
)
from klamm.coordinator.settings import GroupSettings
from klamm.coordinator.tests.fakes import FakeShard
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from klamm.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from klamm.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from klamm.wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from klamm.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from klamm.wire.records.batch import NO_PRODUCER_ID

NEWEST_COMMIT = 10
NEWEST_NAMED_COMMIT = 9
Offsets = Mapping[str, Mapping[int, int]]
Result = TypeVar("Result")

# A subscription to the topic "t", in version 0 of the consumer protocol.
SUBSCRIPTION = b"\0\0" + b"\0\0\0\1" + b"\0\1t" + b"\xff\xff\xff\xff"


def drain(steps: Iterator[None]) -> int:
    """Take all steps; return how many there were."""
    return sum(1 for _ in steps)


def replay(coordinator: GroupCoordinator, entry: CoordinatorRecord | TransactionMarker) -> None:
    if isinstance(entry, TransactionMarker):
        coordinator.replay_marker(entry)
    else:
        coordinator.replay((entry,))


class Coordinated(FakeShard):
    """A coordinator in a world of fakes.

    Attributes:
        coordinator: made anew by `restart`, from nothing but the journal.
    """

    def __init__(self, settings: GroupSettings | None = None) -> None:
        super().__init__(settings)
        self.coordinator = self._new_coordinator()

    def _new_coordinator(self) -> GroupCoordinator:
        coordinator = GroupCoordinator(self.shard)
        # What is written together is replayed together; a restart replays one by one.
        self.journal.replay_batch = coordinator.replay  # type: ignore[method-assign]
        self.journal.replay = partial(replay, coordinator)
        return coordinator

    def restart(self) -> None:
        """Forget everything but the log, and load it."""
        self.groups.clear()
        for key in self.timers.remaining_ms():
            self.timers.cancel(key)
        self.coordinator = self._new_coordinator()
        for entry in self.journal.entries:
            replay(self.coordinator, entry)
        self.coordinator.on_loaded()

    # --- offsets ---

    def commit(
        self,
        group_id: str,
        offsets: Offsets,
        *,
        version: int = NEWEST_NAMED_COMMIT,
        member_id: str = "",
        generation: int = -1,
        metadata: str | None = "",
        leader_epoch: int = -1,
        retention_ms: int = -1,
        producer_id: int = NO_PRODUCER_ID,
    ) -> OffsetCommitResponse:
        """Commit by name; by id from version 10 on, for topics that exist.

        Args:
            producer_id: commits in the transaction of this producer.
        """
        topics = [
            OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offset,
                        committed_leader_epoch=leader_epoch,
                        committed_metadata=metadata,
                    )
                    for index, offset in partitions.items()
                ],
            )
            for name, partitions in offsets.items()
        ]
        if version >= NEWEST_COMMIT:
            for topic in topics:
                described = self.topics.find(topic.name)
                if described is not None:
                    topic.topic_id = described.topic_id
        request = OffsetCommitRequest(
            group_id=group_id,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            retention_time_ms=retention_ms,
            topics=topics,
        )
        return self.send_commit(request, version, producer_id)

    def send_commit(
        self, request: OffsetCommitRequest, version: int, producer_id: int = NO_PRODUCER_ID
    ) -> OffsetCommitResponse:
        commit = OffsetCommit(
            request,
            self.topics,
            api_version=version,
            now_ms=self.shard.now_ms(),
            metadata_max=self.shard.settings.offset_metadata_max_bytes,
            producer_id=producer_id,
        )
        drain(commit.prepare())
        if not commit.concerns_nobody:
            try:
                if commit.is_transactional:
                    transaction = OpenTransaction(producer_id, producer_epoch=0)
                    self.coordinator.commit_transactional_offsets(commit, transaction)
                else:
                    self.coordinator.commit_offsets(commit)
            except CoordinatorError as error:
                return commit.response(error.code)
        return commit.response()

    def fetch(
        self,
        group_id: str,
        topics: Mapping[str, list[int]] | None = None,
        *,
        member_id: str | None = None,
        member_epoch: int = -1,
        require_stable: bool = False,
    ) -> OffsetFetchResponseGroup:
        """Raises CoordinatorError."""
        asked = None
        if topics is not None:
            asked = [
                OffsetFetchRequestTopics(name=name, partition_indexes=indexes)
                for name, indexes in topics.items()
            ]
        response = OffsetFetchResponseGroup(group_id=group_id)
        request = OffsetFetchRequestGroup(
            group_id=group_id, member_id=member_id, member_epoch=member_epoch, topics=asked
        )
        drain(self.coordinator.fetch_offsets(request, response, require_stable=require_stable))
        return response

    def offsets(self, group_id: str) -> dict[str, dict[int, int]]:
        """All committed offsets of a group."""
        return {
            topic.name: {
                partition.partition_index: partition.committed_offset
                for partition in topic.partitions
            }
            for topic in self.fetch(group_id).topics
        }

    def delete_offsets(
        self, group_id: str, partitions: Mapping[str, list[int]]
    ) -> OffsetDeleteResponse:
        """Raises CoordinatorError."""
        request = OffsetDeleteRequest(
            group_id=group_id,
            topics=[
                OffsetDeleteRequestTopic(
                    name=name,
                    partitions=[
                        OffsetDeleteRequestPartition(partition_index=index) for index in indexes
                    ],
                )
                for name, indexes in partitions.items()
            ],
        )
        response = OffsetDeleteResponse()
        drain(self.coordinator.delete_offsets(request, response))
        return response

    # --- members ---

    def become_member(self, group_id: str, protocol_type: str = "consumer") -> str:
        """Make a classic group of one member that is Stable, in generation 1."""
        client = Client("client", "/127.0.0.1", 3)
        joined: list[JoinGroupResponse] = []
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
        )
        self.coordinator.join(request, client, joined.append)
        self.timers.advance(0)
        (response,) = joined
        synced: list[SyncGroupResponse] = []
        self.coordinator.sync(
            SyncGroupRequest(
                group_id=group_id,
                generation_id=response.generation_id,
                member_id=response.member_id,
            ),
            client,
            synced.append,
        )
        assert [each.error_code for each in synced] == [ErrorCode.NONE]
        return response.member_id


def codes(response: OffsetCommitResponse | OffsetDeleteResponse) -> dict[str, dict[int, ErrorCode]]:
    """What became of each partition."""
    return {
        topic.name: {
            partition.partition_index: ErrorCode(partition.error_code)
            for partition in topic.partitions
        }
        for topic in response.topics
    }


def only(records: list[CoordinatorRecord]) -> CoordinatorRecord:
    (record,) = records
    return record
