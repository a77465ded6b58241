"""DeleteGroups (key 42): remove groups with all their offsets.

Versions 0-2.

Promise: what is answered without an error is gone, also after a crash. Only groups without members
are removed; of one with very many offsets, some may be gone when somebody joins meanwhile.

Version by version: 1 throttling after the reply · 2 flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klamm.broker.coordinator_shard import when_durable
from klamm.broker.replies import Pending
from klamm.broker.steps import Stepwise
from klamm.coordinator.errors import CoordinatorError
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext
    from klamm.broker.groups.shard import GroupShard

API_KEY = 42
VERSIONS = (0, 2)


async def handle(
    request: DeleteGroupsRequest, context: RequestContext
) -> DeleteGroupsResponse | Pending[DeleteGroupsResponse]:
    return await context.broker.steps.run(delete_all(request, context))


def delete_all(
    request: DeleteGroupsRequest, context: RequestContext
) -> Stepwise[DeleteGroupsResponse | Pending[DeleteGroupsResponse]]:
    results: list[DeletableGroupResult] = []
    shards: list[GroupShard] = []
    for group_id in dict.fromkeys(request.groups_names):
        code = ErrorCode.NONE
        try:
            shard = context.broker.groups.shard_of(group_id)
            shards.append(shard)
            yield from shard.coordinator.delete(group_id)
        except CoordinatorError as error:
            code = error.code
        results.append(DeletableGroupResult(group_id=group_id, error_code=code))
        yield None
    return when_durable(DeleteGroupsResponse(results=results), shards)


def error_response(request: DeleteGroupsRequest, code: ErrorCode) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=group_id, error_code=code)
            for group_id in request.groups_names
        ]
    )
