"""InitProducerId (key 22): an identity for an idempotent producer.

Versions 0-5, for producers without a transactional id.

Promise: a producer id that no other producer ever gets, with epoch 0. A producer with a
transactional id is told COORDINATOR_NOT_AVAILABLE: there are no transactions yet.

Version by version: 2 flexible · 3 id and epoch of before (KIP-360) · 4 PRODUCER_FENCED · 5 as 4.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from klamm.wire.errors import ErrorCode
from klamm.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext

API_KEY = 22
VERSIONS = (0, 5)

NONE = -1


def handle(
    request: InitProducerIdRequest, context: RequestContext
) -> InitProducerIdResponse | Awaitable[InitProducerIdResponse]:
    if (request.producer_id == NONE) != (request.producer_epoch == NONE):
        return error_response(request, ErrorCode.INVALID_REQUEST)
    if request.transactional_id == "":
        return error_response(request, ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return error_response(request, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    producer_id = context.broker.producer_ids.next_nowait()
    if producer_id is None:
        return take_block(context)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


async def take_block(context: RequestContext) -> InitProducerIdResponse:
    producer_id = await context.broker.producer_ids.next()
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def error_response(request: InitProducerIdRequest, code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=NONE, producer_epoch=NONE)
