"""A shard with both protocols, everything around it fake."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any
from uuid import UUID

from klamm.coordinator.classic.protocol import ClassicProtocol
from klamm.coordinator.consumer.protocol import ConsumerProtocol
from klamm.coordinator.consumer.replay import RECORD_KEYS
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.offset_commits import OffsetCommit
from klamm.coordinator.offsets import Offsets
from klamm.coordinator.ports import Client, CoordinatorRecord
from klamm.coordinator.settings import GroupSettings
from klamm.coordinator.tests.fakes import FakeShard
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from klamm.wire.messages.heartbeat import HeartbeatRequest
from klamm.wire.messages.join_group import JoinGroupRequest
from klamm.wire.messages.leave_group import LeaveGroupRequest
from klamm.wire.messages.offset_commit import OffsetCommitRequest
from klamm.wire.messages.stored.classic_group import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
)
from klamm.wire.messages.sync_group import SyncGroupRequest
from klamm.wire.schema import Message


class FakeBackground:
    """Work that waits until a test lets it go on."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def run(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        self.waiting.append(lambda: done(work()))

    def finish(self) -> None:
        waiting, self.waiting = self.waiting, []
        for step in waiting:
            step()


class World:
    """One shard; `replayed` sees every record on its way from the log into the state."""

    def __init__(self, settings: GroupSettings | None = None) -> None:
        self.fakes = FakeShard(settings)
        self.shard = self.fakes.shard
        self.shard.background = self.background = FakeBackground()
        self.configs: dict[str, int] = {}
        self.shard.group_configs = lambda group_id: self.configs
        numbers = count(1)
        self.shard.new_uuid = lambda: UUID(int=next(numbers))
        self.replayed: Callable[[CoordinatorRecord], None] = lambda record: None
        self.load()
        self.fakes.journal.replay = self._replay_and_tell

    def set(self, **settings: Any) -> None:
        self.shard.settings = replace(self.shard.settings, **settings)

    def load(self) -> None:
        """A shard that knows nothing but the log."""
        self.fakes.groups.clear()
        self.background.waiting.clear()
        for key in self.fakes.timers.remaining_ms():
            self.fakes.timers.cancel(key)
        self.classic = ClassicProtocol(self.shard)
        self.consumer = ConsumerProtocol(self.shard, self.classic)
        self.offsets = Offsets(self.shard)
        for record in self.fakes.journal.records:
            self.replay(record)

    def replay(self, record: CoordinatorRecord) -> None:
        if type(record.key) in RECORD_KEYS:
            self.consumer.replay(record.key, record.value)
            return
        if isinstance(record.key, OffsetCommitKey):
            self.offsets.replay((record,))
            return
        assert isinstance(record.key, GroupMetadataKey)
        assert record.value is None or isinstance(record.value, GroupMetadataValue)
        self.classic.replay_group_metadata(record.key, record.value)

    def _replay_and_tell(self, record: CoordinatorRecord) -> None:
        self.replayed(record)
        self.replay(record)

    def commit(self, request: OffsetCommitRequest) -> ErrorCode:
        """Commit offsets of topics that exist, as clients of both protocols can."""
        commit = OffsetCommit(
            request, self.fakes.topics, api_version=9, now_ms=0, metadata_max=4096
        )
        for _ in commit.prepare():
            pass
        try:
            self.offsets.check_commit(commit)
            self.offsets.store_commit(commit)
        except CoordinatorError as error:
            return error.code
        return ErrorCode.NONE

    def committed(self, group_id: str) -> dict[tuple[str, int], int]:
        return {
            (topic, partition): value.offset
            for topic, partitions in self.offsets.of(group_id).items()
            for partition, value in partitions.items()
        }

    def add_topic(self, name: str, partitions: int, racks: str | None = None) -> None:
        by_partition = [racks.split(",")] * partitions if racks else None
        self.fakes.topics.add(name, partitions, by_partition)
        self.consumer.on_topics_changed([name])

    def remove_topic(self, name: str) -> None:
        self.fakes.topics.remove(name)
        self.consumer.on_topics_changed([name])

    def send(self, request: Message, version: int, client_id: str) -> Any:
        """The response, or None if the request is parked."""
        answers: list[Any] = []
        self.post(request, version, client_id, answers.append)
        if isinstance(request, JoinGroupRequest):
            # A lone member has its generation at once.
            self.fakes.timers.advance()
        return answers[0] if answers else None

    def post(
        self, request: Message, version: int, client_id: str, reply: Callable[[Any], None]
    ) -> None:
        """The way to the protocol that serves the group."""
        client = Client(client_id, "/127.0.0.1", version)
        classic_members = self.consumer.classic_members
        match request:
            case ConsumerGroupHeartbeatRequest():
                reply(self.consumer.heartbeat(request, client))
            case JoinGroupRequest() if classic_members.serves(request.group_id):
                reply(classic_members.join(request, client))
            case JoinGroupRequest():
                self.classic.join(request, client, reply)
            case SyncGroupRequest() if classic_members.serves(request.group_id):
                reply(classic_members.sync(request, client))
            case SyncGroupRequest():
                self.classic.sync(request, client, reply)
            case HeartbeatRequest() if classic_members.serves(request.group_id):
                reply(classic_members.heartbeat(request, client))
            case HeartbeatRequest():
                reply(self.classic.heartbeat(request, client))
            case LeaveGroupRequest() if classic_members.serves(request.group_id):
                reply(classic_members.leave(request, client))
            case LeaveGroupRequest():
                reply(self.classic.leave(request, client))
            case _:
                raise AssertionError(request)
