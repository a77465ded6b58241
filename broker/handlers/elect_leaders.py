"""ElectLeaders (key 43): let the preferred replica lead, or any that is left.

Versions 0-2.

Promise: the only replica leads each partition whose log is served, so no election is needed. Where
the log is offline there is nobody to elect. Null asks for all partitions; then those that need no
election are left out.

Version by version: 1 elections of any replica that is left (KIP-460), an error for the whole reply
· 2 flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klamm.broker.replies import Steps
from klamm.broker.steps import Stepwise
from klamm.log.work import run_inline
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

if TYPE_CHECKING:
    from klamm.broker.broker import Broker
    from klamm.broker.context import RequestContext

API_KEY = 43
VERSIONS = (0, 2)

PREFERRED, UNCLEAN = 0, 1
NOBODY_TO_ELECT = {
    PREFERRED: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    UNCLEAN: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}


def handle(request: ElectLeadersRequest, context: RequestContext) -> Steps[ElectLeadersResponse]:
    if request.topic_partitions is not None and not request.topic_partitions:
        return ElectLeadersResponse()
    if request.timeout_ms <= 0:
        return (yield from refuse_all(request, ErrorCode.REQUEST_TIMED_OUT))
    if request.election_type not in NOBODY_TO_ELECT:
        message = f"There is no election type {request.election_type}."
        return (yield from refuse_all(request, ErrorCode.INVALID_REQUEST, message))
    if request.topic_partitions is None:
        return (yield from elect_all(request.election_type, context.broker))
    response = ElectLeadersResponse()
    for topic in request.topic_partitions:
        result = ReplicaElectionResult(topic=topic.topic)
        response.replica_election_results.append(result)
        yield None
        for index in topic.partitions:
            result.partition_result.append(
                elect(topic.topic, index, request.election_type, context.broker)
            )
            yield None
    return response


def elect_all(election_type: int, broker: Broker) -> Stepwise[ElectLeadersResponse]:
    response = ElectLeadersResponse()
    for topic in list(broker.metadata.image.topics.values()):
        result = ReplicaElectionResult(topic=topic.name)
        response.replica_election_results.append(result)
        yield None
        for state in topic.partitions:
            elected = elect(topic.name, state.index, election_type, broker)
            if elected.error_code != ErrorCode.ELECTION_NOT_NEEDED:
                result.partition_result.append(elected)
            yield None
    return response


def elect(topic: str, index: int, election_type: int, broker: Broker) -> PartitionResult:
    existing = broker.metadata.image.topic(topic)
    if existing is None:
        code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {topic!r}."
    elif not 0 <= index < len(existing.partitions):
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        message = f"Topic {topic!r} has no partition {index}."
    elif broker.partitions.get(topic, index) is not None:
        code, message = ErrorCode.ELECTION_NOT_NEEDED, "The only replica leads the partition."
    else:
        code, message = NOBODY_TO_ELECT[election_type], "The log of the only replica is offline."
    return PartitionResult(partition_id=index, error_code=code, error_message=message)


def error_response(request: ElectLeadersRequest, code: ErrorCode) -> ElectLeadersResponse:
    return run_inline(refuse_all(request, code))


def refuse_all(
    request: ElectLeadersRequest, code: ErrorCode, message: str | None = None
) -> Stepwise[ElectLeadersResponse]:
    response = ElectLeadersResponse(error_code=code)
    for topic in request.topic_partitions or ():
        result = ReplicaElectionResult(topic=topic.topic)
        response.replica_election_results.append(result)
        yield None
        for index in topic.partitions:
            result.partition_result.append(
                PartitionResult(partition_id=index, error_code=code, error_message=message)
            )
            yield None
    return response
