"""LeaveGroup (key 13): members leave a group, or are removed from it.

Versions 0-5.

Promise: those who have left are members no more when the reply leaves, and the others rebalance.
That the last member has left is on disk by then (unless `flush.before.ack` is off).

Version by version: 1 throttle time · 2 throttling after the reply · 3 several members, static ones
by instance id (KIP-345) · 4 flexible · 5 reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klamm.broker.groups.client import client_of
from klamm.broker.replies import Pending
from klamm.coordinator.errors import CoordinatorError
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext

API_KEY = 13
VERSIONS = (0, 5)


def handle(
    request: LeaveGroupRequest, context: RequestContext
) -> LeaveGroupResponse | Pending[LeaveGroupResponse]:
    client = client_of(context)
    try:
        if not request.group_id:
            raise CoordinatorError(ErrorCode.INVALID_GROUP_ID)
        return context.broker.groups.call(
            request.group_id, lambda coordinator: coordinator.leave(request, client)
        )
    except CoordinatorError as error:
        return error_response(request, error.code)


def error_response(request: LeaveGroupRequest, code: ErrorCode) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=code)
