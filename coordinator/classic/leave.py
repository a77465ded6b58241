"""LeaveGroup: members go by themselves, or somebody removes them by their instance ids."""

from __future__ import annotations

from klamm.coordinator.classic.group import ClassicGroup
from klamm.coordinator.classic.rebalance import Rebalances
from klamm.coordinator.classic.replies import append_error_code
from klamm.coordinator.classic.state import ClassicState
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.ports import Client
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

# From this version on, a request names several members, and the response has a code for each.
BATCH_VERSION = 3


class Leaves:
    """The LeaveGroup requests to classic groups."""

    def __init__(self, rebalances: Rebalances) -> None:
        self._rebalances = rebalances

    def leave(self, request: LeaveGroupRequest, client: Client) -> LeaveGroupResponse:
        is_batch = client.api_version >= BATCH_VERSION
        one = MemberIdentity(member_id=request.member_id)
        identities = request.members if is_batch else [one]
        if not request.group_id:
            return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
        group = self._rebalances.find(request.group_id)
        if group is None:
            codes = [ErrorCode.UNKNOWN_MEMBER_ID] * len(identities)
        elif group.state is ClassicState.DEAD:
            return LeaveGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        else:
            try:
                codes = self._remove(group, identities)
            except CoordinatorError as error:
                return LeaveGroupResponse(error_code=append_error_code(error))
        if not is_batch:
            return LeaveGroupResponse(error_code=codes[0])
        return LeaveGroupResponse(
            members=[
                MemberResponse(
                    member_id=identity.member_id,
                    group_instance_id=identity.group_instance_id,
                    error_code=code,
                )
                for identity, code in zip(identities, codes, strict=True)
            ]
        )

    def _remove(self, group: ClassicGroup, identities: list[MemberIdentity]) -> list[ErrorCode]:
        """Remove those who can be removed, all in one step, and say for each why not.

        Raises:
            CoordinatorError: nobody would be left, and the log refuses to store that.
        """
        leaving: set[str] = set()
        codes = []
        for identity in identities:
            try:
                leaving.add(_leaving_id(group, identity, leaving))
                codes.append(ErrorCode.NONE)
            except CoordinatorError as error:
                codes.append(error.code)
        if leaving:
            pending = leaving & group.pending_members
            self._rebalances.remove(group, leaving - pending, pending)
        return codes


def _leaving_id(group: ClassicGroup, identity: MemberIdentity, leaving: set[str]) -> str:
    """The member id that somebody means who is not already leaving.

    Raises:
        CoordinatorError: there is none.
    """
    member_id, instance_id = identity.member_id, identity.group_instance_id
    owner = None if instance_id is None else group.static_members.get(instance_id)
    if member_id in leaving or owner in leaving:
        raise CoordinatorError(ErrorCode.UNKNOWN_MEMBER_ID)
    if not member_id:
        if owner is None:
            raise CoordinatorError(ErrorCode.UNKNOWN_MEMBER_ID)
        return owner
    if member_id not in group.pending_members:
        group.check_member(member_id, instance_id)
    return member_id
