"""ListPartitionReassignments (key 46): partitions that are on their way to other brokers.

Version 0.

Promise: a reassignment adds or removes replicas on other brokers. This broker is alone, so nothing
is ever on its way, whichever topics are named; unknown ones are no error, as in Kafka (KIP-455).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klamm.wire.errors import ErrorCode
from klamm.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext

API_KEY = 46
VERSIONS = (0, 0)


def handle(
    request: ListPartitionReassignmentsRequest, context: RequestContext
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_message=None)


def error_response(
    request: ListPartitionReassignmentsRequest, code: ErrorCode
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_code=code, error_message=None)
