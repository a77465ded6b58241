"""The transactions of a broker: commands to their coordinators, transactional writes, sweeps.

Whoever writes in a transaction asks `start_write` (one partition) or `start_writes` first. Who
writes a marker to a partition is in markers.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

import trio

from klamm.broker.coordinator_service import CoordinatorService
from klamm.broker.coordinator_shard import when_durable
from klamm.broker.features import TRANSACTION_VERSION
from klamm.broker.partition import Partition
from klamm.broker.replies import Pending
from klamm.broker.steady_clock import SteadyClock
from klamm.broker.transactions.shard import TransactionShard
from klamm.broker.transactions.state_topic import TRANSACTION_STATE_TOPIC
from klamm.broker.transactions.writes import TransactionalWrite, WriteStart
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.transaction.coordinator import ProducerIdentity, TransactionCoordinator
from klamm.coordinator.transaction.state import ENDING
from klamm.log.producer_state import VerificationGuard
from klamm.wire.errors import ErrorCode

if TYPE_CHECKING:
    from klamm.broker.broker import Broker

Response = TypeVar("Response")


class Transactions(CoordinatorService[TransactionShard]):
    """All transaction coordinators of a broker."""

    def __init__(self, broker: Broker, nursery: trio.Nursery) -> None:
        super().__init__(
            broker,
            nursery,
            TRANSACTION_STATE_TOPIC,
            broker.config.transaction_state_log_num_partitions,
        )
        self._clock = SteadyClock(broker.clock)
        # By transactional id, the writes that were announced and may not be done yet, in order.
        self.undecided: dict[str, deque[WriteStart]] = {}

    # --- life ---

    def start(self) -> None:
        """Load what is there already, and begin to sweep."""
        self.lead_new_partitions()
        config = self.broker.config
        self.start_soon(
            self._sweep_regularly,
            config.transaction_abort_timed_out_transaction_cleanup_interval_ms,
            TransactionCoordinator.abort_timed_out,
        )
        self.start_soon(
            self._sweep_regularly,
            config.transaction_remove_expired_transaction_cleanup_interval_ms,
            TransactionCoordinator.remove_expired,
        )

    def new_shard(self, partition: Partition) -> TransactionShard:
        return TransactionShard(self, partition)

    async def _sweep_regularly(
        self,
        interval_ms: int,
        steps: Callable[[TransactionCoordinator, int], Iterator[None]],
    ) -> None:
        while True:
            await trio.sleep(interval_ms / 1000)
            await self.refill_producer_ids()
            now_ms = self._clock.now_ms()
            for shard in self.active_shards():
                await self.sweep(shard, steps(shard.coordinator, now_ms))

    # --- what coordinators ask ---

    def transaction_version(self) -> int:
        """The level of `transaction.version` that the cluster has agreed on."""
        return self.broker.metadata.image.features.get(TRANSACTION_VERSION, 0)

    def new_producer_id(self) -> int:
        """
        Raises:
            CoordinatorError: the block of ids is used up; `refill_producer_ids` takes another.
        """
        producer_id = self.broker.producer_ids.next_nowait()
        if producer_id is None:
            raise CoordinatorError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return producer_id

    async def refill_producer_ids(self) -> None:
        while self.broker.producer_ids.is_empty:
            await self.broker.producer_ids.refill()

    # --- what handlers ask ---

    def with_producer_ids(self, command: Callable[[], Response]) -> Response | Awaitable[Response]:
        """Give a command that may need a new producer id, when there is one."""
        if not self.broker.producer_ids.is_empty:
            return command()
        return self._refill_first(command)

    async def _refill_first(self, command: Callable[[], Response]) -> Response:
        await self.refill_producer_ids()
        return command()

    def call(
        self,
        transactional_id: str,
        command: Callable[[TransactionCoordinator], Response],
        refuse: Callable[[ErrorCode], Response],
    ) -> Response | Pending[Response]:
        """Give a command to the coordinator of an id, once no transaction of it is being ended.

        Args:
            refuse: the response for an error.
        """
        if not self._is_ending(transactional_id):
            return self._call(transactional_id, command, refuse)
        pending: Pending[Response] = Pending()

        def call_now() -> None:
            try:
                result = self._call(transactional_id, command, refuse)
            except Exception as error:
                # Whoever else waits for the same transaction must not suffer from it.
                pending.fail(error)
                return
            if isinstance(result, Pending):
                result.deliver_to(pending.complete, pending.fail)
            else:
                pending.complete(result)

        self.when_not_ending(transactional_id, call_now)
        return pending

    def _call(
        self,
        transactional_id: str,
        command: Callable[[TransactionCoordinator], Response],
        refuse: Callable[[ErrorCode], Response],
    ) -> Response | Pending[Response]:
        try:
            shard = self.shard_of(transactional_id)
        except CoordinatorError as error:
            return refuse(error.code)
        try:
            response = command(shard.coordinator)
        except CoordinatorError as error:
            # It may tell of something that is not on disk yet, like any other reply.
            response = refuse(error.code)
        return when_durable(response, [shard])

    def _is_ending(self, transactional_id: str) -> bool:
        try:
            transaction = self.shard_of(transactional_id).coordinator.get(transactional_id)
        except CoordinatorError:
            return False
        return transaction is not None and transaction.state in ENDING

    def when_not_ending(self, transactional_id: str, call: Callable[[], None]) -> None:
        """Call at once, or when the transaction that is being ended is complete, which takes no
        longer than a sync. Those who come while the disk is slow are called after
        `add.partitions.to.txn.retry.backoff.max.ms` all the same: Kafka, too, lets a write try
        again for so long before its producer has to.
        """
        if not self._is_ending(transactional_id):
            call()
            return
        wait_s = self.broker.config.add_partitions_to_txn_retry_backoff_max_ms / 1000
        coordinator = self.shard_of(transactional_id).coordinator

        def is_complete() -> None:
            timer.cancel()
            call()

        def is_over() -> None:
            coordinator.stop_waiting(transactional_id, is_complete)
            call()

        timer = self.broker.timers.call_after(wait_s, is_over)
        coordinator.when_complete(transactional_id, is_complete)

    def start_writes(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        writes: Iterable[TransactionalWrite],
        *,
        add: bool,
        done: Callable[[], None],
    ) -> None:
        """Announce the writes of one request; see `WriteStart`."""
        WriteStart(self, transactional_id, producer, add=add, done=done).start(writes)

    async def start_write(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        topic: str,
        partition: int,
        *,
        add: bool,
    ) -> VerificationGuard | None:
        """Announce a write of a coordinator (which numbers no batches) to one partition.

        Args:
            add: the partition becomes part of the transaction (version 2); otherwise it has to be.

        Returns:
            What the append has to be given as its guard, whatever it is. The decision is on disk.

        Raises:
            LogError: the partition does not exist, or the coordinator refuses:
                INVALID_PRODUCER_ID_MAPPING, INVALID_PRODUCER_EPOCH, CONCURRENT_TRANSACTIONS,
                NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS. TRANSACTION_ABORTABLE says that the
                partition is not part of the transaction; requests that do not know the code get
                INVALID_TXN_STATE.
        """
        write = TransactionalWrite(self.broker.partitions.find(topic, partition))
        done = trio.Event()
        self.start_writes(
            transactional_id,
            ProducerIdentity(producer_id, producer_epoch),
            [write],
            add=add,
            done=done.set,
        )
        await done.wait()
        if write.error is not None:
            raise write.error
        return write.guard
