"""DeleteTopics (key 20): remove topics by name or id.

Versions 1-6.

Promise: when the reply leaves, the topics are gone for good, also after a crash; fetches that
waited on them are answered. A name may be used again at once, for a topic with a new id.

Version by version: 2 throttling after the reply · 3 TOPIC_DELETION_DISABLED · 4 flexible ·
5 error messages · 6 topic ids.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING
from uuid import UUID

from klamm.broker.metadata.image import MetadataImage, TopicState
from klamm.broker.metadata.topics import removal_record
from klamm.broker.steps import Stepwise, collect, count
from klamm.log.work import run_inline
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from klamm.wire.schema import ZERO_UUID

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext

API_KEY = 20
VERSIONS = (1, 6)

DELETION_DISABLED_FROM = 3


async def handle(request: DeleteTopicsRequest, context: RequestContext) -> DeleteTopicsResponse:
    controller = context.broker.controller
    steps = context.broker.steps
    refusal = refusal_of_all(request, context)
    if refusal is not None:
        return await steps.run(refuse_all(request, refusal))
    async with controller.lock:
        deletion = Deletion()
        await steps.run(deletion.plan(request, controller.image))
        if deletion.topics:
            await controller.delete_topics(
                map(removal_record, deletion.topics.values()), deletion.topics
            )
    return DeleteTopicsResponse(responses=deletion.results)


def refusal_of_all(request: DeleteTopicsRequest, context: RequestContext) -> ErrorCode | None:
    if not context.broker.config.delete_topic_enable:
        disabled = context.api_version >= DELETION_DISABLED_FROM
        return ErrorCode.TOPIC_DELETION_DISABLED if disabled else ErrorCode.INVALID_REQUEST
    return ErrorCode.REQUEST_TIMED_OUT if request.timeout_ms < 0 else None


class Deletion:
    """Which topics a request means: by name or by id, each once."""

    def __init__(self) -> None:
        self.results: list[DeletableTopicResult] = []
        self.topics: dict[UUID, TopicState] = {}

    def plan(self, request: DeleteTopicsRequest, image: MetadataImage) -> Stepwise[None]:
        names = yield from count(request.topic_names)
        ids: Counter[UUID] = Counter()
        for asked in request.topics:
            yield None
            if asked.name is None and asked.topic_id == ZERO_UUID:
                self._refuse(None, ZERO_UUID, "Neither a name nor an id is given.")
            elif asked.name is None:
                ids[asked.topic_id] += 1
            elif asked.topic_id == ZERO_UUID:
                names[asked.name] += 1
            else:
                self._refuse(asked.name, asked.topic_id, "Both a name and an id are given.")
        for name, times in names.items():
            yield None
            if times > 1:
                self._refuse(name, ZERO_UUID, "The name is given twice.")
            else:
                self._by_name(name, image, ids)
        for topic_id, times in ids.items():
            yield None
            if times > 1:
                self._refuse(None, topic_id, "The id is given twice.")
            else:
                self._by_id(topic_id, image)
        for topic in self.topics.values():
            yield None
            self.results.append(DeletableTopicResult(name=topic.name, topic_id=topic.topic_id))

    def _by_name(self, name: str, image: MetadataImage, ids: Counter[UUID]) -> None:
        topic = image.topics.get(name)
        if topic is None:
            self._refuse(
                name,
                ZERO_UUID,
                "There is no such topic.",
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            )
        elif topic.topic_id in ids:
            self._refuse(name, topic.topic_id, "The topic is given by name and by id.")
            del ids[topic.topic_id]
        else:
            self.topics[topic.topic_id] = topic

    def _by_id(self, topic_id: UUID, image: MetadataImage) -> None:
        topic = image.topics_by_id.get(topic_id)
        if topic is None:
            self._refuse(None, topic_id, "There is no such topic.", ErrorCode.UNKNOWN_TOPIC_ID)
        else:
            self.topics[topic_id] = topic

    def _refuse(
        self,
        name: str | None,
        topic_id: UUID,
        message: str,
        code: ErrorCode = ErrorCode.INVALID_REQUEST,
    ) -> None:
        self.results.append(
            DeletableTopicResult(
                name=name, topic_id=topic_id, error_code=code, error_message=message
            )
        )


def error_response(request: DeleteTopicsRequest, code: ErrorCode) -> DeleteTopicsResponse:
    return run_inline(refuse_all(request, code))


def refuse_all(request: DeleteTopicsRequest, code: ErrorCode) -> Stepwise[DeleteTopicsResponse]:
    named = ((name, ZERO_UUID) for name in request.topic_names)
    others = ((topic.name, topic.topic_id) for topic in request.topics)
    refused = (
        DeletableTopicResult(name=name, topic_id=topic_id, error_code=code)
        for name, topic_id in chain(named, others)
    )
    return DeleteTopicsResponse(responses=(yield from collect(refused)))
