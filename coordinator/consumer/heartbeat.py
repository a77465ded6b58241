"""ConsumerGroupHeartbeat: one request to join, to stay, to subscribe, to give up and to leave.

The order of a heartbeat: find the group and the member, or make them; store what the member says of
itself; give the group a new epoch if that or a topic has changed; compute a target for the epoch;
let the member take a step towards it. All of it is one batch of records.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from uuid import UUID

from klamm.coordinator.classic.replies import append_error_code
from klamm.coordinator.consumer import records
from klamm.coordinator.consumer.config import heartbeat_interval_ms
from klamm.coordinator.consumer.group import ConsumerGroup
from klamm.coordinator.consumer.groups import Groups
from klamm.coordinator.consumer.joining import (
    check_epoch,
    check_room,
    find_static_member,
    join_static_member,
    new_member_id,
)
from klamm.coordinator.consumer.member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    ConsumerMember,
)
from klamm.coordinator.consumer.reconciliation import OwnedPartitions
from klamm.coordinator.consumer.update import ExpressionChange, MemberUpdate
from klamm.coordinator.consumer.validation import NOT_GIVEN_MS, check_heartbeat
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.group import Shard
from klamm.coordinator.ports import Client, CoordinatorRecord
from klamm.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)


class Heartbeats:
    def __init__(self, shard: Shard, groups: Groups) -> None:
        self._shard = shard
        self._groups = groups

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: Client
    ) -> ConsumerGroupHeartbeatResponse:
        try:
            assignors = self._shard.settings.group_consumer_assignors
            check_heartbeat(request, client.api_version, assignors)
            if request.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
                return self._leave(request)
            return self._heartbeat(request, client)
        except CoordinatorError as error:
            return ConsumerGroupHeartbeatResponse(
                error_code=append_error_code(error), error_message=error.message
            )

    def _heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: Client
    ) -> ConsumerGroupHeartbeatResponse:
        written: list[CoordinatorRecord] = []
        is_joining = request.member_epoch == JOIN_EPOCH
        owned = _owned_partitions(request)
        if is_joining:
            group = self._groups.find_or_make(request.group_id, written)
        else:
            group = self._groups.find(request.group_id, f"Consumer group {request.group_id} not")
        check_room(group, request.member_id, self._shard.settings.group_consumer_max_size)
        if is_joining:
            before = self._joining_member(group, request, written)
        else:
            before = _known_member(group, request)
            check_epoch(before, request.member_epoch, owned)

        update = self._groups.update(group, before, _said(before, request, client), written)
        names_changed = update.store_subscription()
        change = update.update_expression()
        update.update_metadata(
            has_subscription_changed=names_changed
            or change is ExpressionChange.UPDATED_AND_RESOLVED
        )
        epoch, target = update.update_target()
        update.reconcile(
            epoch,
            target,
            owned,
            has_subscription_changed=names_changed or change is not ExpressionChange.NONE,
        )
        self._groups.commit(update)
        return self._response(request, update)

    def _joining_member(
        self,
        group: ConsumerGroup,
        request: ConsumerGroupHeartbeatRequest,
        written: list[CoordinatorRecord],
    ) -> ConsumerMember:
        member_id = request.member_id or new_member_id(self._shard.new_uuid)
        if request.instance_id is None:
            return group.members.get(member_id) or ConsumerMember(member_id)
        return join_static_member(group, request.instance_id, member_id, written, is_classic=False)

    def _response(
        self, request: ConsumerGroupHeartbeatRequest, update: MemberUpdate
    ) -> ConsumerGroupHeartbeatResponse:
        """The assignment is in it when it has changed, and when the member says everything about
        itself, because it may have missed a response."""
        member = update.member
        is_full_request = (
            request.rebalance_timeout_ms != NOT_GIVEN_MS
            and (
                request.subscribed_topic_names is not None
                or request.subscribed_topic_regex is not None
            )
            and request.topic_partitions is not None
        )
        response = ConsumerGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.member_epoch,
            heartbeat_interval_ms=heartbeat_interval_ms(self._shard, request.group_id),
        )
        if (
            request.member_epoch == JOIN_EPOCH
            or is_full_request
            or member.assigned != update.before.assigned
        ):
            response.assignment = Assignment(
                topic_partitions=[
                    TopicPartitions(topic_id=topic_id, partitions=sorted(epochs))
                    for topic_id, epochs in member.assigned.items()
                ]
            )
        return response

    def _leave(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        group = self._groups.find(request.group_id, f"Group {request.group_id} not")
        member = _known_member(group, request)
        if request.member_epoch == LEAVE_STATIC_EPOCH:
            # It keeps its partitions until it is back or its session ends.
            away = replace(
                member,
                member_epoch=LEAVE_STATIC_EPOCH,
                assigned={
                    topic_id: dict.fromkeys(epochs, 0)
                    for topic_id, epochs in member.assigned.items()
                },
                pending_revocation={},
            )
            self._shard.journal.append([records.current_assignment_record(group.group_id, away)])
        else:
            self._groups.removals.remove(group, [member])
        return ConsumerGroupHeartbeatResponse(
            member_id=request.member_id, member_epoch=request.member_epoch
        )


def _known_member(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> ConsumerMember:
    """
    Raises:
        CoordinatorError: UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.
    """
    if request.instance_id is None:
        return group.member(request.member_id)
    return find_static_member(group, request.instance_id, request.member_id)


def _said(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, client: Client
) -> ConsumerMember:
    """The member with what it says now; what a request leaves out is as before."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        client_id=client.client_id,
        client_host=client.host,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms if timeout_ms == NOT_GIVEN_MS else timeout_ms
        ),
        subscribed_topic_names=(
            member.subscribed_topic_names if names is None else frozenset(names)
        ),
        subscribed_topic_regex=member.subscribed_topic_regex if regex is None else regex,
        server_assignor=request.server_assignor or member.server_assignor,
        classic=None,
    )


def _owned_partitions(request: ConsumerGroupHeartbeatRequest) -> OwnedPartitions:
    if request.topic_partitions is None:
        return None
    owned: dict[UUID, set[int]] = defaultdict(set)
    for topic in request.topic_partitions:
        owned[topic.topic_id].update(topic.partitions)
    return {topic_id: frozenset(partitions) for topic_id, partitions in owned.items()}
