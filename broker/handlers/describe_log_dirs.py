"""DescribeLogDirs (key 35): the log directory, its space, and the sizes of the partitions in it.

Versions 1-5.

Promise: the directory is always in the reply, with those of the partitions asked for that are in it
(null asks for all); what is not there is left out. Sizes are those of the segments.

Version by version: 2 flexible · 3 an error for the whole reply · 4 space of the directory (KIP-827)
· 5 whether it is closed to new partitions (KIP-1066), which it never is here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from klamm.broker.log_directory import log_directory
from klamm.broker.partition import Partition
from klamm.broker.replies import Steps
from klamm.broker.steps import Stepwise
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from klamm.broker.broker import Broker
    from klamm.broker.context import RequestContext

API_KEY = 35
VERSIONS = (1, 5)


def handle(
    request: DescribeLogDirsRequest, context: RequestContext
) -> Steps[DescribeLogDirsResponse]:
    broker = context.broker
    result = DescribeLogDirsResult(log_dir=log_directory(broker))
    try:
        result.total_bytes, result.usable_bytes = broker.logs.environment.fs.space(broker.logs.root)
    except OSError:
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
    else:
        partitions = yield from wanted(request, broker)
        result.topics = yield from by_topic(partitions)
    return DescribeLogDirsResponse(results=[result])


def wanted(request: DescribeLogDirsRequest, broker: Broker) -> Stepwise[Iterable[Partition]]:
    """What is asked for and is there, each once, however often it is named."""
    if request.topics is None:
        return list(broker.partitions)
    found = {}
    for topic in request.topics:
        yield None
        for index in topic.partitions:
            partition = broker.partitions.get(topic.topic, index)
            if partition is not None:
                found[topic.topic, index] = partition
            yield None
    return found.values()


def by_topic(partitions: Iterable[Partition]) -> Stepwise[list[DescribeLogDirsTopic]]:
    topics: dict[str, DescribeLogDirsTopic] = {}
    for partition in partitions:
        topic = topics.get(partition.topic)
        if topic is None:
            topic = topics[partition.topic] = DescribeLogDirsTopic(name=partition.topic)
        topic.partitions.append(
            DescribeLogDirsPartition(
                partition_index=partition.index, partition_size=partition.log.size_in_bytes
            )
        )
        yield None
    return list(topics.values())


def error_response(request: DescribeLogDirsRequest, code: ErrorCode) -> DescribeLogDirsResponse:
    # Before version 3 only a directory has a code.
    return DescribeLogDirsResponse(
        error_code=code, results=[DescribeLogDirsResult(error_code=code)]
    )
