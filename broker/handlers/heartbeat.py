"""Heartbeat (key 12): a member of a classic group is alive.

Versions 0-4.

Promise: a member that sends this more often than its session timeout stays a member, and hears
REBALANCE_IN_PROGRESS when it has to join again. Sessions are measured by a clock that never jumps.
While the coordinator loads, the answer is NONE, as in Kafka: sessions begin anew after that.

Version by version: 1 throttle time · 2 throttling after the reply · 3 static members (KIP-345) ·
4 flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klamm.broker.groups.client import client_of
from klamm.broker.replies import Pending
from klamm.coordinator.errors import CoordinatorError
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext

API_KEY = 12
VERSIONS = (0, 4)


def handle(
    request: HeartbeatRequest, context: RequestContext
) -> HeartbeatResponse | Pending[HeartbeatResponse]:
    client = client_of(context)
    try:
        if not request.group_id:
            raise CoordinatorError(ErrorCode.INVALID_GROUP_ID)
        return context.broker.groups.call(
            request.group_id, lambda coordinator: coordinator.heartbeat(request, client)
        )
    except CoordinatorError as error:
        if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return HeartbeatResponse()
        return error_response(request, error.code)


def error_response(request: HeartbeatRequest, code: ErrorCode) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=code)
