"""The groups of one partition of `__consumer_offsets`: every request and every record finds here
the part that knows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from klamm.coordinator.classic.group import ClassicGroup
from klamm.coordinator.classic.protocol import ClassicProtocol
from klamm.coordinator.consumer.protocol import ConsumerProtocol
from klamm.coordinator.consumer.replay import RECORD_KEYS
from klamm.coordinator.group import Shard
from klamm.coordinator.offset_commits import OffsetCommit
from klamm.coordinator.offset_removal import remove_expired, remove_group, remove_orphans
from klamm.coordinator.offsets import Offsets
from klamm.coordinator.ports import (
    Client,
    CoordinatorRecord,
    OpenTransaction,
    Reply,
    TransactionMarker,
)
from klamm.coordinator.settings import GroupSettings
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from klamm.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from klamm.wire.messages.describe_groups import DescribedGroup
from klamm.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from klamm.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from klamm.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from klamm.wire.messages.list_groups import ListedGroup
from klamm.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from klamm.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from klamm.wire.messages.stored.classic_group import (
    GroupMetadataKey,
    LegacyOffsetCommitKey,
    OffsetCommitKey,
)
from klamm.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from klamm.wire.records.batch import NO_PRODUCER_ID
from klamm.wire.schema import Message

DEAD = "Dead"
# From this version of DescribeGroups on, a group that is not there is an error.
NOT_FOUND_FROM = 6
_KEY = attrgetter("key")


class GroupCoordinator:
    """
    The methods that are iterators do a bounded piece of work in each step, and yield where others
    may have their turn. All may raise CoordinatorError.
    """

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._classic = ClassicProtocol(shard)
        self._consumer = ConsumerProtocol(shard, self._classic)
        self._classic_members = self._consumer.classic_members
        self._offsets = Offsets(shard)
        self._replay: dict[type[Message], Callable[[Any, Any], None]] = {
            LegacyOffsetCommitKey: self._offsets.replay_legacy,
            OffsetCommitKey: self._offsets.replay_one,
            GroupMetadataKey: self._classic.replay_group_metadata,
            **dict.fromkeys(RECORD_KEYS, self._consumer.replay),
        }

    # --- life ---

    # The two ways in which what is stored becomes state.

    def replay(self, records: Sequence[CoordinatorRecord]) -> None:
        """What was written together, or a part of it."""
        if set(map(type, map(_KEY, records))) == {OffsetCommitKey}:
            # There may be very many of them, and only they are ever part of a transaction.
            if records[0].producer_id == NO_PRODUCER_ID:
                self._offsets.replay(records)
            else:
                self._offsets.replay_pending(records, records[0].producer_id)
            return
        for record in records:
            assert record.producer_id == NO_PRODUCER_ID
            self._replay[type(record.key)](record.key, record.value)

    def replay_marker(self, marker: TransactionMarker) -> None:
        self._offsets.replay_marker(marker)

    def reconfigure(self, settings: GroupSettings) -> None:
        """Obey other settings from the next step on."""
        self._shard.settings = settings

    def on_loaded(self) -> None:
        """The whole log was replayed."""
        self._classic.on_loaded()
        self._consumer.on_loaded()

    def on_unloaded(self) -> None:
        """This broker serves these groups no longer."""
        self._classic.on_unloaded()
        self._consumer.on_unloaded()

    def on_topics_changed(self, names: Iterable[str]) -> None:
        """Topics came, went or grew."""
        self._consumer.on_topics_changed(names)

    # --- the classic protocol, also of members of consumer groups ---

    def join(
        self, request: JoinGroupRequest, client: Client, reply: Reply[JoinGroupResponse]
    ) -> None:
        if self._classic_members.serves(request.group_id):
            reply(self._classic_members.join(request, client))
        else:
            self._classic.join(request, client, reply)

    def sync(
        self, request: SyncGroupRequest, client: Client, reply: Reply[SyncGroupResponse]
    ) -> None:
        if self._classic_members.serves(request.group_id):
            reply(self._classic_members.sync(request, client))
        else:
            self._classic.sync(request, client, reply)

    def abandon(
        self, group_id: str, reply: Reply[JoinGroupResponse] | Reply[SyncGroupResponse]
    ) -> None:
        """Nobody waits for this reply any more."""
        self._classic.abandon(group_id, reply)

    def heartbeat(self, request: HeartbeatRequest, client: Client) -> HeartbeatResponse:
        if self._classic_members.serves(request.group_id):
            return self._classic_members.heartbeat(request, client)
        return self._classic.heartbeat(request, client)

    def leave(self, request: LeaveGroupRequest, client: Client) -> LeaveGroupResponse:
        if self._classic_members.serves(request.group_id):
            return self._classic_members.leave(request, client)
        return self._classic.leave(request, client)

    # --- the consumer protocol ---

    def consumer_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: Client
    ) -> ConsumerGroupHeartbeatResponse:
        return self._consumer.heartbeat(request, client)

    def describe_consumer_group(self, group_id: str) -> DescribedConsumerGroup:
        return self._consumer.describe(group_id)

    # --- offsets ---

    def check_offset_commit(self, commit: OffsetCommit) -> None:
        """Decide whether the group takes it. The records of other commits change nothing that this
        depends on, as long as the group is there: several can be decided and then stored."""
        self._offsets.check_commit(commit)
        self._classic.on_offset_commit(commit.request.group_id, commit.request.member_id)

    def commit_offsets(self, commit: OffsetCommit) -> None:
        self.check_offset_commit(commit)
        self._offsets.store_commit(commit)

    def commit_transactional_offsets(
        self, commit: OffsetCommit, transaction: OpenTransaction
    ) -> None:
        """Unlike other commits, these keep no member alive: they come from a producer."""
        self._offsets.check_commit(commit)
        self._offsets.store_commit(commit, transaction)

    def fetch_offsets(
        self,
        request: OffsetFetchRequestGroup,
        response: OffsetFetchResponseGroup,
        *,
        require_stable: bool = False,
    ) -> Iterator[None]:
        return self._offsets.fetch(request, response, require_stable=require_stable)

    def delete_offsets(
        self, request: OffsetDeleteRequest, response: OffsetDeleteResponse
    ) -> Iterator[None]:
        return self._offsets.delete(request, response)

    def remove_expired(self, now_ms: int) -> Iterator[None]:
        return remove_expired(self._shard, self._offsets, now_ms)

    def remove_orphans(self) -> Iterator[None]:
        return remove_orphans(self._shard, self._offsets)

    # --- groups of all kinds ---

    def has_group(self, group_id: str) -> bool:
        return group_id in self._shard.groups

    def describe(self, group_id: str, api_version: int) -> DescribedGroup:
        """A group for DescribeGroups, which knows only classic ones."""
        group = self._shard.groups.get(group_id)
        if isinstance(group, ClassicGroup):
            return group.describe()
        described = DescribedGroup(group_id=group_id, group_state=DEAD)
        if api_version >= NOT_FOUND_FROM:
            described.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            described.error_message = (
                f"Group {group_id} not found."
                if group is None
                else f"Group {group_id} is not a classic group."
            )
        return described

    def list_groups(self) -> Iterator[ListedGroup]:
        """All groups that are here at the begin and still when it is their turn."""
        for group_id in list(self._shard.groups):
            group = self._shard.groups.get(group_id)
            if group is not None:
                yield ListedGroup(
                    group_id=group_id,
                    protocol_type=group.protocol_type,
                    group_state=group.state_name,
                    group_type=group.TYPE,
                )

    def delete(self, group_id: str) -> Iterator[None]:
        """Remove a group with all its offsets."""
        return remove_group(self._shard, self._offsets, group_id)
