"""IncrementalAlterConfigs (key 44): set configs, take them back, append to lists, subtract.

Versions 0-1.

Promise: all that can be altered of a request is altered in one durable step, and is in force when
the reply leaves: for every log of a topic, for the broker itself, for running groups. One mistake
refuses its whole resource, and no other. Levels of loggers last as long as the process.

Version by version: 1 flexible.

Deviation: an operation that there is not refuses its resource; Kafka then fails on all of the
request but brokers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klamm.broker.metadata.config_values import Change
from klamm.broker.metadata.configs import read_alterations
from klamm.broker.metadata.topics import Refused
from klamm.broker.steps import Stepwise, collect, let_go
from klamm.log.work import run_inline
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext

API_KEY = 44
VERSIONS = (0, 1)


async def handle(
    request: IncrementalAlterConfigsRequest, context: RequestContext
) -> IncrementalAlterConfigsResponse:
    broker = context.broker
    wanted = read_alterations(request.resources, change)
    outcomes = await broker.controller.alter_configs(wanted, validate_only=request.validate_only)
    responses = await broker.steps.run(collect(map(result, request.resources, outcomes)))
    await broker.steps.run(let_go(outcomes))
    return IncrementalAlterConfigsResponse(responses=responses)


def change(config: AlterableConfig) -> Change:
    return Change(config.name, config.config_operation, config.value)


def result(resource: AlterConfigsResource, refused: Refused | None) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=ErrorCode.NONE if refused is None else refused.code,
        error_message=None if refused is None else refused.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def error_response(
    request: IncrementalAlterConfigsRequest, code: ErrorCode
) -> IncrementalAlterConfigsResponse:
    return run_inline(refuse_all(request, code))


def refuse_all(
    request: IncrementalAlterConfigsRequest, code: ErrorCode
) -> Stepwise[IncrementalAlterConfigsResponse]:
    refused = Refused(code)
    responses = (result(resource, refused) for resource in request.resources)
    return IncrementalAlterConfigsResponse(responses=(yield from collect(responses)))
