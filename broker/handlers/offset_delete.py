"""OffsetDelete (key 47): forget how far a group has read.

Version 0.

Promise: what is answered without an error is gone, also after a crash. Topics that a member of the
group subscribes to are refused with GROUP_SUBSCRIBED_TO_TOPIC; a group that has members which are
no consumers is refused as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klamm.broker.coordinator_shard import when_durable
from klamm.broker.replies import Pending
from klamm.broker.steps import Stepwise
from klamm.coordinator.errors import CoordinatorError
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext

API_KEY = 47
VERSIONS = (0, 0)


async def handle(
    request: OffsetDeleteRequest, context: RequestContext
) -> OffsetDeleteResponse | Pending[OffsetDeleteResponse]:
    return await context.broker.steps.run(delete_all(request, context))


def delete_all(
    request: OffsetDeleteRequest, context: RequestContext
) -> Stepwise[OffsetDeleteResponse | Pending[OffsetDeleteResponse]]:
    groups = context.broker.groups
    refused: dict[str, OffsetDeleteResponseTopic] = {}
    response = OffsetDeleteResponse()
    try:
        if not request.group_id:
            raise CoordinatorError(ErrorCode.INVALID_GROUP_ID)
        shard = groups.shard_of(request.group_id)
        known = []
        for topic in request.topics:
            known.append(keep_known(topic, refused, context))
            yield None
        existing = OffsetDeleteRequest(
            group_id=request.group_id, topics=[topic for topic in known if topic.partitions]
        )
        yield from shard.coordinator.delete_offsets(existing, response)
    except CoordinatorError as error:
        return error_response(request, error.code)
    return when_durable(merged(refused, response), [shard])


def keep_known(
    topic: OffsetDeleteRequestTopic,
    refused: dict[str, OffsetDeleteResponseTopic],
    context: RequestContext,
) -> OffsetDeleteRequestTopic:
    """The partitions that exist; the others are refused."""
    described = context.broker.groups.topics.find(topic.name)
    count = 0 if described is None else described.partition_count
    known = []
    for partition in topic.partitions:
        index = partition.partition_index
        if 0 <= index < count:
            known.append(partition)
        else:
            answer = refused.setdefault(topic.name, OffsetDeleteResponseTopic(name=topic.name))
            answer.partitions.append(
                OffsetDeleteResponsePartition(
                    partition_index=index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                )
            )
    return OffsetDeleteRequestTopic(name=topic.name, partitions=known)


def merged(
    refused: dict[str, OffsetDeleteResponseTopic], response: OffsetDeleteResponse
) -> OffsetDeleteResponse:
    """What does not exist comes first, and then each topic stands there once, as in Kafka."""
    if not refused:
        return response
    for topic in response.topics:
        first = refused.setdefault(topic.name, topic)
        if first is not topic:
            first.partitions += topic.partitions
    return OffsetDeleteResponse(topics=list(refused.values()))


def error_response(request: OffsetDeleteRequest, code: ErrorCode) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=code)
