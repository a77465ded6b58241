"""CreateTopics (key 19): make topics.

Versions 2-7.

Promise: all topics of a request that can be made are made together, in one durable step; when the
reply leaves, they are led, writable and in Metadata. There is nothing to wait for that could take
as long as `timeout_ms`; a negative one is over before it began, as in Kafka.

Version by version: 4 defaults (-1) for partitions and replication factor · 5 flexible; partitions,
replication factor and configs in the reply · 6 quota errors · 7 topic ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from klamm.broker.config import effective_topic_configs
from klamm.broker.controller import NewTopic
from klamm.broker.metadata.topics import (
    METADATA_TOPIC,
    PARTITIONS_PER_REQUEST_MAX,
    USE_DEFAULT,
    Refused,
)
from klamm.broker.steps import Stepwise, collect, count
from klamm.log.work import run_inline
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from klamm.wire.schema import Message

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext

API_KEY = 19
VERSIONS = (2, 7)


async def handle(request: CreateTopicsRequest, context: RequestContext) -> CreateTopicsResponse:
    controller = context.broker.controller
    steps = context.broker.steps
    mentions = await steps.run(count(topic.name for topic in request.topics))
    wanted = await steps.run(possible_topics(request, mentions))
    if wanted and request.timeout_ms < 0:
        return await steps.run(refuse_all(request, ErrorCode.REQUEST_TIMED_OUT))
    counts = (partition_count(topic, context) for topic in wanted)
    partitions = sum(await steps.run(collect(counts)))
    if partitions > PARTITIONS_PER_REQUEST_MAX:
        problem = f"{partitions} partitions in one request; {PARTITIONS_PER_REQUEST_MAX} may be."
        return await steps.run(refuse_all(request, ErrorCode.POLICY_VIOLATION, problem))
    async with controller.lock:
        creation = Creation(context)
        await steps.run(creation.plan_all(wanted))
        if creation.accepted and not request.validate_only:
            await controller.create_topics(creation.accepted)
    impossible = await steps.run(refuse_impossible(mentions))
    return CreateTopicsResponse(topics=creation.results + impossible)


def possible_topics(
    request: CreateTopicsRequest, mentions: Counter[str]
) -> Stepwise[list[CreatableTopic]]:
    possible = []
    for topic in request.topics:
        yield None
        if mentions[topic.name] == 1 and topic.name != METADATA_TOPIC:
            possible.append(topic)
    return possible


def refuse_impossible(mentions: Counter[str]) -> Stepwise[list[CreatableTopicResult]]:
    refused = []
    for name, times in mentions.items():
        yield None
        if times > 1:
            problem = "The topic is named twice."
        elif name == METADATA_TOPIC:
            problem = f"{METADATA_TOPIC} is the broker's own."
        else:
            continue
        refused.append(refusal(name, ErrorCode.INVALID_REQUEST, problem))
    return refused


class Creation:
    """Which topics of a request can be made, and what the reply says of each."""

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self.results: list[CreatableTopicResult] = []
        self.accepted: dict[str, Iterable[Message]] = {}
        # Most topics of a request set the same or nothing: then they share what the reply lists.
        self._listed: dict[frozenset[tuple[str, str]], list[CreatableTopicConfigs]] = {}

    def plan_all(self, topics: Iterable[CreatableTopic]) -> Stepwise[None]:
        for topic in topics:
            yield None
            try:
                new_topic = plan(topic, self._context)
            except Refused as refused:
                self.results.append(refusal(topic.name, refused.code, refused.message))
                continue
            self.accepted[topic.name] = new_topic.records
            self.results.append(self._success(new_topic))

    def _success(self, new_topic: NewTopic) -> CreatableTopicResult:
        key = frozenset(new_topic.configs.items())
        configs = self._listed.get(key)
        if configs is None:
            configs = self._listed[key] = listed_configs(new_topic, self._context)
        return CreatableTopicResult(
            name=new_topic.name,
            topic_id=new_topic.topic_id,
            error_message=None,
            num_partitions=len(new_topic.replicas),
            replication_factor=len(new_topic.replicas[0]),
            configs=configs,
        )


def partition_count(topic: CreatableTopic, context: RequestContext) -> int:
    """How many partitions a topic would have, if nothing else is wrong with it."""
    if topic.assignments:
        return len(topic.assignments)
    if topic.num_partitions == USE_DEFAULT:
        return context.broker.config.num_partitions
    return max(0, topic.num_partitions)


def plan(topic: CreatableTopic, context: RequestContext) -> NewTopic:
    """Raises Refused."""
    return context.broker.controller.plan_topic(
        topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[(each.partition_index, each.broker_ids) for each in topic.assignments],
        configs={config.name: config.value for config in topic.configs},
    )


def listed_configs(new_topic: NewTopic, context: RequestContext) -> list[CreatableTopicConfigs]:
    return [
        CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.config_source,
            is_sensitive=entry.is_sensitive,
        )
        for entry in effective_topic_configs(context.broker.config, new_topic.configs)
    ]


def refusal(name: str, code: ErrorCode, message: str | None) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=code, error_message=message, configs=[])


def error_response(request: CreateTopicsRequest, code: ErrorCode) -> CreateTopicsResponse:
    return run_inline(refuse_all(request, code))


def refuse_all(
    request: CreateTopicsRequest, code: ErrorCode, message: str | None = None
) -> Stepwise[CreateTopicsResponse]:
    refused = (refusal(topic.name, code, message) for topic in request.topics)
    return CreateTopicsResponse(topics=(yield from collect(refused)))
