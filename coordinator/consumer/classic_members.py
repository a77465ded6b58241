"""Members of consumer groups that speak the classic protocol: JoinGroup, SyncGroup, Heartbeat and
LeaveGroup, while a group moves from one protocol to the other.

Nobody waits for others here. JoinGroup takes the same steps as a heartbeat of the consumer protocol
and answers at once, with the member epoch as generation. SyncGroup answers with what the member
has. Heartbeat says REBALANCE_IN_PROGRESS when the member has something to do, which it does by
joining again. There is no leader: the coordinator assigns.
"""

from __future__ import annotations

from klamm.coordinator.classic.leave import BATCH_VERSION
from klamm.coordinator.classic.replies import append_error_code, join_refused, sync_refused
from klamm.coordinator.classic.subscription import CONSUMER_PROTOCOL_TYPE
from klamm.coordinator.classic.sync import PROTOCOL_VERSION
from klamm.coordinator.consumer.classic_join import ClassicJoins
from klamm.coordinator.consumer.embedded import encoded_assignment
from klamm.coordinator.consumer.group import ConsumerGroup
from klamm.coordinator.consumer.groups import Groups
from klamm.coordinator.consumer.joining import find_static_member, known_static_member
from klamm.coordinator.consumer.member import ClassicDetails, ConsumerMember
from klamm.coordinator.consumer.state import MemberState
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.group import Shard
from klamm.coordinator.ports import Client
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from klamm.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from klamm.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from klamm.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class ClassicMembers:
    """All methods but `serves` are for groups that it is true of."""

    def __init__(self, shard: Shard, groups: Groups) -> None:
        self._shard = shard
        self._groups = groups
        self._sessions = groups.removals.sessions
        self._joins = ClassicJoins(shard, groups)

    def serves(self, group_id: str) -> bool:
        """Whether requests of the classic protocol about this group are answered here. An empty
        group is not: it becomes a classic one if somebody joins."""
        group = self._shard.groups.get(group_id)
        return isinstance(group, ConsumerGroup) and not group.is_empty

    def join(self, request: JoinGroupRequest, client: Client) -> JoinGroupResponse:
        try:
            return self._joins.join(self._group(request.group_id), request, client)
        except CoordinatorError as error:
            return join_refused(append_error_code(error))

    def sync(self, request: SyncGroupRequest, client: Client) -> SyncGroupResponse:
        try:
            return self._sync(self._group(request.group_id), request, client)
        except CoordinatorError as error:
            return sync_refused(error.code)

    def heartbeat(self, request: HeartbeatRequest, client: Client) -> HeartbeatResponse:
        try:
            code = self._heartbeat(self._group(request.group_id), request)
        except CoordinatorError as error:
            code = error.code
        return HeartbeatResponse(error_code=code)

    def leave(self, request: LeaveGroupRequest, client: Client) -> LeaveGroupResponse:
        is_batch = client.api_version >= BATCH_VERSION
        one = MemberIdentity(member_id=request.member_id)
        try:
            responses = self._leave(
                self._group(request.group_id), request.members if is_batch else [one]
            )
        except CoordinatorError as error:
            return LeaveGroupResponse(error_code=append_error_code(error))
        if is_batch:
            return LeaveGroupResponse(members=responses)
        return LeaveGroupResponse(error_code=responses[0].error_code)

    def _group(self, group_id: str) -> ConsumerGroup:
        return self._groups.find(group_id, f"Group {group_id} not")

    def _sync(
        self, group: ConsumerGroup, request: SyncGroupRequest, client: Client
    ) -> SyncGroupResponse:
        has_protocol = request.protocol_type is not None and request.protocol_name is not None
        if client.api_version >= PROTOCOL_VERSION and not has_protocol:
            raise CoordinatorError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        member, classic = _classic_member(
            group, request.member_id, request.group_instance_id, request.generation_id
        )
        if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or (
            request.protocol_name not in (None, classic.protocols[0].name)
        ):
            raise CoordinatorError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if (
            group.assignment_epoch > member.member_epoch
            and member.state is not MemberState.UNREVOKED_PARTITIONS
        ):
            self._sessions.await_join(group, member)
            raise CoordinatorError(ErrorCode.REBALANCE_IN_PROGRESS)
        self._sessions.end_sync(group.group_id, member.member_id)
        self._sessions.restart(group.group_id, member)
        return SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=encoded_assignment(
                member.assigned, self._shard.topics, for_metadata=classic.protocols[0].metadata
            ),
        )

    def _heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest) -> ErrorCode:
        member, _ = _classic_member(
            group, request.member_id, request.group_instance_id, request.generation_id
        )
        self._sessions.restart(group.group_id, member)
        if (
            member.member_epoch < group.assignment_epoch
            or member.state is MemberState.UNREVOKED_PARTITIONS
            or (
                member.state is MemberState.UNRELEASED_PARTITIONS
                and not _waits_for_others(group, member)
            )
        ):
            self._sessions.await_join(group, member)
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def _leave(
        self, group: ConsumerGroup, identities: list[MemberIdentity]
    ) -> list[MemberResponse]:
        """Remove all that can be removed, in one step.

        Raises:
            CoordinatorError: the log refuses that.
        """
        leaving: dict[str, ConsumerMember] = {}
        responses = []
        for identity in identities:
            response = MemberResponse(
                member_id=identity.member_id, group_instance_id=identity.group_instance_id
            )
            responses.append(response)
            try:
                member = _leaving_member(group, identity)
                leaving[member.member_id] = member
            except CoordinatorError as error:
                response.error_code = error.code
        if leaving:
            self._groups.removals.remove(group, leaving.values())
        return responses


def _classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> tuple[ConsumerMember, ClassicDetails]:
    """
    Raises:
        CoordinatorError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID or ILLEGAL_GENERATION.
    """
    if instance_id is None:
        member = group.member(member_id)
    else:
        member = find_static_member(group, instance_id, member_id)
    if member.classic is None:
        raise CoordinatorError(ErrorCode.UNKNOWN_MEMBER_ID)
    if generation != member.member_epoch:
        raise CoordinatorError(ErrorCode.ILLEGAL_GENERATION)
    return member, member.classic


def _waits_for_others(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether a partition that the member shall get has not been given up yet."""
    return any(
        partition not in member.assigned.get(topic_id, ()) and group.has_owner(topic_id, partition)
        for topic_id, partitions in group.target.get(member.member_id, {}).items()
        for partition in partitions
    )


def _leaving_member(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    """
    Raises:
        CoordinatorError: UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.
    """
    if identity.group_instance_id is None:
        return group.member(identity.member_id)
    if not identity.member_id:
        return known_static_member(group, identity.group_instance_id)
    return find_static_member(group, identity.group_instance_id, identity.member_id)
