"""ConsumerGroupHeartbeat (key 68): everything that a member of a consumer group has to say.

Versions 0-1. It is the whole protocol of KIP-848: join, subscribe, confirm what was given up, stay,
leave. The coordinator assigns; there is no other member to wait for.

Promise: a member that sends this more often than the session timeout stays a member; a partition
belongs to at most one member at a time; what the reply tells is on disk (unless `flush.before.ack`
is off for `__consumer_offsets`).

With `consumer` not in `group.coordinator.rebalance.protocols` the answer is UNSUPPORTED_VERSION.

Version by version: 1 regular expressions, member ids made by the client (KIP-1082).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klamm.broker.groups.client import client_of
from klamm.broker.replies import Pending
from klamm.coordinator.errors import CoordinatorError
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext

API_KEY = 68
VERSIONS = (0, 1)


def handle(
    request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> ConsumerGroupHeartbeatResponse | Pending[ConsumerGroupHeartbeatResponse]:
    groups = context.broker.groups
    if not groups.serves_consumer_protocol:
        return error_response(request, ErrorCode.UNSUPPORTED_VERSION)
    client = client_of(context)
    try:
        return groups.call(
            request.group_id, lambda coordinator: coordinator.consumer_heartbeat(request, client)
        )
    except CoordinatorError as error:
        return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)


def error_response(
    request: ConsumerGroupHeartbeatRequest, code: ErrorCode
) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=code)
