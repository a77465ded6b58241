"""TxnOffsetCommit (key 28): store how far a group has read, as part of a transaction.

Versions 0-5.

Promise: as OffsetCommit, except that the offsets are pending until the transaction ends: then they
come into force, or are forgotten. A commit that is answered without an error is on disk. The
transaction must know of the group's partition of `__consumer_offsets` (AddOffsetsToTxn) before
anything is written there; from version 5 on it learns of it by this request.

Version by version: 1 throttling after the reply · 2 leader epoch · 3 flexible, and the group's
generation and member are checked (KIP-447) · 4 TRANSACTION_ABORTABLE · 5 the partition of the group
becomes part of the transaction (KIP-890).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

from klamm.broker.coordinator_shard import REFUSALS
from klamm.broker.groups.batches import BuiltRecords, build_records_batch
from klamm.broker.groups.offsets_topic import OFFSETS_TOPIC
from klamm.broker.handlers.offset_commit import BUILT_AT_ONCE_MAX
from klamm.broker.replies import Steps
from klamm.broker.steps import Stepwise
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.offset_commits import OffsetCommit
from klamm.coordinator.ports import OpenTransaction
from klamm.log.errors import LogError
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from klamm.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext

API_KEY = 28
VERSIONS = (0, 5)

# Clients of before would end themselves when a coordinator is loading.
KNOWS_LOADING_FROM = 2
ABORTABLE_FROM = 4
ADDS_FROM = 5


def handle(
    request: TxnOffsetCommitRequest, context: RequestContext
) -> Steps[TxnOffsetCommitResponse]:
    groups = context.broker.groups
    now_ms = context.broker.clock.now_ms()
    commit = OffsetCommit(
        (yield from as_offset_commit(request)),
        groups.topics,
        api_version=context.api_version,
        now_ms=now_ms,
        metadata_max=groups.settings.offset_metadata_max_bytes,
        producer_id=request.producer_id,
    )
    yield from commit.prepare()
    if commit.concerns_nobody:
        return (yield from as_transactional(commit.response()))
    if len(commit.records) > BUILT_AT_ONCE_MAX:
        transaction = OpenTransaction(request.producer_id, request.producer_epoch)
        build = partial(build_records_batch, commit.records, now_ms, groups.codec, transaction)
        commit.records = BuiltRecords(commit.records, (yield build))
    return store(commit, request, context)


async def store(
    commit: OffsetCommit, request: TxnOffsetCommitRequest, context: RequestContext
) -> TxnOffsetCommitResponse:
    """Ask the coordinator of the transaction, then that of the group, then wait for the disk."""
    code = ErrorCode.NONE
    try:
        guard = await start_write(request, context)
        shard = context.broker.groups.shard_of(request.group_id)
        shard.coordinator.commit_transactional_offsets(
            commit, OpenTransaction(request.producer_id, request.producer_epoch, guard)
        )
        durable = trio.Event()
        shard.when_durable(durable.set)
        await durable.wait()
    except LogError as error:
        code = REFUSALS.get(error.code, error.code)
    except CoordinatorError as error:
        code = error.code
    steps = as_transactional(commit.response(for_version(code, context.api_version)))
    return await context.broker.steps.run(steps)


async def start_write(request: TxnOffsetCommitRequest, context: RequestContext) -> object | None:
    """What the log wants to see, unless nobody has to be asked.

    Raises:
        LogError: the coordinator of the transaction refuses.
        CoordinatorError: the group or the transaction has no name.
    """
    if not request.group_id:
        raise CoordinatorError(ErrorCode.INVALID_GROUP_ID)
    broker = context.broker
    adds = context.api_version >= ADDS_FROM
    if not adds and not broker.config.transaction_partition_verification_enable:
        return None
    if not request.transactional_id:
        raise CoordinatorError(ErrorCode.INVALID_REQUEST)
    return await broker.transactions.start_write(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        OFFSETS_TOPIC,
        broker.groups.partition_of(request.group_id),
        add=adds,
    )


def for_version(code: ErrorCode, api_version: int) -> ErrorCode:
    """What a client of this version knows for an error."""
    if api_version < ABORTABLE_FROM and code is ErrorCode.TRANSACTION_ABORTABLE:
        return ErrorCode.INVALID_TXN_STATE
    if api_version < KNOWS_LOADING_FROM and code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return code


def as_offset_commit(request: TxnOffsetCommitRequest) -> Stepwise[OffsetCommitRequest]:
    """The same without its transaction."""
    commit = OffsetCommitRequest(
        group_id=request.group_id,
        generation_id_or_member_epoch=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
    )
    for asked in request.topics:
        topic = OffsetCommitRequestTopic(name=asked.name)
        commit.topics.append(topic)
        for partition in asked.partitions:
            topic.partitions.append(
                OffsetCommitRequestPartition(
                    partition_index=partition.partition_index,
                    committed_offset=partition.committed_offset,
                    committed_leader_epoch=partition.committed_leader_epoch,
                    committed_metadata=partition.committed_metadata,
                )
            )
            yield None
    return commit


def as_transactional(response: OffsetCommitResponse) -> Stepwise[TxnOffsetCommitResponse]:
    answer = TxnOffsetCommitResponse()
    for topic in response.topics:
        answered = TxnOffsetCommitResponseTopic(name=topic.name)
        answer.topics.append(answered)
        for partition in topic.partitions:
            answered.partitions.append(
                TxnOffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=partition.error_code
                )
            )
            yield None
    return answer


def error_response(request: TxnOffsetCommitRequest, code: ErrorCode) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=code
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
