"""DescribeTransactions (key 65): what a coordinator knows of transactional ids.

Version 0.

Promise: state, producer, timeout, start and partitions, of one moment and on disk. Partitions are
listed until the transaction is complete (KIP-664).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klamm.broker.coordinator_shard import when_durable
from klamm.broker.replies import Steps
from klamm.broker.transactions.shard import TransactionShard
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.transaction.transaction import Transaction
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext

API_KEY = 65
VERSIONS = (0, 0)


def handle(
    request: DescribeTransactionsRequest, context: RequestContext
) -> Steps[DescribeTransactionsResponse]:
    response = DescribeTransactionsResponse()
    shards: list[TransactionShard] = []
    for transactional_id in request.transactional_ids:
        try:
            if not transactional_id:
                raise CoordinatorError(ErrorCode.INVALID_REQUEST)
            shard = context.broker.transactions.shard_of(transactional_id)
            transaction = shard.coordinator.get(transactional_id)
            if transaction is None:
                raise CoordinatorError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        except CoordinatorError as error:
            described = TransactionState(transactional_id=transactional_id, error_code=error.code)
        else:
            shards.append(shard)
            described = describe(transaction)
        response.transaction_states.append(described)
        yield None
    return when_durable(response, shards)


def describe(transaction: Transaction) -> TransactionState:
    topics = transaction.partitions_by_topic
    return TransactionState(
        transactional_id=transaction.transactional_id,
        transaction_state=transaction.state.value,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.started_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[TopicData(topic=topic, partitions=indexes) for topic, indexes in topics.items()],
    )


def error_response(
    request: DescribeTransactionsRequest, code: ErrorCode
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[
            TransactionState(transactional_id=transactional_id, error_code=code)
            for transactional_id in request.transactional_ids
        ]
    )
