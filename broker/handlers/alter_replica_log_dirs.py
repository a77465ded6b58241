"""AlterReplicaLogDirs (key 34): move partitions to another log directory of the broker.

Versions 1-2.

Promise: a partition moves while it is written to and read, and a crash at any time leaves one good
copy of it (`log/future.py`). The reply says that it begins to move; DescribeLogDirs tells how far
it has come, and by which paths directories are named. To name the one where a partition is already
stops its move. Of several directories for one partition the last counts.

Version by version: 2 flexible.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from klamm.broker.log_directory import find_directory
from klamm.broker.placement import is_cordoned
from klamm.broker.replies import Steps
from klamm.broker.steps import Stepwise
from klamm.log.errors import LogError, StorageError
from klamm.log.work import run_inline
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from klamm.broker.broker import Broker
    from klamm.broker.context import RequestContext

logger = logging.getLogger(__name__)

API_KEY = 34
VERSIONS = (1, 2)

# While a partition moves, its directory is named `<topic>-<partition>.<32 digits>-future`.
FUTURE_SUFFIX_LENGTH = len(".-future") + 32
FILE_NAME_LENGTH_MAX = 255


def handle(
    request: AlterReplicaLogDirsRequest, context: RequestContext
) -> Steps[AlterReplicaLogDirsResponse]:
    broker = context.broker

    def code_of(topic: str, index: int, path: str) -> ErrorCode:
        try:
            move(topic, index, path, broker)
        except LogError as error:
            return error.code
        except (StorageError, OSError) as error:
            logger.error("%s-%d can't move to %s: %s", topic, index, path, error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE

    return (yield from answer(request, code_of))


def move(topic: str, index: int, path: str, broker: Broker) -> None:
    """Raises LogError, StorageError or OSError."""
    if len(f"{topic}-{index}") + FUTURE_SUFFIX_LENGTH > FILE_NAME_LENGTH_MAX:
        raise LogError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    target = find_directory(broker, path)
    partition = broker.partitions.find(topic, index)
    under_way = broker.moves.get(partition)
    if under_way is not None:
        if under_way.target is target:
            return
        broker.moves.cancel(partition)
    if partition.log.root == target.root:
        return
    if broker.logs.has_offline:
        # As in Kafka: the partition might be in one of those, too.
        raise LogError(ErrorCode.KAFKA_STORAGE_ERROR)
    if is_cordoned(target.root, broker.config):
        raise LogError(ErrorCode.INVALID_REPLICA_ASSIGNMENT)
    broker.moves.begin(partition, target)


def error_response(
    request: AlterReplicaLogDirsRequest, code: ErrorCode
) -> AlterReplicaLogDirsResponse:
    return run_inline(answer(request, lambda topic, index, path: code))


def answer(
    request: AlterReplicaLogDirsRequest, code_of: Callable[[str, int, str], ErrorCode]
) -> Stepwise[AlterReplicaLogDirsResponse]:
    """Each partition once, with the code for the directory that was named last."""
    wanted: dict[str, dict[int, str]] = {}
    for directory in request.dirs:
        yield None
        for topic in directory.topics:
            yield None
            for index in topic.partitions:
                wanted.setdefault(topic.name, {})[index] = directory.path
                yield None
    response = AlterReplicaLogDirsResponse()
    for name, paths in wanted.items():
        result = AlterReplicaLogDirTopicResult(topic_name=name)
        response.results.append(result)
        for index, path in paths.items():
            result.partitions.append(
                AlterReplicaLogDirPartitionResult(
                    partition_index=index, error_code=code_of(name, index, path)
                )
            )
            yield None
    return response
