"""AlterPartitionReassignments (key 45): move partitions to other brokers, or stop that.

Versions 0-1.

Promise: every assignment is checked. The only one that is right names this broker alone, where each
partition is already, so there is nothing to move and nothing to stop (KIP-455).

Version by version: 1 the number of replicas may be kept from changing (KIP-860).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klamm.broker.metadata.topics import Refused, check_assignment
from klamm.broker.replies import Steps
from klamm.broker.steps import Stepwise
from klamm.log.work import run_inline
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext
    from klamm.broker.controller import Controller

API_KEY = 45
VERSIONS = (0, 1)


def handle(
    request: AlterPartitionReassignmentsRequest, context: RequestContext
) -> Steps[AlterPartitionReassignmentsResponse]:
    if not request.topics:
        return AlterPartitionReassignmentsResponse()
    if request.timeout_ms <= 0:
        return (yield from refuse_all(request, ErrorCode.REQUEST_TIMED_OUT))
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
    )
    for topic in request.topics:
        result = ReassignableTopicResponse(name=topic.name)
        response.responses.append(result)
        yield None
        for partition in topic.partitions:
            result.partitions.append(reassign(topic.name, partition, context.broker.controller))
            yield None
    return response


def reassign(
    topic: str, target: ReassignablePartition, controller: Controller
) -> ReassignablePartitionResponse:
    try:
        check(topic, target, controller)
    except Refused as refused:
        return ReassignablePartitionResponse(
            partition_index=target.partition_index,
            error_code=refused.code,
            error_message=refused.message,
        )
    return ReassignablePartitionResponse(partition_index=target.partition_index, error_message=None)


def check(topic: str, target: ReassignablePartition, controller: Controller) -> None:
    """Raises Refused."""
    existing = controller.image.topic(topic)
    if existing is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {topic!r}.")
    if not 0 <= target.partition_index < len(existing.partitions):
        raise Refused(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"Topic {topic!r} has no partition {target.partition_index}.",
        )
    if target.replicas is None:
        raise Refused(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    check_assignment(target.replicas, None, controller.brokers)
    current = existing.partitions[target.partition_index].replicas
    assert target.replicas == current, "there is one broker, and it has every partition"


def error_response(
    request: AlterPartitionReassignmentsRequest, code: ErrorCode
) -> AlterPartitionReassignmentsResponse:
    return run_inline(refuse_all(request, code))


def refuse_all(
    request: AlterPartitionReassignmentsRequest, code: ErrorCode
) -> Stepwise[AlterPartitionReassignmentsResponse]:
    response = AlterPartitionReassignmentsResponse(error_code=code, error_message=None)
    for topic in request.topics:
        result = ReassignableTopicResponse(name=topic.name)
        response.responses.append(result)
        yield None
        for partition in topic.partitions:
            result.partitions.append(
                ReassignablePartitionResponse(
                    partition_index=partition.partition_index, error_code=code, error_message=None
                )
            )
            yield None
    return response
