"""WriteTxnMarkers (key 27): end transactions in partitions, as a coordinator decided.

Versions 1-2.

Promise: a partition without an error has its marker on disk. klamm's own coordinators write theirs
without a request; this is for the tool that aborts a transaction which its coordinator has
forgotten (`kafka-transactions.sh abort`).

Version by version: 1 flexible · 2 version of transactions (KIP-1228).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from klamm.broker.replies import Steps, complete_after
from klamm.broker.transactions.markers import write_marker
from klamm.log.errors import LogError
from klamm.log.partition_log import PartitionLog
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext

API_KEY = 27
VERSIONS = (1, 2)

NONE = -1

# By producer, topic and partition: of what is named twice, the last counts.
Codes = dict[int, dict[str, dict[int, ErrorCode]]]


def handle(
    request: WriteTxnMarkersRequest, context: RequestContext
) -> Steps[WriteTxnMarkersResponse]:
    codes: Codes = {}
    unsynced: dict[PartitionLog, None] = {}
    for marker in request.markers:
        for topic in marker.topics:
            for index in topic.partition_indexes:
                partitions = codes.setdefault(marker.producer_id, {}).setdefault(topic.name, {})
                partitions[index] = write(marker, topic.name, index, context, unsynced)
                yield None
    response = to_response(codes)
    if not unsynced:
        return response
    flusher = context.broker.flusher
    return complete_after(response, [partial(flusher.call_when_synced, log) for log in unsynced])


def write(
    marker: WritableTxnMarker,
    topic: str,
    index: int,
    context: RequestContext,
    unsynced: dict[PartitionLog, None],
) -> ErrorCode:
    broker = context.broker
    try:
        partition = broker.partitions.find(topic, index)
        if marker.producer_id < 0 or marker.producer_epoch == NONE:
            # No producer is nobody, and Kafka does not expect it.
            return ErrorCode.UNKNOWN_SERVER_ERROR
        if marker.producer_epoch < 0:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        write_marker(
            broker,
            partition,
            marker.producer_id,
            marker.producer_epoch,
            commit=marker.transaction_result,
            coordinator_epoch=marker.coordinator_epoch,
            transaction_version=marker.transaction_version,
        )
    except LogError as error:
        return error.code
    if partition.log.config.flush_before_ack:
        unsynced[partition.log] = None
    return ErrorCode.NONE


def to_response(codes: Codes) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(name=name, partitions=results(partitions.items()))
                    for name, partitions in topics.items()
                ],
            )
            for producer_id, topics in codes.items()
        ]
    )


def results(
    codes: Iterable[tuple[int, ErrorCode]],
) -> list[WritableTxnMarkerPartitionResult]:
    return [
        WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
        for index, code in codes
    ]


def error_response(request: WriteTxnMarkersRequest, code: ErrorCode) -> WriteTxnMarkersResponse:
    codes: Codes = {}
    for marker in request.markers:
        topics = codes.setdefault(marker.producer_id, {})
        for topic in marker.topics:
            topics.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes, code))
    return to_response(codes)
