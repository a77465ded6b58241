"""Heartbeat: a member says that it is alive, and hears when it has to join again."""

from __future__ import annotations

from klamm.coordinator.classic.rebalance import Rebalances
from klamm.coordinator.classic.state import ClassicState
from klamm.coordinator.errors import CoordinatorError
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def heartbeat(rebalances: Rebalances, request: HeartbeatRequest) -> HeartbeatResponse:
    try:
        return HeartbeatResponse(error_code=_beat(rebalances, request))
    except CoordinatorError as error:
        return HeartbeatResponse(error_code=error.code)


def _beat(rebalances: Rebalances, request: HeartbeatRequest) -> ErrorCode:
    if not request.group_id:
        raise CoordinatorError(ErrorCode.INVALID_GROUP_ID)
    group = rebalances.find(request.group_id)
    if group is None:
        raise CoordinatorError(ErrorCode.UNKNOWN_MEMBER_ID)
    if group.state is ClassicState.DEAD:
        raise CoordinatorError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise CoordinatorError(ErrorCode.ILLEGAL_GENERATION)
    rebalances.restart_session(group, request.member_id)
    if group.state is ClassicState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE
