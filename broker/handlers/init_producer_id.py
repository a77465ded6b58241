"""InitProducerId (key 22): an identity for an idempotent or transactional producer.

Versions 0-5.

Promise: a producer without a transactional id gets a producer id that no other producer ever gets,
with epoch 0. With one it gets an epoch above all that were given for this id: whoever had it before
is fenced, and what it left open is aborted. While that takes place the answer is
CONCURRENT_TRANSACTIONS. What is answered is on disk.

Version by version: 2 flexible · 3 id and epoch of before (KIP-360) · 4 PRODUCER_FENCED instead of
INVALID_PRODUCER_EPOCH · 5 TRANSACTION_ABORTABLE.
"""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING

from klamm.broker.replies import Pending
from klamm.broker.transactions.codes import known_code
from klamm.coordinator.transaction.coordinator import ProducerIdentity, TransactionCoordinator
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext

API_KEY = 22
VERSIONS = (0, 5)

FENCED_FROM = 4
NONE = -1

Reply = InitProducerIdResponse | Pending[InitProducerIdResponse]


def handle(request: InitProducerIdRequest, context: RequestContext) -> Reply | Awaitable[Reply]:
    if (request.producer_id == NONE) != (request.producer_epoch == NONE):
        return error_response(request, ErrorCode.INVALID_REQUEST)
    if request.transactional_id == "":
        return error_response(request, ErrorCode.INVALID_REQUEST)
    return context.broker.transactions.with_producer_ids(partial(init, request, context))


def init(request: InitProducerIdRequest, context: RequestContext) -> Reply:
    transactional_id = request.transactional_id
    if transactional_id is None:
        producer_id = context.broker.producer_ids.next_nowait()
        assert producer_id is not None
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
    expected = None
    if request.producer_id != NONE:
        expected = ProducerIdentity(request.producer_id, request.producer_epoch)

    def command(coordinator: TransactionCoordinator) -> InitProducerIdResponse:
        given = coordinator.init_producer_id(
            transactional_id, request.transaction_timeout_ms, expected
        )
        return InitProducerIdResponse(
            producer_id=given.producer_id, producer_epoch=given.producer_epoch
        )

    def refuse(code: ErrorCode) -> InitProducerIdResponse:
        return error_response(
            request, known_code(code, knows_fenced=context.api_version >= FENCED_FROM)
        )

    return context.broker.transactions.call(transactional_id, command, refuse)


def error_response(request: InitProducerIdRequest, code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=NONE, producer_epoch=NONE)
