"""DeleteRecords (key 21): let a partition begin later.

Versions 0-2.

Promise: when it is answered, the new start of the log survives every crash (Kafka writes it down
within a minute). -1 deletes all that may be read. Segments that lie wholly below the start are
removed by retention. A topic that is only compacted, or that the broker writes itself, is refused.

Version by version: 1 throttling after the reply · 2 flexible.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from klamm.broker.metadata.topics import INTERNAL_TOPICS
from klamm.broker.replies import Steps
from klamm.broker.steps import Stepwise
from klamm.log.errors import LogError
from klamm.log.log_start import delete_records
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from klamm.broker.broker import Broker
    from klamm.broker.context import RequestContext
    from klamm.log.partition_log import PartitionLog

API_KEY = 21
VERSIONS = (0, 2)

# Logs whose starts are written down together; so many are looked at in a few milliseconds.
LOGS_AT_ONCE_MAX = 1_000
REFUSED_LOW_WATERMARK = -1

TopicPartition = tuple[str, int]


def handle(request: DeleteRecordsRequest, context: RequestContext) -> Steps[DeleteRecordsResponse]:
    broker = context.broker
    results: dict[TopicPartition, int | LogError] = {}
    logs: dict[TopicPartition, tuple[PartitionLog, int]] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            # Kafka keeps what it is asked in a map: of a partition named twice the last one counts.
            key = topic.name, partition.partition_index
            try:
                logs[key] = find_log(broker, key), partition.offset
                results[key] = REFUSED_LOW_WATERMARK
            except LogError as error:
                results[key] = error
            yield None
    yield from delete_from_all(broker, logs, results)
    return (yield from answer(results))


def find_log(broker: Broker, key: TopicPartition) -> PartitionLog:
    """Raises LogError: it is not there, or not to be touched."""
    topic, index = key
    log = broker.partitions.find(topic, index).log
    if topic in INTERNAL_TOPICS:
        raise LogError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is written by the broker")
    return log


def delete_from_all(
    broker: Broker,
    logs: Mapping[TopicPartition, tuple[PartitionLog, int]],
    results: dict[TopicPartition, int | LogError],
) -> Stepwise[None]:
    left = iter(logs.items())
    while some := dict(islice(left, LOGS_AT_ONCE_MAX)):
        outcomes = yield from delete_records(broker.logs, list(some.values()))
        results.update(zip(some, outcomes, strict=True))


def answer(results: Mapping[TopicPartition, int | LogError]) -> Stepwise[DeleteRecordsResponse]:
    topics: dict[str, DeleteRecordsTopicResult] = {}
    for (name, index), result in results.items():
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = DeleteRecordsTopicResult(name=name)
        low_watermark, code = REFUSED_LOW_WATERMARK, ErrorCode.NONE
        if isinstance(result, LogError):
            code = result.code
        else:
            low_watermark = result
        topic.partitions.append(
            DeleteRecordsPartitionResult(
                partition_index=index, low_watermark=low_watermark, error_code=code
            )
        )
        yield None
    return DeleteRecordsResponse(topics=list(topics.values()))


def error_response(request: DeleteRecordsRequest, code: ErrorCode) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    DeleteRecordsPartitionResult(
                        partition_index=partition.partition_index,
                        low_watermark=REFUSED_LOW_WATERMARK,
                        error_code=code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
