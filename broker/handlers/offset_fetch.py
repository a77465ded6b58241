"""OffsetFetch (key 9): how far groups have read.

Versions 1-10.

Promise: for each partition the last commit that was stored, with its metadata and leader epoch, or
-1; what is answered is on disk (unless `flush.before.ack` is off for `__consumer_offsets`). A group
that does not exist has no offsets, which is no error. A commit in a transaction counts once the
transaction is committed; until it has ended, whoever asks for stable commits gets
UNSTABLE_OFFSET_COMMIT for its partition.

Version by version: 2 all topics by null, an error of the whole reply · 3 throttle time ·
4 throttling after the reply · 5 leader epoch · 6 flexible · 7 stable commits only · 8 several
groups · 9 member id and epoch (KIP-848) · 10 topic ids instead of names.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from klamm.broker.coordinator_shard import when_durable
from klamm.broker.replies import Steps
from klamm.broker.steps import Stepwise
from klamm.coordinator.errors import CoordinatorError
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from klamm.wire.schema import ZERO_UUID

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext
    from klamm.broker.groups.shard import GroupShard
    from klamm.coordinator.ports import Topics

API_KEY = 9
VERSIONS = (1, 10)

ERROR_OF_ALL_FROM = 2
SEVERAL_GROUPS_FROM = 8
TOPIC_IDS_FROM = 10
NO_OFFSET = -1


def handle(request: OffsetFetchRequest, context: RequestContext) -> Steps[OffsetFetchResponse]:
    version = context.api_version
    found: list[OffsetFetchResponseGroup] = []
    asked_shards: list[GroupShard] = []
    for asked in request.groups if version >= SEVERAL_GROUPS_FROM else [only_group(request)]:
        try:
            shard = context.broker.groups.shard_of(asked.group_id)
            found.append((yield from fetch_group(asked, shard, context, request.require_stable)))
            asked_shards.append(shard)
        except CoordinatorError as error:
            found.append(group_error(asked, error.code, version))
        yield None
    if version >= SEVERAL_GROUPS_FROM:
        return when_durable(OffsetFetchResponse(groups=found), asked_shards)
    return when_durable(of_one_group(found[0]), asked_shards)


def fetch_group(
    asked: OffsetFetchRequestGroup,
    shard: GroupShard,
    context: RequestContext,
    require_stable: bool,
) -> Stepwise[OffsetFetchResponseGroup]:
    """Raises CoordinatorError."""
    fetch = partial(shard.coordinator.fetch_offsets, require_stable=require_stable)
    response = OffsetFetchResponseGroup(group_id=asked.group_id)
    if context.api_version < TOPIC_IDS_FROM:
        yield from fetch(asked, response)
        return response
    topics = context.broker.groups.topics
    known, unknown = resolve_ids(asked, topics)
    yield from fetch(known, response)
    if asked.topics is None:
        add_ids(response, topics)
    response.topics += unknown
    return response


def resolve_ids(
    asked: OffsetFetchRequestGroup, topics: Topics
) -> tuple[OffsetFetchRequestGroup, list[OffsetFetchResponseTopics]]:
    """The same request by name, and the reply for ids of no topic."""
    if asked.topics is None:
        return asked, []
    known: list[OffsetFetchRequestTopics] = []
    unknown: list[OffsetFetchResponseTopics] = []
    for topic in asked.topics:
        described = topics.find_by_id(topic.topic_id)
        if described is None:
            unknown.append(unknown_topic(topic))
        else:
            topic.name = described.name
            known.append(topic)
    return (
        OffsetFetchRequestGroup(
            group_id=asked.group_id,
            member_id=asked.member_id,
            member_epoch=asked.member_epoch,
            topics=known,
        ),
        unknown,
    )


def add_ids(response: OffsetFetchResponseGroup, topics: Topics) -> None:
    """Topics that have gone have no id any more, and so no place in the reply."""
    for topic in response.topics:
        described = topics.find(topic.name)
        if described is not None:
            topic.topic_id = described.topic_id
    response.topics = [topic for topic in response.topics if topic.topic_id != ZERO_UUID]


def unknown_topic(
    topic: OffsetFetchRequestTopics, code: ErrorCode = ErrorCode.UNKNOWN_TOPIC_ID
) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=NO_OFFSET, error_code=code
            )
            for index in topic.partition_indexes
        ],
    )


def group_error(
    asked: OffsetFetchRequestGroup, code: ErrorCode, version: int
) -> OffsetFetchResponseGroup:
    """Version 1 has no other place for an error than the partitions."""
    if version >= ERROR_OF_ALL_FROM:
        return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=code)
    return OffsetFetchResponseGroup(
        group_id=asked.group_id,
        topics=[unknown_topic(topic, code) for topic in asked.topics or []],
    )


def only_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    """The group of a request of before version 8, as later versions say it."""
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    return OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)


def of_one_group(group: OffsetFetchResponseGroup) -> OffsetFetchResponse:
    """The reply of before version 8."""
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in group.topics
        ],
    )


def error_response(request: OffsetFetchRequest, code: ErrorCode) -> OffsetFetchResponse:
    """The error stands in every place that one of the versions has for it."""
    response = of_one_group(group_error(only_group(request), code, 1))
    response.error_code = code
    response.groups = [
        OffsetFetchResponseGroup(group_id=group.group_id, error_code=code)
        for group in request.groups
    ]
    return response
