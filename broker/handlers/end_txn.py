"""EndTxn (key 26): commit or abort the open transaction.

Versions 0-5.

Promise: when it is answered without an error, the outcome is on disk, and every partition of the
transaction will have its marker, whatever happens. Readers see it moments later. A request that is
sent again gets the same answer; one that comes late touches no other transaction than its own.

Version by version: 1 throttling after the reply · 2 PRODUCER_FENCED instead of
INVALID_PRODUCER_EPOCH · 3 flexible · 4 TRANSACTION_ABORTABLE · 5 transactions of version 2: a new
epoch with every end (KIP-890).
"""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING

from klamm.broker.replies import Pending
from klamm.broker.transactions.codes import known_code
from klamm.coordinator.transaction.coordinator import ProducerIdentity, TransactionCoordinator
from klamm.coordinator.transaction.transaction import EPOCH_BUMP_FROM
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext

API_KEY = 26
VERSIONS = (0, 5)

FENCED_FROM = 2
TRANSACTIONS_V2_FROM = 5

Reply = EndTxnResponse | Pending[EndTxnResponse]


def handle(request: EndTxnRequest, context: RequestContext) -> Reply | Awaitable[Reply]:
    if not request.transactional_id:
        return error_response(request, ErrorCode.INVALID_REQUEST)
    # The epochs of this producer may be used up.
    return context.broker.transactions.with_producer_ids(partial(end, request, context))


def end(request: EndTxnRequest, context: RequestContext) -> Reply:
    version = EPOCH_BUMP_FROM if context.api_version >= TRANSACTIONS_V2_FROM else 0

    def command(coordinator: TransactionCoordinator) -> EndTxnResponse:
        producer = coordinator.end(
            request.transactional_id,
            ProducerIdentity(request.producer_id, request.producer_epoch),
            commit=request.committed,
            client_version=version,
        )
        return EndTxnResponse(
            producer_id=producer.producer_id, producer_epoch=producer.producer_epoch
        )

    def refuse(code: ErrorCode) -> EndTxnResponse:
        return error_response(
            request, known_code(code, knows_fenced=context.api_version >= FENCED_FROM)
        )

    return context.broker.transactions.call(request.transactional_id, command, refuse)


def error_response(request: EndTxnRequest, code: ErrorCode) -> EndTxnResponse:
    return EndTxnResponse(error_code=code)
