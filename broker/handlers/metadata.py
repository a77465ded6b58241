"""Metadata (key 3): brokers, topics and who leads their partitions.

Versions 0-13.

Promise: what is listed is led and writable, except what has no leader because its log directory is
offline. A topic that does not exist is made on the way when
both the request and `auto.create.topics.enable` allow it, and the reply shows it ready (Kafka
answers LEADER_NOT_AVAILABLE once first).

Version by version: 1 all topics by null, controller · 2 cluster id · 4 auto-creation can be
refused · 5 offline replicas · 7 leader epoch · 8 authorised operations · 9 flexible · 10 topic ids
in the reply · 12 lookup by topic id · 13 error of the whole reply (KIP-1102).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from klamm.broker.authorized_operations import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from klamm.broker.metadata.image import NO_LEADER, MetadataImage, TopicState
from klamm.broker.metadata.topics import INTERNAL_TOPICS, unknown_topic_code
from klamm.broker.replies import Steps
from klamm.broker.steps import Stepwise, collect
from klamm.log.work import run_inline
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from klamm.wire.schema import ZERO_UUID

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext

API_KEY = 3
VERSIONS = (0, 13)

LOOKUP_BY_ID_FROM = 12


@dataclass(slots=True)
class Asked:
    """The topics that a request asks for, each once."""

    all: bool
    names: dict[str, None] = field(default_factory=dict)
    ids: dict[UUID, None] = field(default_factory=dict)
    # Some topic has no name, or neither name nor id.
    lacks_name: bool = False
    lacks_both: bool = False


def handle(request: MetadataRequest, context: RequestContext) -> Steps[MetadataResponse]:
    asked = yield from look_at(request, context.api_version)
    if context.api_version < LOOKUP_BY_ID_FROM and (asked.ids or asked.lacks_name):
        # Versions 10 and 11 have the field for ids already, but it may not be used yet.
        return (yield from refuse_all(request, ErrorCode.INVALID_REQUEST))
    if asked.lacks_both:
        # Kafka finds no better code for it.
        return (yield from refuse_all(request, ErrorCode.UNKNOWN_SERVER_ERROR))
    missing = missing_topics(request, asked, context)
    if missing:
        return create_then_describe(request, asked, context, missing)
    return (yield from describe(request, asked, context))


def look_at(request: MetadataRequest, version: int) -> Stepwise[Asked]:
    asked = Asked(all=request.topics is None or (version == 0 and not request.topics))
    for topic in request.topics or ():
        if topic.name is not None:
            asked.names[topic.name] = None
        else:
            asked.lacks_name = True
        if topic.topic_id != ZERO_UUID:
            asked.ids[topic.topic_id] = None
        elif topic.name is None:
            asked.lacks_both = True
        yield None
    return asked


def missing_topics(request: MetadataRequest, asked: Asked, context: RequestContext) -> list[str]:
    """Topics to be made because somebody asked for them by name."""
    broker = context.broker
    if asked.all or asked.ids:
        return []
    if not (request.allow_auto_topic_creation and broker.config.auto_create_topics_enable):
        return []
    known = broker.metadata.image.topics
    return [name for name in asked.names if name not in known]


async def create_then_describe(
    request: MetadataRequest, asked: Asked, context: RequestContext, missing: Iterable[str]
) -> MetadataResponse:
    await context.broker.controller.auto_create(missing)
    return await context.broker.steps.run(describe(request, asked, context))


def describe(
    request: MetadataRequest, asked: Asked, context: RequestContext
) -> Stepwise[MetadataResponse]:
    broker = context.broker
    host, port = broker.advertised_address(context.connection)
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=broker.node_id, host=host, port=port, rack=broker.config.broker_rack
            )
        ],
        cluster_id=broker.cluster_id,
        controller_id=broker.node_id,
        topics=(yield from described_topics(asked, broker.metadata.image)),
    )
    if request.include_topic_authorized_operations:
        for topic in response.topics:
            if topic.error_code != ErrorCode.UNKNOWN_TOPIC_ID:
                topic.topic_authorized_operations = TOPIC_OPERATIONS
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


def described_topics(asked: Asked, image: MetadataImage) -> Stepwise[list[MetadataResponseTopic]]:
    if asked.all:
        # A copy, because topics may come and go between two steps.
        return (yield from known_topics(list(image.topics.values())))
    known = []
    unknown = []
    if asked.ids:
        # Names beside ids are not looked at, as in Kafka.
        for topic_id in asked.ids:
            topic = image.topics_by_id.get(topic_id)
            if topic is not None:
                known.append(topic)
            else:
                unknown.append(unknown_id(topic_id))
            yield None
        return unknown + (yield from known_topics(known))
    for name in asked.names:
        topic = image.topics.get(name)
        if topic is not None:
            known.append(topic)
        else:
            unknown.append(unknown_topic(name))
        yield None
    return (yield from known_topics(known)) + unknown


def known_topics(topics: list[TopicState]) -> Stepwise[list[MetadataResponseTopic]]:
    described = []
    for topic in topics:
        partitions = []
        for state in topic.partitions:
            partition = MetadataResponsePartition(
                partition_index=state.index,
                leader_id=state.leader,
                leader_epoch=state.leader_epoch,
                replica_nodes=state.replicas,
                isr_nodes=state.isr,
            )
            if state.leader == NO_LEADER:
                partition.error_code = ErrorCode.LEADER_NOT_AVAILABLE
                partition.offline_replicas = state.replicas
            partitions.append(partition)
            yield None
        described.append(
            MetadataResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                is_internal=topic.name in INTERNAL_TOPICS,
                partitions=partitions,
            )
        )
    return described


def unknown_id(topic_id: UUID) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id
    )


def unknown_topic(name: str) -> MetadataResponseTopic:
    """A topic that could not be made on the way is unknown, too."""
    return MetadataResponseTopic(
        error_code=unknown_topic_code(name), name=name, is_internal=name in INTERNAL_TOPICS
    )


def error_response(request: MetadataRequest, code: ErrorCode) -> MetadataResponse:
    return run_inline(refuse_all(request, code))


def refuse_all(request: MetadataRequest, code: ErrorCode) -> Stepwise[MetadataResponse]:
    def refused(topic: MetadataRequestTopic) -> MetadataResponseTopic:
        return MetadataResponseTopic(
            error_code=code, name=topic.name or "", topic_id=topic.topic_id
        )

    topics = yield from collect(map(refused, request.topics or ()))
    return MetadataResponse(topics=topics, error_code=code)
