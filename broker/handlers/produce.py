"""Produce (key 0): append record batches.

Versions 3-13. Advertised from 0, because librdkafka otherwise turns compression off (Kafka does
the same); versions 0-2 are refused.

Promise: acks=0 gets no reply, and an error closes the connection; acks=1 answers when the batch is
in the log (it survives a kill of the process); acks=all answers when it is synced, too, unless
`flush.before.ack` is off for the topic. `flush.messages` and `flush.ms` sync as in Kafka, whatever
the acks. Batches of one request are independent of each other.

Version by version: 3 magic 2 and transactional id · 5 log start offset · 7 zstd · 8 errors per
record · 9 flexible · 10 current leader · 12 transactions version 2 · 13 topic ids.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

import trio

from klamm.broker.replies import Pending
from klamm.log.errors import LogError
from klamm.log.validate import OpenedRecords, check_request_shape, needs_opening, open_records
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
from klamm.wire.schema import Records

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext
    from klamm.broker.flusher import Flusher
    from klamm.broker.partition import Partition
    from klamm.log.partition_log import AppendResult, PartitionLog

API_KEY = 0
VERSIONS = (3, 13)
ADVERTISED_MIN_VERSION = 0

ACKS_NONE, ACKS_LEADER, ACKS_ALL = 0, 1, -1
TOPIC_IDS_FROM = 13
FLUSH_MS_NEVER = 2**63 - 1


def handle(
    request: ProduceRequest, context: RequestContext
) -> ProduceResponse | Pending[ProduceResponse] | Awaitable[ProduceResponse | None] | None:
    production = Production(request, context)
    if production.to_be_opened:
        return production.open_and_append()
    return production.append_all()


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
        self.attempts = [
            [self._attempt(topic, data) for data in topic.partition_data]
            for topic in request.topic_data
        ]

    @property
    def to_be_opened(self) -> list[Attempt]:
        """Batches whose records must be looked at, which may take long."""
        return [attempt for topic in self.attempts for attempt in topic if attempt.needs_opening]

    def _attempt(self, topic: TopicProduceData, data: PartitionProduceData) -> Attempt:
        attempt = Attempt(data.index)
        try:
            partition = self._find(topic, data.index)
            records = data.records
            check_request_shape(records, self.version)
            assert records is not None
            if self.acks not in (ACKS_NONE, ACKS_LEADER, ACKS_ALL):
                raise LogError(ErrorCode.INVALID_REQUIRED_ACKS)
            if partition.topic in self.broker.internal_topics:
                raise LogError(
                    ErrorCode.INVALID_TOPIC_EXCEPTION, "internal topics are written by the broker"
                )
        except LogError as error:
            attempt.error = error
        else:
            attempt.partition = partition
            attempt.records = records
            attempt.needs_opening = needs_opening(records, partition.log.config, self.now_ms)
        return attempt

    async def open_and_append(self) -> ProduceResponse | None:
        """Open what must be opened in threads; the connection's next request waits meanwhile, so
        that the batches of a producer stay in order."""
        for attempt in self.to_be_opened:
            await trio.to_thread.run_sync(
                attempt.open_records, self.now_ms, self.broker.config.klamm_decompressed_bytes_max
            )
        result = self.append_all()
        return await result.wait() if isinstance(result, Pending) else result

    def append_all(self) -> ProduceResponse | Pending[ProduceResponse] | None:
        response = ProduceResponse(
            responses=[
                TopicProduceResponse(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partition_responses=[self._append(attempt) for attempt in attempts],
                )
                for topic, attempts in zip(self.request.topic_data, self.attempts, strict=True)
            ]
        )
        flusher = self.broker.flusher
        if self.acks == ACKS_NONE:
            for log in self.unsynced:
                flusher.sync_soon(log)
            if self.failed is not None:
                self.context.connection.fail(f"produce with acks=0 failed: {self.failed}")
            return None
        if not self.unsynced:
            return response
        return _reply_when_synced(response, self.unsynced, flusher)

    def _append(self, attempt: Attempt) -> PartitionProduceResponse:
        if attempt.error is not None:
            return self._refused(attempt, attempt.error)
        partition = attempt.partition
        assert partition is not None
        if partition.deleted:
            # The topic has gone while the records were being opened.
            return self._refused(attempt, LogError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        try:
            result = partition.append(attempt.records, self.now_ms, attempt.opened)
        except LogError as error:
            return self._refused(attempt, error)
        self._see_to_sync(partition.log, result)
        return PartitionProduceResponse(
            index=attempt.index,
            base_offset=result.base_offset,
            log_append_time_ms=result.log_append_time_ms,
            log_start_offset=result.log_start_offset,
        )

    def _refused(self, attempt: Attempt, error: LogError) -> PartitionProduceResponse:
        self.failed = error
        return _refusal(attempt.index, error)

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


class Attempt:
    """One partition of the request."""

    __slots__ = ("error", "index", "needs_opening", "opened", "partition", "records")

    def __init__(self, index: int) -> None:
        self.index = index
        self.partition: Partition | None = None
        self.records: Records = b""
        self.needs_opening = False
        self.opened: OpenedRecords | None = None
        self.error: LogError | None = None

    def open_records(self, now_ms: int, decompressed_bytes_max: int) -> None:
        """Runs in a thread."""
        assert self.partition is not None
        try:
            self.opened = open_records(
                self.records,
                self.partition.log.config,
                now_ms=now_ms,
                decompressed_bytes_max=decompressed_bytes_max,
            )
        except LogError as error:
            self.error = error


def _refusal(index: int, error: LogError) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=-1,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=batch_index, batch_index_error_message=message)
            for batch_index, message in error.record_errors
        ],
        error_message=error.message or None,
    )


def _reply_when_synced(
    response: ProduceResponse, logs: list[PartitionLog], flusher: Flusher
) -> Pending[ProduceResponse]:
    pending: Pending[ProduceResponse] = Pending()
    left = len(logs)

    def synced() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            pending.complete(response)

    for log in logs:
        flusher.call_when_synced(log, synced)
    return pending


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
