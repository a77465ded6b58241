"""OffsetCommit (key 8): store how far a group has read.

Versions 2-10.

Promise: a commit that is answered without an error is on disk (unless `flush.before.ack` is off for
`__consumer_offsets`), and no later start brings an earlier one back. All partitions of a request
that exist and whose metadata fits are stored together, or none of them. A commit without a group
(generation -1) is stored for an empty classic group of that id.

Version by version: 3 throttle time · 4 throttling after the reply · 5 no retention time of its own
· 6 leader epoch · 7 static members (KIP-345) · 8 flexible · 9 member epochs (KIP-848) · 10 topic
ids instead of names.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from klamm.broker.groups.batches import BuiltRecords, build_records_batch
from klamm.broker.replies import Pending
from klamm.broker.steps import Stepwise
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.offset_commits import OffsetCommit
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext
    from klamm.broker.groups.service import Groups

API_KEY = 8
VERSIONS = (2, 10)

# Partitions of one topic that are committed without a look at the clock: some hundred microseconds.
PREPARED_AT_ONCE_MAX = 16
# The batch of so many offsets is built in about five milliseconds; of more, in a thread.
BUILT_AT_ONCE_MAX = 500

Committed = OffsetCommitResponse | Pending[OffsetCommitResponse]


def handle(
    request: OffsetCommitRequest, context: RequestContext
) -> Committed | Stepwise[Committed]:
    groups = context.broker.groups
    now_ms = context.broker.clock.now_ms()
    commit = OffsetCommit(
        request,
        groups.topics,
        api_version=context.api_version,
        now_ms=now_ms,
        metadata_max=groups.settings.offset_metadata_max_bytes,
    )
    topics = request.topics
    if len(topics) == 1 and len(topics[0].partitions) <= PREPARED_AT_ONCE_MAX:
        # Most commits.
        for _ in commit.prepare():
            pass
        return store(commit, groups)
    return take_steps(commit, groups, now_ms)


def take_steps(commit: OffsetCommit, groups: Groups, now_ms: int) -> Stepwise[Committed]:
    """Serve a commit of many offsets."""
    yield from commit.prepare()
    if len(commit.records) > BUILT_AT_ONCE_MAX:
        batch = yield partial(build_records_batch, commit.records, now_ms, groups.codec)
        commit.records = BuiltRecords(commit.records, batch)
    return store(commit, groups)


def store(commit: OffsetCommit, groups: Groups) -> Committed:
    if commit.concerns_nobody:
        return commit.response()
    try:
        return groups.shard_of(commit.request.group_id).commit_offsets(commit)
    except CoordinatorError as error:
        return commit.response(error.code)


def error_response(request: OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=code
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
