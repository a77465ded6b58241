"""DescribeGroups (key 15): classic groups with their members.

Versions 0-6.

Promise: state, protocol, and of each member what it said and what it was assigned, all of one
moment. A group that does not exist, or is of another kind, is described as Dead.

Version by version: 1 throttle time · 2 throttling after the reply · 3 authorised operations ·
4 instance ids · 5 flexible · 6 GROUP_ID_NOT_FOUND for groups that do not exist (KIP-1043).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klamm.broker.authorized_operations import GROUP_OPERATIONS
from klamm.broker.coordinator_shard import when_durable
from klamm.broker.replies import Pending
from klamm.broker.steps import Stepwise
from klamm.coordinator.errors import CoordinatorError
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext
    from klamm.broker.groups.shard import GroupShard

API_KEY = 15
VERSIONS = (0, 6)


async def handle(
    request: DescribeGroupsRequest, context: RequestContext
) -> DescribeGroupsResponse | Pending[DescribeGroupsResponse]:
    # In a task even for one group: it may have thousands of members.
    return await context.broker.steps.run(describe_all(request, context))


def describe_all(
    request: DescribeGroupsRequest, context: RequestContext
) -> Stepwise[DescribeGroupsResponse | Pending[DescribeGroupsResponse]]:
    described: list[DescribedGroup] = []
    shards: list[GroupShard] = []
    for group_id in request.groups:
        try:
            shard = context.broker.groups.shard_of(group_id)
            group = shard.coordinator.describe(group_id, context.api_version)
            shards.append(shard)
        except CoordinatorError as error:
            group = DescribedGroup(group_id=group_id, error_code=error.code)
        if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = GROUP_OPERATIONS
        described.append(group)
        yield None
    return when_durable(DescribeGroupsResponse(groups=described), shards)


def error_response(request: DescribeGroupsRequest, code: ErrorCode) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        groups=[DescribedGroup(group_id=group_id, error_code=code) for group_id in request.groups]
    )
