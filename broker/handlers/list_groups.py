"""ListGroups (key 16): the groups of this broker.

Versions 0-5.

Promise: every group that exists during the whole request is listed once. States and types are
compared without regard to case; those that there are none of match nothing, as in Kafka.

Version by version: 1 throttle time · 2 throttling after the reply · 3 flexible · 4 states ·
5 types (KIP-848).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klamm.broker.coordinator_shard import when_durable
from klamm.broker.replies import Steps
from klamm.coordinator.errors import CoordinatorError
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext

API_KEY = 16
VERSIONS = (0, 5)


def handle(request: ListGroupsRequest, context: RequestContext) -> Steps[ListGroupsResponse]:
    states = {state.lower().strip() for state in request.states_filter}
    types = {group_type.lower() for group_type in request.types_filter}
    listed: list[ListedGroup] = []
    try:
        shards = context.broker.groups.shards()
    except CoordinatorError as error:
        return error_response(request, error.code)
    for shard in shards:
        for group in shard.coordinator.list_groups():
            if (not states or group.group_state.lower() in states) and (
                not types or group.group_type in types
            ):
                listed.append(group)
            yield None
    return when_durable(ListGroupsResponse(groups=listed), shards)


def error_response(request: ListGroupsRequest, code: ErrorCode) -> ListGroupsResponse:
    return ListGroupsResponse(error_code=code)
