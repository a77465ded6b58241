"""DescribeLogDirs (key 35): the log directories, their space, and the sizes of partitions in them.

Versions 1-5.

Promise: every directory is in the reply, one that is offline with an error, the others with those
of the partitions asked for that are in them (null asks for all); what is not there is left out. A
partition that moves is in two of them: where it is, and where it goes, with how much is missing.
Sizes are those of the segments.

Version by version: 2 flexible · 3 an error for the whole reply · 4 space of the directory (KIP-827)
· 5 whether it is closed to new partitions (KIP-1066).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from klamm.broker.log_directory import log_directories
from klamm.broker.partition import Partition
from klamm.broker.placement import is_cordoned
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
    from klamm.log.manager import LogManager
    from klamm.log.partition_log import PartitionLog

API_KEY = 35
VERSIONS = (1, 5)


def handle(
    request: DescribeLogDirsRequest, context: RequestContext
) -> Steps[DescribeLogDirsResponse]:
    broker = context.broker
    results = {
        path: describe(path, directory, cordoned=is_cordoned(path, broker.config))
        for path, directory in log_directories(broker).items()
    }
    listings = {path: Listing(result) for path, result in results.items() if not result.error_code}
    for partition in (yield from wanted(request, broker)):
        logs = [(partition.log, 0, False)]
        move = broker.moves.get(partition)
        if move is not None:
            logs.append((move.log, move.offset_lag, True))
        for log, offset_lag, is_future in logs:
            listing = listings.get(os.path.abspath(log.root))
            if listing is not None:
                listing.add(log, offset_lag, is_future=is_future)
        yield None
    return DescribeLogDirsResponse(results=list(results.values()))


def describe(path: str, directory: LogManager | None, *, cordoned: bool) -> DescribeLogDirsResult:
    result = DescribeLogDirsResult(log_dir=path, is_cordoned=cordoned)
    try:
        if directory is None:
            raise OSError("it is offline")
        result.total_bytes, result.usable_bytes = directory.environment.fs.space(directory.root)
    except OSError:
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
    return result


class Listing:
    """The partitions of one directory, by topic."""

    def __init__(self, result: DescribeLogDirsResult) -> None:
        self._result = result
        self._topics: dict[str, DescribeLogDirsTopic] = {}

    def add(self, log: PartitionLog, offset_lag: int, *, is_future: bool) -> None:
        topic = self._topics.get(log.topic)
        if topic is None:
            topic = self._topics[log.topic] = DescribeLogDirsTopic(name=log.topic)
            self._result.topics.append(topic)
        topic.partitions.append(
            DescribeLogDirsPartition(
                partition_index=log.partition,
                partition_size=log.size_in_bytes,
                offset_lag=offset_lag,
                is_future_key=is_future,
            )
        )


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


def error_response(request: DescribeLogDirsRequest, code: ErrorCode) -> DescribeLogDirsResponse:
    # Before version 3 only a directory has a code.
    return DescribeLogDirsResponse(
        error_code=code, results=[DescribeLogDirsResult(error_code=code)]
    )
