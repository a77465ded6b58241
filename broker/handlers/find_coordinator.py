"""FindCoordinator (key 10): which broker coordinates a group or a transactional id.

Versions 0-6.

Promise: when a coordinator is named, its internal topic exists and the partition of the key is led;
the first request makes the topic and waits for it (Kafka answers COORDINATOR_NOT_AVAILABLE until
then, and clients ask again). The coordinator may still be loading: then it says so itself.

Groups (key type 0) and transactions (1) have coordinators. Share groups (2) are answered with
INVALID_REQUEST, as Kafka answers for a key type that it does not know.

Version by version: 1 key types and messages · 2 throttling after the reply · 3 flexible · 4 several
keys · 5 TRANSACTION_ABORTABLE · 6 share groups.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from klamm.broker.replies import Steps
from klamm.broker.steps import Stepwise
from klamm.log.errors import LogError
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext
    from klamm.broker.coordinator_service import CoordinatorService

    Service: TypeAlias = CoordinatorService[Any]

logger = logging.getLogger(__name__)

API_KEY = 10
VERSIONS = (0, 6)

GROUP, TRANSACTION = 0, 1
SEVERAL_KEYS_FROM = 4
NO_NODE = -1


def handle(
    request: FindCoordinatorRequest, context: RequestContext
) -> Steps[FindCoordinatorResponse]:
    service: Service
    if request.key_type == GROUP:
        service = context.broker.groups
    elif request.key_type == TRANSACTION:
        service = context.broker.transactions
    else:
        return error_response(request, ErrorCode.INVALID_REQUEST)
    if not service.is_topic_ready:
        return create_then_find(request, context, service)
    return (yield from find(request, context, service))


async def create_then_find(
    request: FindCoordinatorRequest, context: RequestContext, service: Service
) -> FindCoordinatorResponse:
    try:
        await service.create_topic()
    except LogError as error:
        logger.error("the topic of a coordinator can't be made: %s", error)
    return await context.broker.steps.run(find(request, context, service))


def find(
    request: FindCoordinatorRequest, context: RequestContext, service: Service
) -> Stepwise[FindCoordinatorResponse]:
    broker = context.broker
    keys: Iterable[str] = [request.key]
    if context.api_version >= SEVERAL_KEYS_FROM:
        keys = request.coordinator_keys
    host, port = broker.advertised_address(context.connection)
    coordinators = []
    for key in keys:
        if service.is_coordinator_of(key):
            found = Coordinator(key=key, node_id=broker.node_id, host=host, port=port)
        else:
            found = refusal(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        coordinators.append(found)
        yield None
    if context.api_version >= SEVERAL_KEYS_FROM:
        return FindCoordinatorResponse(coordinators=coordinators)
    return only_one(coordinators[0])


def only_one(found: Coordinator) -> FindCoordinatorResponse:
    """The reply of before version 4. It has a message even if all is well, as in Kafka."""
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=ErrorCode(found.error_code).name,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def refusal(key: str, code: ErrorCode) -> Coordinator:
    return Coordinator(key=key, node_id=NO_NODE, port=NO_NODE, error_code=code)


def error_response(request: FindCoordinatorRequest, code: ErrorCode) -> FindCoordinatorResponse:
    response = only_one(refusal(request.key, code))
    response.coordinators = [refusal(key, code) for key in request.coordinator_keys]
    for coordinator in response.coordinators:
        coordinator.error_message = code.name
    return response
