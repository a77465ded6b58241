"""Produce for a producer with a transactional id: where its transaction is not open yet, its
coordinator is asked before anything is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from klamm.broker.produce_attempts import Attempt
from klamm.broker.replies import Pending
from klamm.broker.steps import Stepwise
from klamm.broker.transactions.writes import TransactionalWrite
from klamm.coordinator.transaction.coordinator import ProducerIdentity
from klamm.log.errors import LogError
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.produce import ProduceResponse
from klamm.wire.records.batch import read_batch_header

if TYPE_CHECKING:
    from klamm.broker.handlers.produce import Production
    from klamm.broker.partition import Partition

# A request with acks=0 has no response.
Produced: TypeAlias = ProduceResponse | Pending[ProduceResponse | None] | None

# The versions of Produce that know TRANSACTION_ABORTABLE, and that add partitions by writing.
ABORTABLE_FROM = 11
ADDS_FROM = 12

# The coordinator could not say it now. Producers try again, without a look for other leaders.
UNVERIFIED = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class NotInTransactionError(LogError):
    """A batch is not part of an open transaction, so the log was not asked.

    Attributes:
        told: what the client reads.
    """

    def __init__(self, code: ErrorCode, told: str | None = None) -> None:
        super().__init__(code, told or code.name)
        self.told = told


class ProduceInTransaction:
    """The transactional part of one produce request."""

    def __init__(self, production: Production) -> None:
        self._production = production
        self._adds = production.version >= ADDS_FROM
        self._writes: list[tuple[Attempt, TransactionalWrite]] = []
        self._producers: set[ProducerIdentity] = set()
        self._is_decided = False
        self._pending: Pending[ProduceResponse | None] | None = None

    def handle(self) -> Stepwise[Produced]:
        production = self._production
        yield from self._find_writes()
        if len(self._producers) > 1:
            refusal = LogError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                "Transactional records contained more than one producer ID",
            )
            return production.refuse_all(refusal)
        verifies = production.broker.config.transaction_partition_verification_enable
        if not self._writes or not (self._adds or verifies):
            return (yield from production.append_all())
        transactional_id = production.request.transactional_id
        assert transactional_id is not None
        production.broker.transactions.start_writes(
            transactional_id,
            next(iter(self._producers)),
            [write for _, write in self._writes],
            add=self._adds,
            done=self._go_on,
        )
        if self._is_decided:
            return (yield from production.append_all())
        self._pending = Pending()
        return self._pending

    def _find_writes(self) -> Stepwise[None]:
        """Also those whose records are refused: as in Kafka, the coordinator is asked first."""
        for _, attempts in self._production.topics:
            for attempt in attempts:
                if attempt.partition is not None:
                    self._look_at(attempt, attempt.partition)
                yield None

    def _look_at(self, attempt: Attempt, partition: Partition) -> None:
        header = read_batch_header(attempt.records)
        if header.is_transactional and header.producer_id >= 0:
            self._producers.add(ProducerIdentity(header.producer_id, header.producer_epoch))
            write = TransactionalWrite(partition, header.base_sequence)
            self._writes.append((attempt, write))

    def _go_on(self) -> None:
        """The coordinator has decided, and what it decided is on disk."""
        self._is_decided = True
        for attempt, write in self._writes:
            attempt.guard = write.guard
            if write.error is not None:
                attempt.error = self._refusal(write.error.code)
        if self._pending is not None:
            self._production.broker.steps.start(self._finish(self._pending), self._pending.fail)

    def _finish(self, pending: Pending[ProduceResponse | None]) -> Stepwise[None]:
        result = yield from self._production.append_all()
        if isinstance(result, Pending):
            result.deliver_to(pending.complete, pending.fail)
        else:
            pending.complete(result)

    def _refusal(self, code: ErrorCode) -> LogError:
        """The codes that producers of this version know."""
        if code is ErrorCode.TRANSACTION_ABORTABLE and self._production.version < ABORTABLE_FROM:
            return NotInTransactionError(
                ErrorCode.INVALID_TXN_STATE, "Partition was not added to the transaction"
            )
        if code in UNVERIFIED or (code is ErrorCode.CONCURRENT_TRANSACTIONS and not self._adds):
            return NotInTransactionError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                "Unable to verify the partition has been added to the transaction."
                f" Underlying error: {code.name}",
            )
        return NotInTransactionError(code)
