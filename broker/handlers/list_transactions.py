"""ListTransactions (key 66): the transactional ids of this broker.

Versions 0-2.

Promise: every id that exists during the whole request, and that all filters accept, is listed once.
States that there are none of match nothing, and are named in the reply.

Version by version: 1 ids whose transaction began longer ago than a duration · 2 ids that match a
regular expression, in linear time (KIP-1152).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from klamm.broker.coordinator_shard import when_durable
from klamm.broker.replies import Steps
from klamm.coordinator.consumer.expressions import compile_expression
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.transaction.state import BY_NAME
from klamm.coordinator.transaction.transaction import Transaction
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext

API_KEY = 66
VERSIONS = (0, 2)


def handle(
    request: ListTransactionsRequest, context: RequestContext
) -> Steps[ListTransactionsResponse]:
    response = ListTransactionsResponse()
    try:
        shards = context.broker.transactions.shards()
        accepts = build_filter(request, context.broker.clock.now_ms())
    except CoordinatorError as error:
        return error_response(request, error.code)
    response.unknown_state_filters = [
        name for name in dict.fromkeys(request.state_filters) if name not in BY_NAME
    ]
    for shard in shards:
        for transaction in shard.coordinator.all():
            if accepts(transaction):
                response.transaction_states.append(
                    TransactionState(
                        transactional_id=transaction.transactional_id,
                        producer_id=transaction.producer_id,
                        transaction_state=transaction.state.value,
                    )
                )
            yield None
    return when_durable(response, shards)


def build_filter(request: ListTransactionsRequest, now_ms: int) -> Callable[[Transaction], bool]:
    """
    Raises:
        CoordinatorError: INVALID_REGULAR_EXPRESSION.
    """
    states = frozenset(request.state_filters)
    producer_ids = frozenset(request.producer_id_filters)
    matches: Callable[[str], object] | None = None
    if request.transactional_id_pattern:
        matches = compile_expression(request.transactional_id_pattern).fullmatch

    def accepts(transaction: Transaction) -> bool:
        return (
            (not producer_ids or transaction.producer_id in producer_ids)
            and (not states or transaction.state.value in states)
            and (
                request.duration_filter < 0
                or now_ms - transaction.started_ms > request.duration_filter
            )
            and (matches is None or matches(transaction.transactional_id) is not None)
        )

    return accepts


def error_response(request: ListTransactionsRequest, code: ErrorCode) -> ListTransactionsResponse:
    return ListTransactionsResponse(error_code=code)
