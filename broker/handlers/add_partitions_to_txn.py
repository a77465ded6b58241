"""AddPartitionsToTxn (key 24): make partitions part of a transaction, or ask whether they are.

Versions 0-5. Versions 0-3 are for producers of before transactions version 2, and about one
transaction. From 4 on brokers speak to coordinators, about several, and may only ask
(`verify_only`); klamm's own Produce asks without a request.

Promise: all partitions of a transaction are added, durably, or none of them is. When it is answered
without an error, whatever is written to them will get a marker.

Version by version: 1 throttling after the reply · 2 PRODUCER_FENCED instead of
INVALID_PRODUCER_EPOCH · 3 flexible · 4 several transactions, verification (KIP-890) · 5
TRANSACTION_ABORTABLE.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from klamm.broker.coordinator_shard import when_durable
from klamm.broker.metadata.topics import INTERNAL_TOPICS
from klamm.broker.replies import Steps
from klamm.broker.steps import Stepwise
from klamm.broker.transactions.codes import known_code
from klamm.broker.transactions.shard import TransactionShard
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.transaction.coordinator import ProducerIdentity, TransactionCoordinator
from klamm.coordinator.transaction.transaction import EPOCH_BUMP_FROM, TopicPartition
from klamm.log.work import run_inline
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext

API_KEY = 24
VERSIONS = (0, 5)

FENCED_FROM = 2
SEVERAL_FROM = 4

Results = list[AddPartitionsToTxnTopicResult]


def handle(
    request: AddPartitionsToTxnRequest, context: RequestContext
) -> Steps[AddPartitionsToTxnResponse]:
    if context.api_version >= SEVERAL_FROM:
        return (yield from handle_several(request, context))
    transactional_id = request.v3_and_below_transactional_id
    topics = request.v3_and_below_topics
    partitions = yield from named(topics)
    refused = yield from find_refused(partitions, context, internal_allowed=False)
    if refused:
        return one_response((yield from by_topic(refused)))
    results = yield from mirrored(topics)
    if not transactional_id:
        return one_response(with_code(results, ErrorCode.INVALID_REQUEST))

    def command(coordinator: TransactionCoordinator) -> AddPartitionsToTxnResponse:
        coordinator.add_partitions(
            transactional_id,
            ProducerIdentity(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch),
            partitions,
            client_version=0,
        )
        return one_response(results)

    def refuse(code: ErrorCode) -> AddPartitionsToTxnResponse:
        told = known_code(code, knows_fenced=context.api_version >= FENCED_FROM)
        return one_response(with_code(results, told))

    return context.broker.transactions.call(transactional_id, command, refuse)


def handle_several(
    request: AddPartitionsToTxnRequest, context: RequestContext
) -> Steps[AddPartitionsToTxnResponse]:
    response = AddPartitionsToTxnResponse()
    shards: list[TransactionShard] = []
    for transaction in request.transactions:
        partitions = yield from named(transaction.topics)
        refused = yield from find_refused(partitions, context, internal_allowed=True)
        answer = refused or ask(transaction, partitions, context, shards)
        if isinstance(answer, ErrorCode):
            results = with_code((yield from mirrored(transaction.topics)), answer)
        else:
            results = yield from by_topic(answer)
        response.results_by_transaction.append(
            AddPartitionsToTxnResult(
                transactional_id=transaction.transactional_id, topic_results=results
            )
        )
    return when_durable(response, shards)


def ask(
    transaction: AddPartitionsToTxnTransaction,
    partitions: Sequence[TopicPartition],
    context: RequestContext,
    shards: list[TransactionShard],
) -> ErrorCode | Mapping[TopicPartition, ErrorCode]:
    """What the coordinator says of all partitions, or of each; its shard is added to those to wait
    for."""
    transactional_id = transaction.transactional_id
    if not transactional_id:
        return ErrorCode.INVALID_REQUEST
    producer = ProducerIdentity(transaction.producer_id, transaction.producer_epoch)
    try:
        shard = context.broker.transactions.shard_of(transactional_id)
        shards.append(shard)
        if transaction.verify_only:
            missing = shard.coordinator.missing_partitions(transactional_id, producer, partitions)
            codes = dict.fromkeys(partitions, ErrorCode.NONE)
            codes.update(dict.fromkeys(missing, ErrorCode.TRANSACTION_ABORTABLE))
            return codes
        shard.coordinator.add_partitions(
            transactional_id, producer, partitions, client_version=EPOCH_BUMP_FROM
        )
    except CoordinatorError as error:
        return error.code
    return ErrorCode.NONE


def named(topics: Iterable[AddPartitionsToTxnTopic]) -> Stepwise[list[TopicPartition]]:
    partitions: list[TopicPartition] = []
    for topic in topics:
        for index in topic.partitions:
            partitions.append((topic.name, index))
            yield None
    return partitions


def find_refused(
    partitions: Iterable[TopicPartition], context: RequestContext, *, internal_allowed: bool
) -> Stepwise[dict[TopicPartition, ErrorCode]]:
    """Empty if all partitions may be added. Otherwise none is, and each has its code."""
    topics = context.broker.metadata.image.topics
    refused: dict[TopicPartition, ErrorCode] = {}
    accepted: list[TopicPartition] = []
    for name, index in partitions:
        topic = topics.get(name)
        if name in INTERNAL_TOPICS and not internal_allowed:
            refused[name, index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif topic is None or not 0 <= index < len(topic.partitions):
            refused[name, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            accepted.append((name, index))
        yield None
    if refused:
        refused.update(dict.fromkeys(accepted, ErrorCode.OPERATION_NOT_ATTEMPTED))
    return refused


def mirrored(topics: Iterable[AddPartitionsToTxnTopic]) -> Stepwise[Results]:
    """The request again, as long as all is well; what is named twice is answered twice."""
    results: Results = []
    for topic in topics:
        result = AddPartitionsToTxnTopicResult(name=topic.name)
        results.append(result)
        for index in topic.partitions:
            result.results_by_partition.append(
                AddPartitionsToTxnPartitionResult(partition_index=index)
            )
            yield None
    return results


def with_code(results: Results, code: ErrorCode) -> Results:
    """One code for all of it."""
    for topic in results:
        for partition in topic.results_by_partition:
            partition.partition_error_code = code
    return results


def one_response(results: Results) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)


def by_topic(codes: Mapping[TopicPartition, ErrorCode]) -> Stepwise[Results]:
    """Each partition once, with its own code."""
    topics: dict[str, AddPartitionsToTxnTopicResult] = {}
    for (name, index), code in codes.items():
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = AddPartitionsToTxnTopicResult(name=name)
        topic.results_by_partition.append(
            AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
        )
        yield None
    return list(topics.values())


def error_response(
    request: AddPartitionsToTxnRequest, code: ErrorCode
) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(
        error_code=code,
        results_by_topic_v3_and_below=with_code(
            run_inline(mirrored(request.v3_and_below_topics)), code
        ),
    )
