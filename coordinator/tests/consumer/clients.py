"""Clients as they should be: of the consumer protocol, over a network that loses responses, and of
the classic one."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from klamm.coordinator.consumer.embedded import read_assignment, read_subscription
from klamm.coordinator.tests.consumer.world import World
from klamm.wire.codec import encode
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from klamm.wire.messages.heartbeat import HeartbeatRequest
from klamm.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from klamm.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from klamm.wire.messages.stored.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)
from klamm.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from klamm.wire.schema import Message

REBALANCE_TIMEOUT_MS = 60_000
# After these, a client begins anew.
FENCED = {
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNRELEASED_INSTANCE_ID,
    ErrorCode.FENCED_INSTANCE_ID,
}
FENCED_CLASSIC = {
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


class ConsumerClient:
    """
    Attributes:
        assigned: what it was told last.
        used: what it reads; partitions that were taken away are used until it has finished.
        is_full: the next heartbeat says everything, because a response may have been lost.
    """

    def __init__(self, member_id: str, instance_id: str | None) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.epoch = 0
        self.topics: list[str] = []
        self.regex = ""
        self.assignor: str | None = None
        self.assigned: set[tuple[UUID, int]] = set()
        self.used: set[tuple[UUID, int]] = set()
        self.is_full = True

    @property
    def is_member(self) -> bool:
        return self.epoch > 0

    def subscribes_to(self, topic: str) -> bool:
        return topic in self.topics or re.fullmatch(self.regex, topic) is not None

    def lose_everything(self) -> None:
        self.epoch = 0
        self.is_full = True
        self.assigned.clear()
        self.used.clear()

    def finish_revocation(self) -> None:
        """Stop what was taken away, and begin what was given."""
        self.used = set(self.assigned)

    def join(self, world: World, *, is_lost: bool) -> None:
        self.lose_everything()
        self._send(world, self._request(reports=True), is_lost=is_lost)

    def heartbeat(self, world: World, *, reports: bool, is_lost: bool) -> None:
        self._send(world, self._request(reports=reports), is_lost=is_lost)

    def leave(self, world: World, *, is_temporary: bool) -> None:
        self.lose_everything()
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=self.member_id,
            instance_id=self.instance_id,
            member_epoch=-2 if is_temporary and self.instance_id else -1,
        )
        world.send(request, 1, "client")

    def _request(self, *, reports: bool) -> ConsumerGroupHeartbeatRequest:
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.instance_id,
        )
        if reports or self.is_full:
            by_topic: dict[UUID, list[int]] = defaultdict(list)
            for topic_id, partition in self.used:
                by_topic[topic_id].append(partition)
            request.topic_partitions = [
                TopicPartitions(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in by_topic.items()
            ]
        if self.is_full:
            request.rebalance_timeout_ms = REBALANCE_TIMEOUT_MS
            request.subscribed_topic_names = self.topics
            request.subscribed_topic_regex = self.regex
            request.server_assignor = self.assignor
        return request

    def _send(self, world: World, request: ConsumerGroupHeartbeatRequest, *, is_lost: bool) -> None:
        response = world.send(request, 1, "client")
        assert isinstance(response, ConsumerGroupHeartbeatResponse)
        if is_lost or response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE:
            self.is_full = True
        elif response.error_code in FENCED:
            self.lose_everything()
        else:
            assert response.error_code == ErrorCode.NONE, response
            self.epoch = response.member_epoch
            self.is_full = False
            if response.assignment is not None:
                self.assigned = {
                    (topic.topic_id, partition)
                    for topic in response.assignment.topic_partitions
                    for partition in topic.partitions
                }
                # What is given may be used at once, what is taken away needs its time.
                self.used |= self.assigned


class ClassicClient:
    """A consumer of the classic protocol that gives up everything whenever it joins.

    Replies may come later; what has to be done about them is done by `go_on`.
    """

    def __init__(
        self,
        name: str,
        instance_id: str | None = None,
        protocols: Sequence[str] = ("range",),
    ) -> None:
        self.name = name
        self.instance_id = instance_id
        self.protocols = protocols
        self.member_id = ""
        self.generation = -1
        self.topics: list[str] = []
        self.used: set[tuple[UUID, int]] = set()
        self.received: list[Message] = []
        # Whether an answer is still to come, and whether the next step is to join.
        self.is_waiting = False
        self.has_to_join = True

    @property
    def is_member(self) -> bool:
        return self.generation >= 0

    def lose_everything(self) -> None:
        self.member_id = ""
        self.generation = -1
        self.has_to_join = True
        self.used.clear()

    def leave(self, world: World) -> None:
        self.used.clear()
        request = LeaveGroupRequest(
            group_id="g",
            members=[MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)],
        )
        world.send(request, 5, self.name)

    def go_on(self, world: World) -> None:
        """Do what is due: hear what has come, or join, or send a heartbeat."""
        if self.received:
            self._hear(world, self.received.pop(0))
        elif not self.is_waiting:
            if self.has_to_join:
                self._join(world)
            else:
                request = HeartbeatRequest(
                    group_id="g",
                    generation_id=self.generation,
                    member_id=self.member_id,
                    group_instance_id=self.instance_id,
                )
                self._hear(world, world.send(request, 4, self.name))

    def _send(self, world: World, request: Message, version: int) -> None:
        self.is_waiting = True

        def reply(response: Message) -> None:
            self.is_waiting = False
            self.received.append(response)

        world.post(request, version, self.name, reply)

    def _join(self, world: World) -> None:
        self.used.clear()
        self.has_to_join = False
        subscription = ConsumerProtocolSubscription(topics=self.topics)
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=30_000,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=b"\0\1" + encode(subscription, 1))
                for name in self.protocols
            ],
        )
        self._send(world, request, 9)

    def _hear(self, world: World, response: Any) -> None:
        code = ErrorCode(response.error_code)
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            self.has_to_join = True
        elif code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            self.has_to_join = True
        elif code is not ErrorCode.NONE:
            assert code in FENCED_CLASSIC, code
            self.lose_everything()
        elif isinstance(response, JoinGroupResponse):
            self.member_id = response.member_id
            self.generation = response.generation_id
            self._sync(world, response)
        elif isinstance(response, SyncGroupResponse):
            self.used = {
                (found.topic_id, partition)
                for topic in read_assignment(response.assignment).assigned_partitions
                if (found := world.fakes.topics.find(topic.topic)) is not None
                for partition in topic.partitions
            }

    def _sync(self, world: World, joined: JoinGroupResponse) -> None:
        """The leader gives each partition to one of its subscribers, in turn."""
        given: dict[str, dict[str, list[int]]] = {one.member_id: {} for one in joined.members}
        subscriptions = {one.member_id: read_subscription(one.metadata) for one in joined.members}
        for name in sorted({topic for each in subscriptions.values() for topic in each.topics}):
            topic = world.fakes.topics.find(name)
            takers = [id_ for id_, each in subscriptions.items() if name in each.topics]
            for partition in range(topic.partition_count if topic else 0):
                taker = given[takers[partition % len(takers)]]
                taker.setdefault(name, []).append(partition)
        request = SyncGroupRequest(
            group_id="g",
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocol_name=joined.protocol_name,
            assignments=[
                SyncGroupRequestAssignment(member_id=id_, assignment=_assignment(partitions))
                for id_, partitions in given.items()
            ],
        )
        self._send(world, request, 5)


def _assignment(partitions: dict[str, list[int]]) -> bytes:
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=numbers)
            for topic, numbers in partitions.items()
        ]
    )
    return b"\0\1" + encode(assignment, 1)
