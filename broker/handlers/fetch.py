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
from klamm.broker.fetching import FetchParameters, FetchRead, ParkedFetch
from klamm.broker.replies import Pending
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.fetch import FetchRequest, FetchResponse

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext

API_KEY = 1
VERSIONS = (4, 18)

TOPIC_IDS_FROM = 13
REPLICA_STATE_FROM = 15


def handle(
    request: FetchRequest, context: RequestContext
) -> FetchResponse | Pending[FetchResponse]:
    broker = context.broker
    version = context.api_version
    scope = begin_fetch(
        broker.fetch_sessions, request, uses_topic_ids=version >= TOPIC_IDS_FROM, now=broker.now()
    )
    if scope.error is not ErrorCode.NONE:
        return error_response(request, scope.error)
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
            read_committed=request.isolation_level == 1,
            is_consumer=replica_id < 0,
        ),
        broker.node_id,
    )
    read.read_all()
    if request.max_wait_ms <= 0 or read.is_satisfied:
        return read.response()
    return ParkedFetch(read, broker, request.max_wait_ms / 1000).pending


def error_response(request: FetchRequest, code: ErrorCode) -> FetchResponse:
    """Since version 7 an error of the whole request has its own field; before that there are no
    sessions and nothing fails as a whole but the broker itself."""
    return FetchResponse(error_code=code, session_id=0, responses=[])
