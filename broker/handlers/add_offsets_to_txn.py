"""AddOffsetsToTxn (key 25): make the offsets of a group part of the open transaction.

Versions 0-4.

Promise: as AddPartitionsToTxn, for the partition of `__consumer_offsets` that the group belongs to.
Producers of version 2 need not ask.

Version by version: 1 throttling after the reply · 2 PRODUCER_FENCED instead of
INVALID_PRODUCER_EPOCH · 3 flexible · 4 TRANSACTION_ABORTABLE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klamm.broker.groups.offsets_topic import OFFSETS_TOPIC
from klamm.broker.replies import Pending
from klamm.broker.transactions.codes import known_code
from klamm.coordinator.transaction.coordinator import ProducerIdentity, TransactionCoordinator
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext

API_KEY = 25
VERSIONS = (0, 4)

FENCED_FROM = 2


def handle(
    request: AddOffsetsToTxnRequest, context: RequestContext
) -> AddOffsetsToTxnResponse | Pending[AddOffsetsToTxnResponse]:
    if not request.transactional_id:
        return error_response(request, ErrorCode.INVALID_REQUEST)
    partition = (OFFSETS_TOPIC, context.broker.groups.partition_of(request.group_id))

    def command(coordinator: TransactionCoordinator) -> AddOffsetsToTxnResponse:
        coordinator.add_partitions(
            request.transactional_id,
            ProducerIdentity(request.producer_id, request.producer_epoch),
            [partition],
            client_version=0,
        )
        return AddOffsetsToTxnResponse()

    def refuse(code: ErrorCode) -> AddOffsetsToTxnResponse:
        return error_response(
            request, known_code(code, knows_fenced=context.api_version >= FENCED_FROM)
        )

    return context.broker.transactions.call(request.transactional_id, command, refuse)


def error_response(request: AddOffsetsToTxnRequest, code: ErrorCode) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=code)
