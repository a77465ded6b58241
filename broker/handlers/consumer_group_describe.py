"""ConsumerGroupDescribe (key 69): consumer groups with their members.

Versions 0-1.

Promise: state, epochs, and of each member what it subscribes to, has and shall have, all of one
moment. A group that does not exist, or is of another kind, is GROUP_ID_NOT_FOUND.

With `consumer` not in `group.coordinator.rebalance.protocols` the answer is UNSUPPORTED_VERSION.

Version by version: 1 which protocol a member speaks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klamm.broker.authorized_operations import GROUP_OPERATIONS
from klamm.broker.coordinator_shard import when_durable
from klamm.broker.replies import Pending
from klamm.broker.steps import Stepwise
from klamm.coordinator.errors import CoordinatorError
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext
    from klamm.broker.groups.shard import GroupShard

API_KEY = 69
VERSIONS = (0, 1)


async def handle(
    request: ConsumerGroupDescribeRequest, context: RequestContext
) -> ConsumerGroupDescribeResponse | Pending[ConsumerGroupDescribeResponse]:
    if not context.broker.groups.serves_consumer_protocol:
        return error_response(request, ErrorCode.UNSUPPORTED_VERSION)
    # In a task even for one group: it may have thousands of members.
    return await context.broker.steps.run(describe_all(request, context))


def describe_all(
    request: ConsumerGroupDescribeRequest, context: RequestContext
) -> Stepwise[ConsumerGroupDescribeResponse | Pending[ConsumerGroupDescribeResponse]]:
    groups = context.broker.groups
    described: list[DescribedGroup] = []
    shards: list[GroupShard] = []
    for group_id in request.group_ids:
        try:
            if not group_id:
                raise CoordinatorError(ErrorCode.INVALID_GROUP_ID)
            shard = groups.shard_of(group_id)
            group = shard.coordinator.describe_consumer_group(group_id)
            shards.append(shard)
        except CoordinatorError as error:
            group = DescribedGroup(group_id=group_id, error_code=error.code)
        if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = GROUP_OPERATIONS
        described.append(group)
        yield None
    return when_durable(ConsumerGroupDescribeResponse(groups=described), shards)


def error_response(
    request: ConsumerGroupDescribeRequest, code: ErrorCode
) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(
        groups=[
            DescribedGroup(group_id=group_id, error_code=code) for group_id in request.group_ids
        ]
    )
