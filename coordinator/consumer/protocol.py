"""The consumer group protocol of one shard: what the broker and the other protocols call.

A command decides, appends what has to be stored, and only then changes notes and timers, and
answers. If the log refuses, everything is as it was before, and the requester is told.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from klamm.coordinator.classic.protocol import ClassicProtocol
from klamm.coordinator.consumer.classic_members import ClassicMembers
from klamm.coordinator.consumer.config import session_timeout_ms
from klamm.coordinator.consumer.describe import describe
from klamm.coordinator.consumer.group import ConsumerGroup
from klamm.coordinator.consumer.groups import Groups
from klamm.coordinator.consumer.heartbeat import Heartbeats
from klamm.coordinator.consumer.replay import replay
from klamm.coordinator.consumer.topics import SubscribedTopics
from klamm.coordinator.group import Shard
from klamm.coordinator.ports import Client
from klamm.wire.messages.consumer_group_describe import DescribedGroup
from klamm.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from klamm.wire.schema import Message


class ConsumerProtocol:
    """
    Args:
        classic: where groups come from and go to that change their protocol.

    Attributes:
        classic_members: JoinGroup, SyncGroup, Heartbeat and LeaveGroup of consumer groups.
    """

    def __init__(self, shard: Shard, classic: ClassicProtocol) -> None:
        self._shard = shard
        self._topics = SubscribedTopics(shard.topics)
        self._groups = Groups(shard, self._topics, classic)
        self._heartbeats = Heartbeats(shard, self._groups)
        self.classic_members = ClassicMembers(shard, self._groups)

    # Requests.

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: Client
    ) -> ConsumerGroupHeartbeatResponse:
        return self._heartbeats.heartbeat(request, client)

    def describe(self, group_id: str) -> DescribedGroup:
        """The group for ConsumerGroupDescribe, or why there is none to describe."""
        return describe(self._shard, group_id)

    # The log.

    def replay(self, key: Any, value: Message | None) -> None:
        """A record of the log with one of the keys in `replay.RECORD_KEYS`."""
        replay(self._shard.groups, key, value)

    def on_loaded(self) -> None:
        """The whole log was replayed: from now on, members have to send heartbeats."""
        sessions = self._groups.removals.sessions
        for group in self._consumer_groups():
            timeout_ms = session_timeout_ms(self._shard, group.group_id)
            for member in group.members.values():
                sessions.restart(group.group_id, member, timeout_ms)
                sessions.await_revocation(group.group_id, member)

    def on_unloaded(self) -> None:
        """This broker serves the shard no longer."""
        for group in self._consumer_groups():
            for member_id in group.members:
                self._groups.removals.forget(group, member_id)

    # The world.

    def on_topics_changed(self, names: Iterable[str]) -> None:
        """Topics came, went or grew. Groups that read them look at them with the next heartbeat."""
        changed = tuple(names)
        self._topics.on_changed(changed)
        for group in self._consumer_groups():
            if any(map(group.is_subscribed_to, changed)):
                group.is_metadata_current = False

    def _consumer_groups(self) -> list[ConsumerGroup]:
        return [group for group in self._shard.groups.values() if isinstance(group, ConsumerGroup)]
