"""The answers of the classic protocol, in the shape in which Kafka gives each of them.

A protocol name that is empty says that there is none; whether it leaves as null is a matter of the
version, and of the handler.
"""

from __future__ import annotations

from klamm.coordinator.classic.group import ClassicGroup
from klamm.coordinator.errors import CoordinatorError
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from klamm.wire.messages.sync_group import SyncGroupResponse

# In place of a member id: the request did not have one, or it is not to be used any more.
NO_MEMBER_ID = ""

_APPEND_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def append_error_code(error: CoordinatorError) -> ErrorCode:
    """What a member is told when the log refused to store the group."""
    return _APPEND_ERRORS.get(error.code, error.code)


def join_refused(code: ErrorCode, member_id: str = NO_MEMBER_ID) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, member_id=member_id)


def joined(
    group: ClassicGroup, member_id: str, *, with_members: bool, skip_assignment: bool = False
) -> JoinGroupResponse:
    """The generation that is on; the leader needs the members with what they said."""
    members = []
    if with_members:
        members = [
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata(group.protocol),
            )
            for member in group.members.values()
        ]
    assert group.leader is not None, f"{group.group_id}: members, but no leader"
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader,
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=members,
    )


def sync_refused(code: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code)


def synced(group: ClassicGroup, member_id: str) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        assignment=group.members[member_id].assignment,
    )
