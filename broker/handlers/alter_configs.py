"""AlterConfigs (key 33): say all configs of a resource anew.

Versions 0-2.

Promise: what was set before and is not named goes; otherwise as IncrementalAlterConfigs. Levels of
loggers can't be set with it.

Version by version: 1 throttling after the reply · 2 flexible.

Deviation: a resource that is named twice is refused; Kafka leaves the request without an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klamm.broker.metadata.config_values import Change, Operation
from klamm.broker.metadata.configs import read_alterations
from klamm.broker.metadata.topics import Refused
from klamm.broker.steps import Stepwise, collect, let_go
from klamm.log.work import run_inline
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext

API_KEY = 33
VERSIONS = (0, 2)


async def handle(request: AlterConfigsRequest, context: RequestContext) -> AlterConfigsResponse:
    broker = context.broker
    wanted = read_alterations(request.resources, change, replaces_all=True)
    outcomes = await broker.controller.alter_configs(wanted, validate_only=request.validate_only)
    responses = await broker.steps.run(collect(map(result, request.resources, outcomes)))
    await broker.steps.run(let_go(outcomes))
    return AlterConfigsResponse(responses=responses)


def change(config: AlterableConfig) -> Change:
    return Change(config.name, Operation.SET, config.value)


def result(resource: AlterConfigsResource, refused: Refused | None) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=ErrorCode.NONE if refused is None else refused.code,
        error_message=None if refused is None else refused.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def error_response(request: AlterConfigsRequest, code: ErrorCode) -> AlterConfigsResponse:
    return run_inline(refuse_all(request, code))


def refuse_all(request: AlterConfigsRequest, code: ErrorCode) -> Stepwise[AlterConfigsResponse]:
    refused = Refused(code)
    responses = (result(resource, refused) for resource in request.resources)
    return AlterConfigsResponse(responses=(yield from collect(responses)))
