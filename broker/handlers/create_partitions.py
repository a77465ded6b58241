"""CreatePartitions (key 37): give a topic more partitions.

Versions 0-3.

Promise: the new partitions are led and writable when the reply leaves. Partitions are never taken
away.

Version by version: 1 throttling after the reply · 2 flexible · 3 quota errors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from klamm.broker.metadata.topics import (
    RECORDS_PER_REQUEST_MAX,
    Refused,
    partition_records,
    plan_new_partitions,
)
from klamm.broker.steps import Stepwise, collect, count
from klamm.log.work import run_inline
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
    steps = context.broker.steps
    mentions = await steps.run(count(topic.name for topic in request.topics))
    if request.timeout_ms < 0 and 1 in mentions.values():
        return await steps.run(refuse_all(request, ErrorCode.REQUEST_TIMED_OUT))
    async with controller.lock:
        growth = Growth(request, context)
        await steps.run(growth.plan_all(mentions))
        if growth.topics and not request.validate_only:
            await controller.commit(growth.records)
            await controller.open_partitions(growth.topics)
    return CreatePartitionsResponse(results=growth.results)


class Growth:
    """Which topics of a request grow, and the records that make them grow."""

    def __init__(self, request: CreatePartitionsRequest, context: RequestContext) -> None:
        self._request = request
        self._controller = context.broker.controller
        self.results: list[CreatePartitionsTopicResult] = []
        self.records: list[PartitionRecord] = []
        self.topics: list[str] = []

    def plan_all(self, mentions: Counter[str]) -> Stepwise[None]:
        for name, times in mentions.items():
            if times > 1:
                self.results.append(
                    refusal(name, ErrorCode.INVALID_REQUEST, "The topic is named twice.")
                )
                yield None
        for topic in self._request.topics:
            yield None
            if mentions[topic.name] > 1:
                continue
            try:
                records = self._plan(topic)
            except Refused as refused:
                self.results.append(refusal(topic.name, refused.code, refused.message))
                continue
            self.records += yield from collect(records)
            self.results.append(CreatePartitionsTopicResult(name=topic.name))
            self.topics.append(topic.name)

    def _plan(self, topic: CreatePartitionsTopic) -> Iterator[PartitionRecord]:
        """Raises Refused."""
        existing = self._controller.image.topic(topic.name)
        assignments = None
        if topic.assignments is not None:
            assignments = [assignment.broker_ids for assignment in topic.assignments]
        records_left = RECORDS_PER_REQUEST_MAX - len(self.records)
        replicas = plan_new_partitions(
            existing, topic.count, assignments, self._controller.brokers_for_new, records_left
        )
        assert existing is not None
        place = self._controller.placement.next
        return partition_records(existing.topic_id, len(existing.partitions), replicas, place)


def refusal(name: str, code: ErrorCode, message: str | None) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=code, error_message=message)


def error_response(request: CreatePartitionsRequest, code: ErrorCode) -> CreatePartitionsResponse:
    return run_inline(refuse_all(request, code))


def refuse_all(
    request: CreatePartitionsRequest, code: ErrorCode
) -> Stepwise[CreatePartitionsResponse]:
    refused = (refusal(topic.name, code, None) for topic in request.topics)
    return CreatePartitionsResponse(results=(yield from collect(refused)))
