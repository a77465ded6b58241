"""Transaction markers: the control batches by which each partition learns how a transaction ended.

A marker that is written again changes nothing for readers, so a crash in between costs no more than
a second one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from klamm.broker.groups.offsets_topic import OFFSETS_TOPIC
from klamm.broker.partition import Partition
from klamm.broker.steps import Stepwise
from klamm.coordinator.transaction.ports import Outcome
from klamm.coordinator.transaction.transaction import TopicPartition
from klamm.log.append_origin import AppendOrigin
from klamm.log.errors import LogError
from klamm.log.partition_log import PartitionLog
from klamm.wire.errors import ErrorCode
from klamm.wire.records.control import build_end_transaction_marker

if TYPE_CHECKING:
    from klamm.broker.broker import Broker

logger = logging.getLogger(__name__)

RETRY_S = 1.0
# A deleted topic needs no marker. And a partition that knows a later epoch, or a later coordinator,
# has nothing open of this transaction: somebody has written a marker by WriteTxnMarkers.
NEEDLESS = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    }
)


def write_marker(
    broker: Broker,
    partition: Partition,
    producer_id: int,
    producer_epoch: int,
    *,
    commit: bool,
    coordinator_epoch: int,
    transaction_version: int,
) -> None:
    """Append a marker; the caller sees to it that it comes to disk.

    Raises:
        LogError: the log refuses it.
    """
    if partition.deleted:
        raise LogError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    now_ms = broker.clock.now_ms()
    batch = build_end_transaction_marker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        commit=commit,
        coordinator_epoch=coordinator_epoch,
        timestamp=now_ms,
    )
    partition.append(
        memoryview(batch),
        now_ms,
        origin=AppendOrigin.COORDINATOR,
        transaction_version=transaction_version,
    )
    if partition.topic == OFFSETS_TOPIC:
        broker.groups.on_transaction_marker(partition.index, producer_id, producer_epoch, commit)


class MarkerWrite:
    """The markers of one transaction, which are tried until each of them is on disk.

    Args:
        outcome: what they say.
        coordinator_epoch: of the partition that the decision is stored in.
        is_wanted: False as soon as somebody else coordinates the transaction.
        done: called when all markers are on disk.
    """

    def __init__(
        self,
        broker: Broker,
        outcome: Outcome,
        coordinator_epoch: int,
        is_wanted: Callable[[], bool],
        done: Callable[[], None],
    ) -> None:
        self._broker = broker
        self._outcome = outcome
        self._coordinator_epoch = coordinator_epoch
        self._is_wanted = is_wanted
        self._done = done
        self._unsynced: list[PartitionLog] = []

    def start(self) -> None:
        self._start(sorted(self._outcome.partitions), logging.ERROR)

    def _start(self, partitions: Iterable[TopicPartition], level: int) -> None:
        if self._is_wanted():
            self._broker.steps.start(self._write(partitions, level), self._fail)

    def _write(self, partitions: Iterable[TopicPartition], level: int) -> Stepwise[None]:
        refused: list[TopicPartition] = []
        for name, index in partitions:
            try:
                partition = self._broker.partitions.find(name, index)
                self._append(partition)
            except LogError as error:
                if error.code in NEEDLESS:
                    logger.info("%s-%d gets no marker: %s", name, index, error)
                else:
                    logger.log(level, "%s-%d gets its marker later: %s", name, index, error)
                    refused.append((name, index))
            else:
                if partition.log.config.flush_before_ack:
                    self._unsynced.append(partition.log)
            yield None
        if refused:
            # A disk has room again, or an administrator deletes what can't be opened. It is said
            # once.
            self._broker.timers.call_after(RETRY_S, partial(self._start, refused, logging.DEBUG))
        else:
            self._wait(self._unsynced)

    def _append(self, partition: Partition) -> None:
        outcome = self._outcome
        write_marker(
            self._broker,
            partition,
            outcome.producer_id,
            outcome.producer_epoch,
            commit=outcome.is_commit,
            coordinator_epoch=self._coordinator_epoch,
            transaction_version=outcome.transaction_version,
        )

    def _wait(self, unsynced: list[PartitionLog]) -> None:
        left = len(unsynced)
        if left == 0:
            self._done()
            return

        def synced() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                self._done()

        for log in unsynced:
            self._broker.flusher.call_when_synced(log, synced)

    def _fail(self, error: Exception) -> None:
        self._broker.halt(f"the markers of a transaction can't be written: {error!r}")
