"""OffsetForLeaderEpoch (key 23): where the log of an epoch ends.

Versions 2-4.

Promise: the largest epoch that is not newer than the one asked for, and the offset at which the
next one begins; consumers find a truncated log with it (KIP-320).

Version by version: 2 throttle time, current leader epoch · 3 replica id · 4 flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klamm.broker.replies import Steps
from klamm.log.errors import LogError
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext

API_KEY = 23
VERSIONS = (2, 4)


def handle(
    request: OffsetForLeaderEpochRequest, context: RequestContext
) -> Steps[OffsetForLeaderEpochResponse]:
    response = OffsetForLeaderEpochResponse()
    for topic in request.topics:
        result = OffsetForLeaderTopicResult(topic=topic.topic)
        response.topics.append(result)
        for partition in topic.partitions:
            result.partitions.append(end_offset(topic.topic, partition, context))
            yield None
    return response


def end_offset(
    topic: str, asked: OffsetForLeaderPartition, context: RequestContext
) -> EpochEndOffset:
    try:
        partition = context.broker.partitions.find(topic, asked.partition)
        partition.check_leader_epoch(asked.current_leader_epoch)
    except LogError as error:
        return EpochEndOffset(partition=asked.partition, error_code=error.code)
    epoch, offset = partition.epoch_end_offset(asked.leader_epoch)
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=offset)


def error_response(
    request: OffsetForLeaderEpochRequest, code: ErrorCode
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    EpochEndOffset(partition=partition.partition, error_code=code)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
