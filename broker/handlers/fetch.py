"""Fetch (key 1): read record batches, waiting for them if there are none.

Versions 4-18.

Promise: whole batches straight from the segment file, from the batch that holds the asked offset;
the first batch is returned even when it is larger than the limits, so that no consumer gets stuck;
nothing at or above the high watermark, or above the last stable offset for read_committed. A fetch
that finds less than min_bytes waits until there is more, something changes, or max_wait has passed.

Version by version: 4 isolation level · 5 log start offset · 7 sessions (KIP-227) · 9 leader epoch
(KIP-320) · 11 rack · 12 flexible, diverging epoch (KIP-595) · 13 topic ids (KIP-516) · 15 replica
state · 16 node endpoints (KIP-951) · 17 directory id · 18 follower's high watermark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klamm.broker.fetch_session import begin_fetch
from klamm.broker.fetching import NO_RECORDS, FetchParameters, FetchRead, ParkedFetch
from klamm.broker.replies import Steps
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext

API_KEY = 1
VERSIONS = (4, 18)

TOPIC_IDS_FROM = 13
REPLICA_STATE_FROM = 15
NODE_ENDPOINTS_FROM = 16

READ_UNCOMMITTED, READ_COMMITTED = 0, 1


def handle(request: FetchRequest, context: RequestContext) -> Steps[FetchResponse]:
    broker = context.broker
    version = context.api_version
    scope = yield from begin_fetch(
        broker.fetch_sessions, request, uses_topic_ids=version >= TOPIC_IDS_FROM, now=broker.now()
    )
    if scope.error is not ErrorCode.NONE:
        return FetchResponse(error_code=scope.error)
    max_bytes = min(request.max_bytes, broker.config.fetch_max_bytes)
    replica_id = (
        request.replica_state.replica_id if version >= REPLICA_STATE_FROM else request.replica_id
    )
    read = FetchRead(
        broker.partitions,
        scope,
        FetchParameters(
            max_bytes=max_bytes,
            min_bytes=min(request.min_bytes, max_bytes),
            read_committed=request.isolation_level == READ_COMMITTED,
            is_consumer=replica_id < 0,
            tells_leader=version >= NODE_ENDPOINTS_FROM,
        ),
        broker.node_id,
    )
    yield from read.read_all()
    if read.knows_any and request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        read.release()
        return error_response(request, ErrorCode.UNKNOWN_SERVER_ERROR)
    if request.max_wait_ms <= 0 or read.is_satisfied:
        return (yield from read.response())
    return ParkedFetch(read, broker, request.max_wait_ms / 1000).pending


def error_response(request: FetchRequest, code: ErrorCode) -> FetchResponse:
    """The code stands in every partition, too, as long as topics have names: before version 7
    there is no other place for it."""
    return FetchResponse(
        error_code=code,
        session_id=request.session_id,
        responses=[
            FetchableTopicResponse(
                topic=topic.topic,
                partitions=[
                    PartitionData(
                        partition_index=partition.partition,
                        error_code=code,
                        high_watermark=-1,
                        aborted_transactions=[],
                        records=NO_RECORDS,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
            if topic.topic
        ],
    )
