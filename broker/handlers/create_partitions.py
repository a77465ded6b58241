"""CreatePartitions (key 37): give a topic more partitions.

Versions 0-3.

Promise: the new partitions are led and writable when the reply leaves. Partitions are never taken
away.

Version by version: 1 throttling after the reply · 2 flexible · 3 quota errors.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from klamm.broker.metadata.topics import (
    RECORDS_PER_REQUEST_MAX,
    Refused,
    partition_records,
    plan_new_partitions,
)
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from klamm.wire.messages.stored.metadata import PartitionRecord

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext

API_KEY = 37
VERSIONS = (0, 3)


async def handle(
    request: CreatePartitionsRequest, context: RequestContext
) -> CreatePartitionsResponse:
    controller = context.broker.controller
    results = []
    records: list[PartitionRecord] = []
    grown = []
    mentions = Counter(topic.name for topic in request.topics)
    for name, count in mentions.items():
        if count > 1:
            results.append(refusal(name, ErrorCode.INVALID_REQUEST, "The topic is named twice."))
    if request.timeout_ms < 0 and len(results) < len(mentions):
        return error_response(request, ErrorCode.REQUEST_TIMED_OUT)
    async with controller.lock:
        for topic in request.topics:
            if mentions[topic.name] > 1:
                continue
            try:
                records += plan(topic, context, RECORDS_PER_REQUEST_MAX - len(records))
            except Refused as refused:
                results.append(refusal(topic.name, refused.code, refused.message))
                continue
            results.append(CreatePartitionsTopicResult(name=topic.name))
            grown.append(topic.name)
        if grown and not request.validate_only:
            await controller.commit(records)
            for name in grown:
                await controller.open_partitions(controller.image.topics[name])
    return CreatePartitionsResponse(results=results)


def plan(
    topic: CreatePartitionsTopic, context: RequestContext, records_left: int
) -> list[PartitionRecord]:
    """Raises Refused."""
    controller = context.broker.controller
    existing = controller.image.topic(topic.name)
    assignments = None
    if topic.assignments is not None:
        assignments = [assignment.broker_ids for assignment in topic.assignments]
    replicas = plan_new_partitions(
        existing, topic.count, assignments, controller.brokers, records_left
    )
    assert existing is not None
    return partition_records(
        existing.topic_id, len(existing.partitions), replicas, context.broker.logs.directory_id
    )


def refusal(name: str, code: ErrorCode, message: str | None) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=code, error_message=message)


def error_response(request: CreatePartitionsRequest, code: ErrorCode) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[refusal(topic.name, code, None) for topic in request.topics]
    )
