"""Metadata (key 3): brokers, topics and who leads their partitions.

Versions 0-13.

Promise: what is listed is led and writable. A topic that does not exist is made on the way when
both the request and `auto.create.topics.enable` allow it, and the reply shows it ready (Kafka
answers LEADER_NOT_AVAILABLE once first).

Version by version: 1 all topics by null, controller · 2 cluster id · 4 auto-creation can be
refused · 5 offline replicas · 7 leader epoch · 8 authorised operations · 9 flexible · 10 topic ids
in the reply · 12 lookup by topic id · 13 error of the whole reply (KIP-1102).
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import TYPE_CHECKING

from klamm.broker.authorized_operations import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from klamm.broker.metadata.image import TopicState
from klamm.broker.metadata.topics import INTERNAL_TOPICS, unknown_topic_code
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.metadata import (
    MetadataRequest,
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


def handle(
    request: MetadataRequest, context: RequestContext
) -> MetadataResponse | Awaitable[MetadataResponse]:
    if not is_legal(request, context.api_version):
        return error_response(request, ErrorCode.INVALID_REQUEST)
    if any(topic.name is None and topic.topic_id == ZERO_UUID for topic in request.topics or ()):
        # Neither a name nor an id: Kafka finds no better code for it.
        return error_response(request, ErrorCode.UNKNOWN_SERVER_ERROR)
    missing = missing_topics(request, context)
    if missing:
        return create_then_describe(request, context, missing)
    return describe(request, context)


def is_legal(request: MetadataRequest, version: int) -> bool:
    """Versions 10 and 11 have the field for ids already, but it may not be used yet."""
    if version >= LOOKUP_BY_ID_FROM or request.topics is None:
        return True
    return all(topic.name is not None and topic.topic_id == ZERO_UUID for topic in request.topics)


def wants_all(request: MetadataRequest, version: int) -> bool:
    return request.topics is None or (version == 0 and not request.topics)


def missing_topics(request: MetadataRequest, context: RequestContext) -> list[str]:
    """Topics to be made because somebody asked for them by name."""
    broker = context.broker
    if wants_all(request, context.api_version):
        return []
    if not (request.allow_auto_topic_creation and broker.config.auto_create_topics_enable):
        return []
    topics = request.topics or []
    if any(topic.topic_id != ZERO_UUID for topic in topics):
        return []
    known = broker.metadata.image.topics
    return list(dict.fromkeys(t.name for t in topics if t.name is not None and t.name not in known))


async def create_then_describe(
    request: MetadataRequest, context: RequestContext, missing: Iterable[str]
) -> MetadataResponse:
    await context.broker.controller.auto_create(missing)
    return describe(request, context)


def describe(request: MetadataRequest, context: RequestContext) -> MetadataResponse:
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
        topics=described_topics(request, context),
    )
    if request.include_topic_authorized_operations:
        for topic in response.topics:
            if topic.error_code != ErrorCode.UNKNOWN_TOPIC_ID:
                topic.topic_authorized_operations = TOPIC_OPERATIONS
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


def described_topics(
    request: MetadataRequest, context: RequestContext
) -> list[MetadataResponseTopic]:
    image = context.broker.metadata.image
    if wants_all(request, context.api_version):
        return [known_topic(topic) for topic in image.topics.values()]
    asked = request.topics or []
    ids = list(dict.fromkeys(t.topic_id for t in asked if t.topic_id != ZERO_UUID))
    if ids:
        # Names beside ids are not looked at, as in Kafka.
        unknown = [
            MetadataResponseTopic(
                error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id
            )
            for topic_id in ids
            if topic_id not in image.topics_by_id
        ]
        return unknown + [
            known_topic(image.topics_by_id[topic_id])
            for topic_id in ids
            if topic_id in image.topics_by_id
        ]
    names = dict.fromkeys(topic.name for topic in asked if topic.name is not None)
    known = [known_topic(image.topics[name]) for name in names if name in image.topics]
    return known + [unknown_topic(name) for name in names if name not in image.topics]


def known_topic(topic: TopicState) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            MetadataResponsePartition(
                partition_index=state.index,
                leader_id=state.leader,
                leader_epoch=state.leader_epoch,
                replica_nodes=state.replicas,
                isr_nodes=state.isr,
            )
            for state in topic.partitions
        ],
    )


def unknown_topic(name: str) -> MetadataResponseTopic:
    """A topic that could not be made on the way is unknown, too."""
    return MetadataResponseTopic(
        error_code=unknown_topic_code(name), name=name, is_internal=name in INTERNAL_TOPICS
    )


def error_response(request: MetadataRequest, code: ErrorCode) -> MetadataResponse:
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id)
            for topic in request.topics or []
        ],
        error_code=code,
    )
