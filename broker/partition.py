"""A partition as the broker serves it: its log, its leader epoch, and the fetches parked on it."""

from __future__ import annotations

import logging
from typing import Protocol
from uuid import UUID

from klamm.log.append_origin import AppendOrigin
from klamm.log.errors import CorruptLogError, LogError, StorageError
from klamm.log.partition_log import AppendResult, PartitionLog
from klamm.log.producer_state import VerificationGuard
from klamm.log.validate import OpenedRecords
from klamm.wire.errors import ErrorCode
from klamm.wire.schema import Records

logger = logging.getLogger(__name__)

NO_EPOCH = -1


class Parked(Protocol):
    """Somebody who waits for something to happen to a partition."""

    def on_change(self, partition: Partition) -> None: ...


class Partition:
    """One partition led by this broker."""

    __slots__ = (
        "deleted",
        "index",
        "is_offline",
        "leader_epoch",
        "log",
        "parked",
        "topic",
        "topic_id",
    )

    def __init__(self, log: PartitionLog, topic_id: UUID, leader_epoch: int) -> None:
        self.topic = log.topic
        self.topic_id = topic_id
        self.index = log.partition
        self.move_to(log)
        self.leader_epoch = leader_epoch
        self.deleted = False
        self.is_offline = False
        # Insertion order is kept, so that the fetch that has waited longest wakes first.
        self.parked: dict[Parked, None] = {}

    def move_to(self, log: PartitionLog) -> None:
        """Go on with this log."""
        self.log = log
        log.on_log_start_moved = self._wake

    def note_fault(self, reader: str, error: StorageError | OSError) -> None:
        """Log why a reader is refused. Clients come back to what can't be read, so damage is told
        of when it is found first."""
        if not isinstance(error, CorruptLogError) or self.log.is_news(error):
            logger.error("%s %s-%d: %s", reader, self.topic, self.index, error)

    def append(
        self,
        records: Records,
        now_ms: int,
        opened: OpenedRecords | None = None,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        *,
        guard: VerificationGuard | None = None,
        transaction_version: int = 0,
    ) -> AppendResult:
        """Append a batch; readers see it at once, because this is the only replica.

        Args:
            opened: what validate.open_records made of the records, where that was needed.
            origin: who wrote it.
            guard: of the batch that begins a transaction here, see `Transactions.start_write`.
            transaction_version: of the coordinator that wrote a marker.
        """
        log = self.log
        result = log.append(
            records,
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            opened=opened,
            origin=origin,
            guard=guard,
            transaction_version=transaction_version,
        )
        if not result.duplicate:
            log.advance_high_watermark(log.log_end_offset)
            if self.parked:
                self._wake()
        return result

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """A client that knows another epoch must refresh its metadata (KIP-320); -1 asks nothing.

        Raises:
            LogError: FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH.
        """
        if current_leader_epoch in (-1, self.leader_epoch):
            return
        if current_leader_epoch < self.leader_epoch:
            raise LogError(ErrorCode.FENCED_LEADER_EPOCH)
        raise LogError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    def epoch_end_offset(self, epoch: int) -> tuple[int, int]:
        """Where the log of an epoch ends, as `PartitionLog.epoch_end_offset` says it.

        The log knows epochs that have written something. That of this leader begins when it starts
        to lead, before its first batch, and ends the epochs before it.
        """
        log = self.log
        if epoch == self.leader_epoch:
            return epoch, log.log_end_offset
        known, end_offset = log.epoch_end_offset(epoch)
        if end_offset < 0 and epoch != NO_EPOCH and epoch < self.leader_epoch:
            return (epoch if log.latest_epoch == NO_EPOCH else log.latest_epoch), log.log_end_offset
        return known, end_offset

    def leader_epoch_of(self, offset: int) -> int:
        """The epoch that wrote an offset, or will write it."""
        if offset >= self.log.log_end_offset:
            return self.leader_epoch
        return self.log.leader_epoch_of(offset)

    def take_offline(self) -> None:
        """The disk has gone: whoever is parked here has to hear of it."""
        self.is_offline = True
        self._wake()

    def delete(self) -> None:
        """The topic has gone: whoever is parked here has to hear of it."""
        self.deleted = True
        self._wake()

    def _wake(self) -> None:
        for parked in list(self.parked):
            parked.on_change(self)
