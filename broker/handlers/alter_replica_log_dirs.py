"""AlterReplicaLogDirs (key 34): move partitions to another log directory of the broker.

Versions 1-2.

Promise: there is one log directory, and every partition is in it. A request that names it, under
the path that DescribeLogDirs tells, finds everything in place; no other directory is found. Of
several directories for one partition the last counts.

Version by version: 2 flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klamm.broker.log_directory import log_directory
from klamm.broker.replies import Steps
from klamm.broker.steps import Stepwise, run_inline
from klamm.log.errors import LogError
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

API_KEY = 34
VERSIONS = (1, 2)

# While a partition moves, its directory is named `<topic>-<partition>.<32 digits>-future`.
FUTURE_SUFFIX_LENGTH = len(".-future") + 32
FILE_NAME_LENGTH_MAX = 255


def handle(
    request: AlterReplicaLogDirsRequest, context: RequestContext
) -> Steps[AlterReplicaLogDirsResponse]:
    broker = context.broker
    directory = log_directory(broker)
    return (
        yield from answer(
            request, lambda topic, index, path: move(topic, index, path == directory, broker)
        )
    )


def move(topic: str, index: int, is_ours: bool, broker: Broker) -> ErrorCode:
    if len(f"{topic}-{index}") + FUTURE_SUFFIX_LENGTH > FILE_NAME_LENGTH_MAX:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if not is_ours:
        return ErrorCode.LOG_DIR_NOT_FOUND
    try:
        broker.partitions.find(topic, index)
    except LogError as error:
        return error.code
    return ErrorCode.NONE


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
