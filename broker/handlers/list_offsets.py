"""ListOffsets (key 2): offsets by timestamp, and the ends of a partition.

Versions 1-11.

Promise: a timestamp gives the first record that is not older, with its own timestamp and the epoch
it was written in; -1 the end that the reader may see (the last stable offset for read_committed);
-2 the start; -3 the record with the largest timestamp; -4 the start on local disk, the same as -2;
-5 and -6 are about tiered storage, which there is none of.

Version by version: 1 one offset instead of several · 2 isolation level · 4 leader epoch ·
6 flexible · 7 -3 · 8 -4 · 9 -5 · 10 timeout · 11 -6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klamm.broker.replies import Steps
from klamm.broker.steps import Stepwise
from klamm.log.errors import LogError, StorageError
from klamm.log.work import run_inline
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext
    from klamm.broker.partition import Partition


API_KEY = 2
VERSIONS = (1, 11)

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
# The version in which each special timestamp came; the first two have always been there.
SINCE_VERSION = {
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}

CONSUMER_REPLICA_ID = -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1


def handle(request: ListOffsetsRequest, context: RequestContext) -> Steps[ListOffsetsResponse]:
    if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        return (yield from refuse_all(request, ErrorCode.UNKNOWN_SERVER_ERROR))
    duplicates = yield from find_duplicates(request)
    topics: dict[str, ListOffsetsTopicResponse] = {}
    for topic in request.topics:
        response = topics.setdefault(topic.name, ListOffsetsTopicResponse(name=topic.name))
        answered = {partition.partition_index for partition in response.partitions}
        for asked in topic.partitions:
            if asked.partition_index in answered:
                continue
            answered.add(asked.partition_index)
            try:
                if (topic.name, asked.partition_index) in duplicates:
                    raise LogError(ErrorCode.INVALID_REQUEST)
                result = yield from list_offset(topic.name, asked, request, context)
            except LogError as error:
                result = ListOffsetsPartitionResponse(
                    partition_index=asked.partition_index, error_code=error.code
                )
            response.partitions.append(result)
            yield None
    return ListOffsetsResponse(topics=[topic for topic in topics.values() if topic.partitions])


def find_duplicates(request: ListOffsetsRequest) -> Stepwise[set[tuple[str, int]]]:
    seen: set[tuple[str, int]] = set()
    duplicates = set()
    for topic in request.topics:
        for partition in topic.partitions:
            key = (topic.name, partition.partition_index)
            if key in seen:
                duplicates.add(key)
            seen.add(key)
            yield None
    return duplicates


def list_offset(
    topic: str, asked: ListOffsetsPartition, request: ListOffsetsRequest, context: RequestContext
) -> Stepwise[ListOffsetsPartitionResponse]:
    timestamp = asked.timestamp
    if timestamp < EARLIEST and context.api_version < SINCE_VERSION.get(timestamp, 1 << 15):
        raise LogError(ErrorCode.UNSUPPORTED_VERSION)
    partition = context.broker.partitions.find(topic, asked.partition_index)
    partition.check_leader_epoch(asked.current_leader_epoch)
    end = end_of(partition, request)
    try:
        found_timestamp, offset, epoch = yield from locate(partition, timestamp, end)
    except StorageError as error:
        partition.note_fault("list offsets of", error)
        raise LogError(ErrorCode.KAFKA_STORAGE_ERROR) from error
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        timestamp=found_timestamp,
        offset=offset,
        leader_epoch=epoch,
    )


def end_of(partition: Partition, request: ListOffsetsRequest) -> int:
    """The offset that this reader may not reach."""
    log = partition.log
    if request.replica_id != CONSUMER_REPLICA_ID:
        return log.log_end_offset
    if request.isolation_level == READ_COMMITTED:
        return log.last_stable_offset
    return log.high_watermark


def locate(partition: Partition, timestamp: int, end: int) -> Stepwise[tuple[int, int, int]]:
    """Timestamp, offset and leader epoch of the answer; -1 each where there is none."""
    log = partition.log
    if timestamp == LATEST:
        return -1, end, partition.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = log.log_start_offset
        return -1, start, partition.leader_epoch_of(start)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return -1, -1, -1
    if timestamp == MAX_TIMESTAMP:
        found = yield from log.search_max_timestamp()
    else:
        found = yield from log.search_timestamp(timestamp)
    if found is None or found.offset >= end:
        return -1, -1, -1
    return found.timestamp, found.offset, found.leader_epoch


def error_response(request: ListOffsetsRequest, code: ErrorCode) -> ListOffsetsResponse:
    return run_inline(refuse_all(request, code))


def refuse_all(request: ListOffsetsRequest, code: ErrorCode) -> Stepwise[ListOffsetsResponse]:
    response = ListOffsetsResponse()
    for topic in request.topics:
        refused = ListOffsetsTopicResponse(name=topic.name)
        response.topics.append(refused)
        for partition in topic.partitions:
            refused.partitions.append(
                ListOffsetsPartitionResponse(
                    partition_index=partition.partition_index, error_code=code
                )
            )
            yield None
    return response
