"""One partition of `__transaction_state`: the world of a `TransactionCoordinator`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from klamm.broker.coordinator_shard import CoordinatorShard, ShardState
from klamm.broker.groups.loading import LogReader
from klamm.broker.partition import Partition
from klamm.broker.transactions.markers import RETRY_S, MarkerWrite
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.ports import CoordinatorRecord
from klamm.coordinator.transaction.coordinator import TransactionCoordinator
from klamm.coordinator.transaction.ports import Outcome
from klamm.coordinator.transaction.ports import TransactionShard as Shard
from klamm.coordinator.transaction.records import decode_transaction_record
from klamm.wire.records.batch import NO_SEQUENCE

if TYPE_CHECKING:
    from klamm.broker.transactions.service import Transactions

logger = logging.getLogger(__name__)


class TransactionShard(CoordinatorShard):
    """A partition of `__transaction_state` that this broker leads."""

    holds = "transactions"
    base_sequence = NO_SEQUENCE

    def __init__(self, transactions: Transactions, partition: Partition) -> None:
        super().__init__(transactions.broker, partition)
        self._transactions = transactions
        config = self._broker.config
        self.coordinator = TransactionCoordinator(
            Shard(
                journal=self,
                markers=self,
                new_producer_id=transactions.new_producer_id,
                now_ms=self._broker.clock.now_ms,
                transaction_version=transactions.transaction_version,
                max_timeout_ms=config.transaction_max_timeout_ms,
                expiration_ms=config.transactional_id_expiration_ms,
            )
        )

    # --- the coordinator ---

    def replay(self, records: Sequence[CoordinatorRecord]) -> None:
        for record in records:
            self.coordinator.replay(record)

    def on_loaded(self) -> None:
        self.coordinator.on_loaded()

    def on_unloaded(self) -> None:
        """Whoever waits has a deadline of its own."""

    def reader(self) -> LogReader:
        config = self._broker.config
        return LogReader(
            self._partition,
            decode_transaction_record,
            bytes_at_once=config.transaction_state_log_load_buffer_size,
            decompressed_bytes_max=config.klamm_decompressed_bytes_max,
            limiter=self._transactions.loaders,
        )

    # --- markers (coordinator.transaction.ports.Markers) ---

    def write(self, outcome: Outcome, done: Callable[[], None]) -> None:
        """See there."""
        markers = MarkerWrite(
            self._broker,
            outcome,
            self._partition.leader_epoch,
            lambda: self.state is ShardState.ACTIVE,
            partial(self._complete, done),
        )
        self.when_durable(markers.start)

    def _complete(self, done: Callable[[], None]) -> None:
        if self.state is not ShardState.ACTIVE:
            return
        try:
            done()
        except CoordinatorError as error:
            # A full disk, say. The outcome stands, and all partitions know it.
            logger.error("%s: a transaction is completed later: %s", self, error)
            self._broker.timers.call_after(RETRY_S, partial(self._complete, done))
        except Exception as error:
            self.note_failure(error)
