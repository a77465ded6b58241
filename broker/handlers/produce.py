"""Produce (key 0): append record batches.

Versions 3-13. Advertised from 0, because librdkafka otherwise turns compression off (Kafka does
the same); versions 0-2 are refused.

Promise: acks=0 gets no reply, and an error closes the connection; acks=1 answers when the batch is
in the log (it survives a kill of the process); acks=all answers when it is synced, too, unless
`flush.before.ack` is off for the topic. `flush.messages` and `flush.ms` sync as in Kafka, whatever
the acks. Batches of one request are independent of each other.

A transactional batch is written only if its partition is part of the open transaction of its
producer, on disk. Before version 12 the producer has said so by AddPartitionsToTxn, which is
verified here; since then this request says so (KIP-890).

Version by version: 3 magic 2 and transactional id · 5 log start offset · 7 zstd · 8 errors per
record · 9 flexible · 10 current leader · 12 transactions version 2 · 13 topic ids.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from klamm.broker.metadata.topics import INTERNAL_TOPICS
from klamm.broker.produce_attempts import Attempt, TopicAttempts, one_attempt_each
from klamm.broker.produce_in_transaction import (
    NotInTransactionError,
    Produced,
    ProduceInTransaction,
)
from klamm.broker.replies import Pending, complete_after
from klamm.broker.steps import Stepwise, portions
from klamm.log.errors import LogError
from klamm.log.validate import check_request_shape, is_transactional, needs_opening
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from klamm.wire.records.batch import ATTRIBUTES_OFFSET, TRANSACTIONAL_MASK

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext
    from klamm.broker.partition import Partition
    from klamm.log.partition_log import AppendResult, PartitionLog

API_KEY = 0
VERSIONS = (3, 13)
ADVERTISED_MIN_VERSION = 0

ACKS_NONE, ACKS_LEADER, ACKS_ALL = 0, 1, -1
TOPIC_IDS_FROM = 13
FLUSH_MS_NEVER = 2**63 - 1
# Partitions that are looked at in one step: some hundred microseconds.
LOOKS_PER_STEP_MAX = 16
# Refusals that say nothing about the log: those of the request, and those where Kafka doesn't look.
WITHOUT_LOG_START = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
# Refusals of a whole request whose message goes to the client, as in Kafka.
TOLD_WITH_MESSAGE = frozenset({ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_PRODUCER_ID_MAPPING})


def handle(request: ProduceRequest, context: RequestContext) -> Produced | Stepwise[Produced]:
    production = Production(request, context)
    topics = request.topic_data
    if len(topics) == 1 and len(topics[0].partition_data) == 1:
        # Most requests: mostly there is nothing in them that could take long.
        attempt = production.attempt(topics[0], topics[0].partition_data[0])
        if not production.is_suspect and not attempt.needs_opening:
            return production.append_one(topics[0], attempt)
    return take_steps(production)


def take_steps(production: Production) -> Stepwise[Produced]:
    """Serve a request that is about many partitions, or suspect, or has batches to be opened."""
    yield from production.look_at_all()
    if production.is_suspect:
        refusal = yield from production.find_refusal_of_all()
        if refusal is not None:
            return production.refuse_all(refusal)
    # First of all: what a thread does holds up the connection, and so keeps its requests in order.
    yield from production.open_all()
    if production.is_suspect and production.request.transactional_id is not None:
        return (yield from ProduceInTransaction(production).handle())
    return (yield from production.append_all())


class Production:
    """One produce request under way."""

    def __init__(self, request: ProduceRequest, context: RequestContext) -> None:
        self.request = request
        self.context = context
        self.acks = request.acks
        self.version = context.api_version
        self.broker = context.broker
        self.now_ms = context.broker.clock.now_ms()
        self.unsynced: list[PartitionLog] = []
        self.failed: LogError | None = None
        # Something is wrong, or transactional: only then all of the request is looked at again.
        self.is_suspect = False
        self.topics: TopicAttempts = []

    def look_at_all(self) -> Stepwise[None]:
        topics: TopicAttempts = []
        for topic in self.request.topic_data:
            attempts: list[Attempt] = []
            for some in portions(topic.partition_data, LOOKS_PER_STEP_MAX):
                attempts += [self.attempt(topic, data) for data in some]
                yield None
            topics.append((topic, attempts))
        self.topics = yield from one_attempt_each(topics)

    def find_refusal_of_all(self) -> Stepwise[LogError | None]:
        """Two things refuse the whole request, before anybody looks for topics: a batch that can't
        even begin, and a transactional one without a transactional id."""
        for topic in self.request.topic_data:
            for data in topic.partition_data:
                try:
                    if is_transactional(data.records or b""):
                        if self.request.transactional_id is None:
                            return LogError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
                        return None
                except LogError as error:
                    return error
                yield None
        return None

    def refuse_all(self, error: LogError) -> ProduceResponse | None:
        response = error_response(self.request, error.code)
        if response is None:
            self.context.connection.fail(f"produce with acks=0 failed: {error}")
            return None
        for topic in response.responses:
            for partition in topic.partition_responses:
                if error.code in TOLD_WITH_MESSAGE:
                    partition.error_message = error.message
        return response

    @property
    def to_be_opened(self) -> list[Attempt]:
        """Batches whose records must be looked at, which may take long."""
        return [each for _, attempts in self.topics for each in attempts if each.needs_opening]

    def attempt(self, topic: TopicProduceData, data: PartitionProduceData) -> Attempt:
        """Look at one partition of the request; nothing is done yet."""
        attempt = Attempt(data.index)
        try:
            partition = self._find(topic, data.index)
            records = data.records
            check_request_shape(records, self.version)
            assert records is not None
            if self.acks not in (ACKS_NONE, ACKS_LEADER, ACKS_ALL):
                raise LogError(ErrorCode.INVALID_REQUIRED_ACKS)
            if partition.topic in INTERNAL_TOPICS:
                raise LogError(
                    ErrorCode.INVALID_TOPIC_EXCEPTION, "internal topics are written by the broker"
                )
        except LogError as error:
            # What led to it is of no interest, and costs more than the request.
            attempt.error = error.with_traceback(None)
            self.is_suspect = True
        else:
            if records[ATTRIBUTES_OFFSET + 1] & TRANSACTIONAL_MASK:
                self.is_suspect = True
            attempt.partition = partition
            attempt.records = records
            attempt.needs_opening = needs_opening(records, partition.log.config, self.now_ms)
        return attempt

    def open_all(self) -> Stepwise[None]:
        for attempt in self.to_be_opened:
            yield partial(
                attempt.open_records, self.now_ms, self.broker.config.klamm_decompressed_bytes_max
            )

    def append_one(self, topic: TopicProduceData, attempt: Attempt) -> Produced:
        appended = TopicProduceResponse(
            name=topic.name, topic_id=topic.topic_id, partition_responses=[self._append(attempt)]
        )
        return self._answer(ProduceResponse(responses=[appended]))

    def append_all(self) -> Stepwise[Produced]:
        response = ProduceResponse()
        for topic, attempts in self.topics:
            appended = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
            response.responses.append(appended)
            for attempt in attempts:
                appended.partition_responses.append(self._append(attempt))
                yield None
        return self._answer(response)

    def _answer(self, response: ProduceResponse) -> Produced:
        """Say when the reply leaves; see the promise above."""
        flusher = self.broker.flusher
        if self.acks == ACKS_NONE:
            for log in self.unsynced:
                flusher.sync_soon(log)
            if self.failed is not None:
                self.context.connection.fail(f"produce with acks=0 failed: {self.failed}")
            return None
        if not self.unsynced:
            return response
        waits = [partial(flusher.call_when_synced, log) for log in self.unsynced]
        pending: Pending[ProduceResponse | None] = complete_after(response, waits)
        return pending

    def _append(self, attempt: Attempt) -> PartitionProduceResponse:
        if attempt.error is not None:
            return self._refused(attempt, attempt.error)
        partition = attempt.partition
        assert partition is not None
        if partition.deleted:
            # The topic has gone between two steps.
            return self._refused(attempt, LogError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        try:
            result = partition.append(
                attempt.records, self.now_ms, attempt.opened, guard=attempt.guard
            )
        except LogError as error:
            return self._refused(attempt, error)
        self._see_to_sync(partition.log, result)
        if attempt.refused_beside is not None:
            self.failed = attempt.refused_beside
            return _refusal(attempt.index, attempt.refused_beside)
        return PartitionProduceResponse(
            index=attempt.index,
            base_offset=result.base_offset,
            log_append_time_ms=result.log_append_time_ms,
            log_start_offset=result.log_start_offset,
        )

    def _refused(self, attempt: Attempt, error: LogError) -> PartitionProduceResponse:
        self.failed = error
        refusal = _refusal(attempt.index, error)
        if isinstance(error, NotInTransactionError):
            refusal.error_message = error.told
        elif attempt.partition is not None and error.code not in WITHOUT_LOG_START:
            refusal.log_start_offset = attempt.partition.log.log_start_offset
        return refusal

    def _see_to_sync(self, log: PartitionLog, result: AppendResult) -> None:
        """Decide whether the reply waits for the disk; see the promise above."""
        config = log.config
        if (self.acks == ACKS_ALL and config.flush_before_ack) or (
            log.log_end_offset - log.recovery_point >= config.flush_messages
        ):
            self.unsynced.append(log)
            return
        if result.rolled:
            # A full segment is synced in the background, as Kafka does, so that a crash has at
            # most one segment to recover.
            self.broker.flusher.sync_soon(log)
        if config.flush_ms < FLUSH_MS_NEVER:
            self.broker.flusher.sync_within(log, config.flush_ms / 1000)

    def _find(self, topic: TopicProduceData, index: int) -> Partition:
        partitions = self.broker.partitions
        if self.version >= TOPIC_IDS_FROM:
            partition = partitions.find_by_id(topic.topic_id, index)
        else:
            partition = partitions.find(topic.name, index)
        return partition


def _refusal(index: int, error: LogError) -> PartitionProduceResponse:
    """A message goes to the client only with errors of single records, as in Kafka."""
    return PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=-1,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=batch_index, batch_index_error_message=message)
            for batch_index, message in error.record_errors
        ],
        error_message=error.message if error.record_errors else None,
    )


def error_response(request: ProduceRequest, code: ErrorCode) -> ProduceResponse | None:
    if request.acks == ACKS_NONE:
        return None
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    _refusal(partition.index, LogError(code)) for partition in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )
