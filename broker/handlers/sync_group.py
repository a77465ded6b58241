"""SyncGroup (key 14): hand out, or get, what each member of a group reads.

Versions 0-5.

Promise: a member gets exactly the bytes that the leader assigned to it, and only once they are on
disk (unless `flush.before.ack` is off). The reply to a follower waits for the leader's request.

Version by version: 1 throttle time · 2 throttling after the reply · 3 static members (KIP-345) ·
4 flexible · 5 protocol type and name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klamm.broker.groups.client import client_of
from klamm.broker.replies import Pending
from klamm.coordinator.errors import CoordinatorError
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext

API_KEY = 14
VERSIONS = (0, 5)

PROTOCOL_FROM = 5


def handle(
    request: SyncGroupRequest, context: RequestContext
) -> SyncGroupResponse | Pending[SyncGroupResponse]:
    client = client_of(context)
    try:
        if context.api_version >= PROTOCOL_FROM and None in (
            request.protocol_type,
            request.protocol_name,
        ):
            raise CoordinatorError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if not request.group_id:
            raise CoordinatorError(ErrorCode.INVALID_GROUP_ID)
        shard = context.broker.groups.shard_of(request.group_id)
        return shard.call_later(
            lambda reply: shard.coordinator.sync(request, client, reply),
            lambda reply: shard.coordinator.abandon(request.group_id, reply),
        )
    except CoordinatorError as error:
        return error_response(request, error.code)


def error_response(request: SyncGroupRequest, code: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code)
