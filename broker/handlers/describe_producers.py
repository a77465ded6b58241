"""DescribeProducers (key 61): the producers that a partition remembers.

Version 0.

Promise: every idempotent or transactional producer whose state is kept: its epoch, its last
sequence and the time of it, and where its open transaction began (KIP-664).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from klamm.broker.metadata.topics import Refused, check_topic_name
from klamm.broker.partition import Partition
from klamm.broker.replies import Steps
from klamm.broker.steps import Stepwise, collect
from klamm.log.errors import LogError
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

if TYPE_CHECKING:
    from klamm.broker.broker import Broker
    from klamm.broker.context import RequestContext

API_KEY = 61
VERSIONS = (0, 0)

NO_TRANSACTION = -1


def handle(
    request: DescribeProducersRequest, context: RequestContext
) -> Steps[DescribeProducersResponse]:
    response = DescribeProducersResponse()
    for topic in request.topics:
        result = TopicResponse(name=topic.name)
        response.topics.append(result)
        refused = refusal(topic.name, context.broker)
        yield None
        for index in topic.partition_indexes:
            if refused is not None:
                answer = PartitionResponse(
                    partition_index=index, error_code=refused.code, error_message=refused.message
                )
            else:
                answer = yield from describe(topic.name, index, context.broker)
            result.partitions.append(answer)
            yield None
    return response


def refusal(topic: str, broker: Broker) -> Refused | None:
    """Why nothing can be said of any partition of a topic."""
    try:
        check_topic_name(topic)
    except Refused as refused:
        return refused
    if broker.metadata.image.topic(topic) is None:
        return Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {topic!r}.")
    return None


def describe(topic: str, index: int, broker: Broker) -> Stepwise[PartitionResponse]:
    try:
        partition = broker.partitions.find(topic, index)
    except LogError as error:
        return PartitionResponse(partition_index=index, error_code=error.code)
    producers = yield from collect(active_producers(partition))
    return PartitionResponse(partition_index=index, active_producers=producers)


def active_producers(partition: Partition) -> Iterator[ProducerState]:
    # A copy: producers come and go between two steps.
    for entry in list(partition.log.producers.entries.values()):
        first_offset = entry.current_txn_first_offset
        yield ProducerState(
            producer_id=entry.producer_id,
            producer_epoch=entry.producer_epoch,
            last_sequence=entry.last_sequence,
            last_timestamp=entry.last_timestamp,
            coordinator_epoch=entry.coordinator_epoch,
            current_txn_start_offset=NO_TRANSACTION if first_offset is None else first_offset,
        )


def error_response(request: DescribeProducersRequest, code: ErrorCode) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    PartitionResponse(partition_index=index, error_code=code)
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )
