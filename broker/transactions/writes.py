"""Before a transactional batch is written where its producer has no transaction open yet.

The coordinator must know of the partition first, or no marker would ever end what is written there
(KIP-890). So the write is announced in three steps: the log gives a guard, the coordinator confirms
that the partition is part of the open transaction or makes it so, and the batch is appended with
the guard. A transaction that ends in between takes the guard with it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from klamm.broker.partition import Partition
from klamm.broker.transactions.codes import known_code
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.transaction.coordinator import ProducerIdentity
from klamm.coordinator.transaction.transaction import EPOCH_BUMP_FROM
from klamm.log.errors import LogError
from klamm.log.producer_state import VerificationGuard
from klamm.wire.errors import ErrorCode
from klamm.wire.records.batch import NO_SEQUENCE

if TYPE_CHECKING:
    from klamm.broker.transactions.service import Transactions


class TransactionalWrite:
    """A batch that shall be appended to one partition: what came of asking.

    Attributes:
        guard: to be handed to the append; None where the transaction is open there already.
        error: why the batch must not be appended.
    """

    __slots__ = ("error", "guard", "partition", "sequence")

    def __init__(self, partition: Partition, sequence: int = NO_SEQUENCE) -> None:
        self.partition = partition
        self.sequence = sequence
        self.guard: VerificationGuard | None = None
        self.error: LogError | None = None


class WriteStart:
    """Asks for all writes of one request together: they are of one producer.

    Args:
        add: partitions that are not part of the transaction become so (transactions of version 2).
        done: called once with everything decided and on disk, perhaps before `start` returns.
    """

    def __init__(
        self,
        transactions: Transactions,
        transactional_id: str,
        producer: ProducerIdentity,
        *,
        add: bool,
        done: Callable[[], None],
    ) -> None:
        self._transactions = transactions
        self._transactional_id = transactional_id
        self._producer = producer
        self._add = add
        self._done = done
        self._guarded: list[TransactionalWrite] = []
        self._is_decided = False

    def start(self, writes: Iterable[TransactionalWrite]) -> None:
        now_ms = self._transactions.broker.clock.now_ms()
        self._transactions.undecided.setdefault(self._transactional_id, deque()).append(self)
        for write in writes:
            try:
                write.guard = write.partition.log.producers.start_verification(
                    self._producer.producer_id,
                    write.sequence,
                    self._producer.producer_epoch,
                    supports_epoch_bump=self._add,
                    now_ms=now_ms,
                )
            except LogError as error:
                write.error = error.with_traceback(None)
            if write.guard is not None:
                self._guarded.append(write)
        if not self._guarded:
            self._decide()
            return
        self._transactions.when_not_ending(self._transactional_id, self._ask)

    def _ask(self) -> None:
        try:
            shard = self._transactions.shard_of(self._transactional_id)
            if self._add:
                shard.coordinator.add_partitions(
                    self._transactional_id, self._producer, self._names(), EPOCH_BUMP_FROM
                )
            else:
                missing = shard.coordinator.missing_partitions(
                    self._transactional_id, self._producer, self._names()
                )
                self._refuse(ErrorCode.TRANSACTION_ABORTABLE, missing)
        except CoordinatorError as error:
            # Where they write, producers know the older code.
            self._refuse(known_code(error.code, knows_fenced=False), self._names())
            self._decide()
        else:
            shard.when_durable(self._decide)

    def _decide(self) -> None:
        """Go on in the order in which the requests came: a producer numbers its batches, and one
        that needs no answer must not overtake those that wait for theirs."""
        self._is_decided = True
        undecided = self._transactions.undecided
        queue = undecided[self._transactional_id]
        if queue[0] is not self:
            return
        while queue and queue[0]._is_decided:
            try:
                queue[0]._done()
            finally:
                queue.popleft()
        if not queue:
            del undecided[self._transactional_id]

    def _names(self) -> Sequence[tuple[str, int]]:
        return [(write.partition.topic, write.partition.index) for write in self._guarded]

    def _refuse(self, code: ErrorCode, partitions: Iterable[tuple[str, int]]) -> None:
        refused = set(partitions)
        for write in self._guarded:
            if (write.partition.topic, write.partition.index) in refused:
                write.error = LogError(code)
