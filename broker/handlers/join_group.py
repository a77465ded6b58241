"""JoinGroup (key 11): become a member of a group, or take part in its rebalance.

Versions 0-9.

Promise: the reply comes when the join phase of the rebalance is over: when everybody has joined, or
when the longest rebalance timeout has passed and the others are out. A lone consumer starts at
once, because `group.initial.rebalance.delay.ms` is 0 by default (Kafka: 3 seconds). A connection
that closes meanwhile loses its reply, not its membership.

Version by version: 1 rebalance timeout · 2 throttle time · 3 throttling after the reply ·
4 MEMBER_ID_REQUIRED (KIP-394) · 5 static members (KIP-345) · 6 flexible · 7 protocol type ·
8 reason · 9 skip assignment (KIP-814).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from klamm.broker.groups.client import client_of
from klamm.broker.replies import Pending
from klamm.coordinator.errors import CoordinatorError
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext

API_KEY = 11
VERSIONS = (0, 9)

NULL_PROTOCOL_FROM = 7


def handle(
    request: JoinGroupRequest, context: RequestContext
) -> JoinGroupResponse | Pending[JoinGroupResponse]:
    client = client_of(context)
    finish = partial(name_no_protocol, version=context.api_version)
    try:
        if not request.group_id:
            raise CoordinatorError(ErrorCode.INVALID_GROUP_ID)
        shard = context.broker.groups.shard_of(request.group_id)
        return shard.call_later(
            lambda reply: shard.coordinator.join(request, client, reply),
            lambda reply: shard.coordinator.abandon(request.group_id, reply),
            finish,
        )
    except CoordinatorError as error:
        response = error_response(request, error.code)
        if error.code is ErrorCode.INVALID_GROUP_ID:
            response.member_id = request.member_id
        finish(response)
        return response


def name_no_protocol(response: JoinGroupResponse, version: int) -> None:
    """That there is no protocol is said by null, or by an empty name where there is no null."""
    response.protocol_name = response.protocol_name or (
        None if version >= NULL_PROTOCOL_FROM else ""
    )


def error_response(request: JoinGroupRequest, code: ErrorCode) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code)
