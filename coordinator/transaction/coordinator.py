"""The transactional ids of one partition of `__transaction_state`: who may do what, and when.

A command decides from the state, appends one record, and only then anything else happens; replay
alone changes what is stored (see `coordinator.ports`). What a reply tells is on disk before the
reply leaves, and so is the outcome of a transaction before its first marker.

The checks and their order are Kafka's. Nothing is between two states here: a record is appended and
replayed in one step. Only the markers take time, and while they do every request is told
CONCURRENT_TRANSACTIONS, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.ports import CoordinatorRecord
from klamm.coordinator.transaction.ending import is_retry
from klamm.coordinator.transaction.ports import Outcome, TransactionShard
from klamm.coordinator.transaction.state import ENDING, IDLE, TransactionState
from klamm.coordinator.transaction.transaction import (
    EPOCH_BUMP_FROM,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    TopicPartition,
    Transaction,
    from_value,
    is_exhausted,
    to_value,
)
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.stored.transaction_log import TransactionLogKey, TransactionLogValue

# Tombstones that are written as one batch, before others have their turn.
TOMBSTONES_PER_STEP = 500


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """Who a producer is from now on."""

    producer_id: int
    producer_epoch: int


class TransactionCoordinator:
    """All commands may raise CoordinatorError, and then nothing has changed."""

    def __init__(self, shard: TransactionShard) -> None:
        self._shard = shard
        self._transactions: dict[str, Transaction] = {}
        # What is being appended: replay need not make it anew, and it knows the one thing more that
        # is not in the log.
        self._appended: Transaction | None = None
        # Who wants to know when a transaction is complete.
        self._waiting: dict[str, dict[Callable[[], None], None]] = {}

    # --- life ---

    def replay(self, record: CoordinatorRecord) -> None:
        """The one way in which what is stored becomes state."""
        key, value = record.key, record.value
        assert isinstance(key, TransactionLogKey)
        if value is None:
            self._transactions.pop(key.transactional_id, None)
            return
        assert isinstance(value, TransactionLogValue)
        transaction = self._appended or from_value(key.transactional_id, value)
        self._transactions[key.transactional_id] = transaction

    def on_loaded(self) -> None:
        """The whole log was replayed: what was decided and not completed is completed now."""
        for transaction in list(self._transactions.values()):
            if transaction.state in ENDING:
                self._write_markers(transaction)

    def get(self, transactional_id: str) -> Transaction | None:
        return self._transactions.get(transactional_id)

    def all(self) -> Iterator[Transaction]:
        """Every id that is here at the begin and still when it is its turn."""
        for transactional_id in list(self._transactions):
            transaction = self._transactions.get(transactional_id)
            if transaction is not None:
                yield transaction

    # --- commands of producers ---

    def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdentity | None
    ) -> ProducerIdentity:
        """Give a producer its id and an epoch above all that were given before.

        Args:
            expected: who the producer thinks it is, if it goes on after an error (KIP-360).

        Raises:
            CoordinatorError: INVALID_TRANSACTION_TIMEOUT, PRODUCER_FENCED, or
                CONCURRENT_TRANSACTIONS while a transaction is being ended; one that was open is
                aborted then.
        """
        if not 0 < timeout_ms <= self._shard.max_timeout_ms:
            raise CoordinatorError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        transaction = self._transactions.get(transactional_id)
        if transaction is None:
            transaction = Transaction(transactional_id, self._shard.new_producer_id())
        if transaction.state in ENDING:
            raise CoordinatorError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if expected is not None and not _may_be(transaction, expected):
            raise CoordinatorError(ErrorCode.PRODUCER_FENCED)
        if transaction.state is TransactionState.ONGOING:
            self._fence(transaction)
            raise CoordinatorError(ErrorCode.CONCURRENT_TRANSACTIONS)
        given = self._next_identity(transaction, timeout_ms, expected)
        self._append(given)
        return ProducerIdentity(given.producer_id, given.producer_epoch)

    def _next_identity(
        self, transaction: Transaction, timeout_ms: int, expected: ProducerIdentity | None
    ) -> Transaction:
        epoch = transaction.producer_epoch
        is_current = expected is None or expected.producer_epoch == epoch
        producer_id, given = transaction.producer_id, epoch + 1
        # Only a producer that says who it is can be recognised when it asks again.
        last = NO_PRODUCER_EPOCH if expected is None else epoch
        if is_exhausted(epoch) and is_current:
            producer_id, given = self._shard.new_producer_id(), 0
        elif is_exhausted(epoch):
            # As in Kafka, which does not expect it.
            raise CoordinatorError(ErrorCode.UNKNOWN_SERVER_ERROR)
        elif not is_current and epoch != NO_PRODUCER_EPOCH:
            assert expected is not None
            if expected.producer_epoch != transaction.last_producer_epoch:
                raise CoordinatorError(ErrorCode.PRODUCER_FENCED)
            # It asks again, because the reply was lost.
            given, last = epoch, transaction.last_producer_epoch
        return transaction.with_epoch(
            producer_id=producer_id,
            producer_epoch=given,
            last_producer_epoch=last,
            timeout_ms=timeout_ms,
            now_ms=self._shard.now_ms(),
        )

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: Iterable[TopicPartition],
        client_version: int,
    ) -> None:
        """Make partitions part of the transaction, which begins with the first of them."""
        transaction = self._find(transactional_id)
        if transaction.state in ENDING:
            raise CoordinatorError(ErrorCode.CONCURRENT_TRANSACTIONS)
        _check_identity(transaction, producer)
        added = frozenset(partitions)
        if transaction.state is TransactionState.ONGOING and added <= transaction.partitions:
            return
        self._append(transaction.with_partitions(added, client_version, self._shard.now_ms()))

    def missing_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: Iterable[TopicPartition],
    ) -> frozenset[TopicPartition]:
        """Those of the partitions that are not part of the open transaction."""
        transaction = self._find(transactional_id)
        _check_identity(transaction, producer)
        if transaction.state in ENDING:
            raise CoordinatorError(ErrorCode.CONCURRENT_TRANSACTIONS)
        return frozenset(partitions) - transaction.partitions

    def end(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        *,
        commit: bool,
        client_version: int,
    ) -> ProducerIdentity:
        """Decide the outcome of the open transaction; its markers follow.

        Returns:
            Who the producer is from now on. Before version 2 it stays who it was.
        """
        transaction = self._find(transactional_id)
        if is_retry(
            transaction,
            producer.producer_id,
            producer.producer_epoch,
            commit=commit,
            client_version=client_version,
        ):
            return ProducerIdentity(transaction.producer_id, transaction.producer_epoch)
        prepared = self._prepare(transaction, commit=commit, client_version=client_version)
        return ProducerIdentity(*prepared.identity_after)

    # --- what time brings ---

    def abort_timed_out(self, now_ms: int) -> Iterator[None]:
        """Abort what is open for longer than its timeout; yields where others may have a turn."""
        for transaction in self.all():
            if (
                transaction.state is TransactionState.ONGOING
                and transaction.started_ms + transaction.timeout_ms < now_ms
            ):
                self._fence(transaction)
            yield

    def remove_expired(self, now_ms: int) -> Iterator[None]:
        """Forget the ids that were not used for long; yields where others may have a turn."""
        expired: list[str] = []
        for transaction in self.all():
            if (
                transaction.state in IDLE
                and transaction.updated_ms <= now_ms - self._shard.expiration_ms
            ):
                expired.append(transaction.transactional_id)
            yield
        for start in range(0, len(expired), TOMBSTONES_PER_STEP):
            self._remove(expired[start : start + TOMBSTONES_PER_STEP], now_ms)
            yield

    def _remove(self, transactional_ids: Iterable[str], now_ms: int) -> None:
        tombstones = []
        for transactional_id in transactional_ids:
            # It may have been used between two steps.
            transaction = self._transactions.get(transactional_id)
            if (
                transaction is not None
                and transaction.state in IDLE
                and transaction.updated_ms <= now_ms - self._shard.expiration_ms
            ):
                key = TransactionLogKey(transactional_id=transactional_id)
                tombstones.append(CoordinatorRecord(key, None))
        if tombstones:
            self._shard.journal.append(tombstones)

    # --- waiting ---

    def when_complete(self, transactional_id: str, call: Callable[[], None]) -> None:
        """Call once the transaction that is being ended is complete."""
        self._waiting.setdefault(transactional_id, {})[call] = None

    def stop_waiting(self, transactional_id: str, call: Callable[[], None]) -> None:
        """Whoever should be called does not wait any longer."""
        self._waiting.get(transactional_id, {}).pop(call, None)

    # --- steps ---

    def _find(self, transactional_id: str) -> Transaction:
        transaction = self._transactions.get(transactional_id)
        if transaction is None:
            raise CoordinatorError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return transaction

    def _fence(self, transaction: Transaction) -> None:
        """Abort the open transaction, so that its producer can't go on with it."""
        if self._shard.transaction_version() >= EPOCH_BUMP_FROM:
            self._prepare(transaction, commit=False, client_version=EPOCH_BUMP_FROM)
        else:
            # Its end would not bring a new epoch by itself.
            self._prepare(transaction.fenced(), commit=False, client_version=0)

    def _prepare(
        self, transaction: Transaction, *, commit: bool, client_version: int
    ) -> Transaction:
        bumps = client_version >= EPOCH_BUMP_FROM
        next_producer_id = NO_PRODUCER_ID
        if bumps and is_exhausted(transaction.producer_epoch):
            next_producer_id = self._shard.new_producer_id()
        prepared = transaction.prepared(
            commit=commit,
            client_version=client_version,
            next_producer_id=next_producer_id,
            now_ms=self._shard.now_ms(),
        )
        self._append(prepared)
        self._write_markers(prepared)
        return prepared

    def _write_markers(self, prepared: Transaction) -> None:
        transactional_id = prepared.transactional_id
        outcome = Outcome(
            prepared.producer_id,
            prepared.producer_epoch,
            prepared.is_committing,
            prepared.partitions,
            prepared.client_version,
        )
        self._shard.markers.write(outcome, lambda: self._complete(transactional_id))

    def _complete(self, transactional_id: str) -> None:
        """All markers are on disk."""
        prepared = self._transactions[transactional_id]
        assert prepared.state in ENDING, f"{transactional_id} is {prepared.state}"
        self._append(prepared.completed(self._shard.now_ms()))
        for call in self._waiting.pop(transactional_id, ()):
            call()

    def _append(self, transaction: Transaction) -> None:
        record = CoordinatorRecord(
            TransactionLogKey(transactional_id=transaction.transactional_id),
            to_value(transaction),
            # The format with room for the ids before and after came with version 1.
            min(self._shard.transaction_version(), 1),
        )
        self._appended = transaction
        try:
            self._shard.journal.append([record])
        finally:
            self._appended = None


def _check_identity(transaction: Transaction, producer: ProducerIdentity) -> None:
    if transaction.producer_id != producer.producer_id:
        raise CoordinatorError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.producer_epoch != producer.producer_epoch:
        raise CoordinatorError(ErrorCode.PRODUCER_FENCED)


def _may_be(transaction: Transaction, expected: ProducerIdentity) -> bool:
    """Whether a producer that goes on after an error can be the one that is known here; its epoch
    is looked at later. It may still have the id of before, if its last epoch was used up."""
    return (
        transaction.producer_epoch == NO_PRODUCER_EPOCH
        or expected.producer_id == transaction.producer_id
        or (
            expected.producer_id == transaction.previous_producer_id
            and is_exhausted(expected.producer_epoch)
        )
    )
