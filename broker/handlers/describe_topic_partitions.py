"""DescribeTopicPartitions (key 75): topics and their partitions, page by page.

Version 0.

Promise: topics in the order of their names, at most `max.request.partition.size.limit` partitions
in a reply; `next_cursor` says where the next page begins (KIP-966).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klamm.broker.authorized_operations import TOPIC_OPERATIONS
from klamm.broker.metadata.image import NO_LEADER, PartitionState, TopicState
from klamm.broker.metadata.topics import INTERNAL_TOPICS, unknown_topic_code
from klamm.broker.replies import Steps
from klamm.broker.steps import Stepwise, collect, gather, sort
from klamm.log.work import run_inline
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext

API_KEY = 75
VERSIONS = (0, 0)


def handle(
    request: DescribeTopicPartitionsRequest, context: RequestContext
) -> Steps[DescribeTopicPartitionsResponse]:
    image = context.broker.metadata.image
    cursor = request.cursor
    wants_all = not request.topics
    if wants_all:
        # A copy, because topics may come and go between two steps.
        names = set(image.topics)
    else:
        names = yield from gather(topic.name for topic in request.topics)
        if "" in names:
            # Kafka fails as a whole over a name that can't be a resource's.
            return (yield from refuse_all(request, ErrorCode.UNKNOWN_SERVER_ERROR))
    if cursor is not None:
        if cursor.partition_index < 0 or not (wants_all or cursor.topic_name in names):
            return (yield from refuse_all(request, ErrorCode.INVALID_REQUEST))
        names = yield from gather(name for name in names if name >= cursor.topic_name)
    limit = context.broker.config.max_request_partition_size_limit
    left = max(1, min(limit, request.response_partition_limit))
    response = DescribeTopicPartitionsResponse()
    for name in (yield from sort(names)):
        yield None
        if left == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = image.topic(name)
        if topic is None:
            response.topics.append(unknown_topic(name))
            continue
        first = cursor.partition_index if cursor and cursor.topic_name == name else 0
        described = topic.partitions[first : first + left]
        response.topics.append((yield from known_topic(topic, described)))
        left -= len(described)
        if first + len(described) < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=first + len(described))
            break
    return response


def known_topic(
    topic: TopicState, partitions: list[PartitionState]
) -> Stepwise[DescribeTopicPartitionsResponseTopic]:
    described = (
        DescribeTopicPartitionsResponsePartition(
            partition_index=state.index,
            leader_id=state.leader,
            leader_epoch=state.leader_epoch,
            replica_nodes=state.replicas,
            isr_nodes=state.isr,
            eligible_leader_replicas=state.eligible_leader_replicas,
            last_known_elr=state.last_known_elr,
            offline_replicas=state.replicas if state.leader == NO_LEADER else [],
        )
        for state in partitions
    )
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=(yield from collect(described)),
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def unknown_topic(name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=unknown_topic_code(name),
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def error_response(
    request: DescribeTopicPartitionsRequest, code: ErrorCode
) -> DescribeTopicPartitionsResponse:
    return run_inline(refuse_all(request, code))


def refuse_all(
    request: DescribeTopicPartitionsRequest, code: ErrorCode
) -> Stepwise[DescribeTopicPartitionsResponse]:
    """The reply has no error of its own: every topic that was named carries it."""
    refused = (
        DescribeTopicPartitionsResponseTopic(error_code=code, name=topic.name)
        for topic in request.topics
    )
    return DescribeTopicPartitionsResponse(topics=(yield from collect(refused)))
