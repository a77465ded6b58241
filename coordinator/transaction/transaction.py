"""What is known of one transactional id, and what each step makes of it.

A `Transaction` never changes: a step returns the next one, which is stored and replayed. Only
`last_producer_epoch` is not in the log (as in Kafka): a producer that repeats InitProducerId across
a restart is fenced instead of recognised.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from klamm.coordinator.transaction.state import (
    BY_NUMBER,
    IDLE,
    PREDECESSORS,
    TransactionState,
)
from klamm.wire.errors import WireError
from klamm.wire.messages.stored.transaction_log import PartitionsSchema, TransactionLogValue

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_TIMESTAMP = -1
PRODUCER_EPOCH_MAX = 2**15 - 1
# The last epoch is kept for the coordinator, which must always be able to fence.
LAST_USABLE_EPOCH = PRODUCER_EPOCH_MAX - 1
# From this version of transactions on, every end of one brings a new epoch (KIP-890).
EPOCH_BUMP_FROM = 2

TopicPartition = tuple[str, int]


def is_exhausted(producer_epoch: int) -> bool:
    """No epoch is left that a client may use after this one."""
    return producer_epoch >= LAST_USABLE_EPOCH


@dataclass(frozen=True, slots=True)
class Transaction:
    """One transactional id. `client_version` is the version of transactions that the producer
    spoke last, and `next_producer_id` the id that takes over when the transaction is complete."""

    transactional_id: str
    producer_id: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    timeout_ms: int = 0
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    updated_ms: int = NO_TIMESTAMP
    started_ms: int = NO_TIMESTAMP
    client_version: int = 0
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    last_producer_epoch: int = field(default=NO_PRODUCER_EPOCH, compare=False)

    @property
    def partitions_by_topic(self) -> dict[str, list[int]]:
        """In order; there may be ten thousands."""
        by_topic: dict[str, list[int]] = {}
        for topic, index in self.partitions:
            by_topic.setdefault(topic, []).append(index)
        return {topic: sorted(by_topic[topic]) for topic in sorted(by_topic)}

    @property
    def is_committing(self) -> bool:
        return self.state is TransactionState.PREPARE_COMMIT

    # --- steps ---

    def with_epoch(
        self,
        *,
        producer_id: int,
        producer_epoch: int,
        last_producer_epoch: int,
        timeout_ms: int,
        now_ms: int,
    ) -> Transaction:
        """A producer has asked for an epoch of its own."""
        return self._to(
            TransactionState.EMPTY,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            last_producer_epoch=last_producer_epoch,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            started_ms=NO_TIMESTAMP,
            updated_ms=now_ms,
        )

    def with_partitions(
        self, added: frozenset[TopicPartition], client_version: int, now_ms: int
    ) -> Transaction:
        return self._to(
            TransactionState.ONGOING,
            partitions=self.partitions | added,
            started_ms=now_ms if self.state in IDLE else self.started_ms,
            updated_ms=now_ms,
            client_version=client_version,
        )

    def prepared(
        self, *, commit: bool, client_version: int, next_producer_id: int, now_ms: int
    ) -> Transaction:
        """The outcome is decided. With version 2 the epoch grows; it never leaves its range,
        because the last one is kept for this."""
        bumps = client_version >= EPOCH_BUMP_FROM
        return self._to(
            TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
            producer_epoch=self.producer_epoch + 1 if bumps else self.producer_epoch,
            last_producer_epoch=self.producer_epoch if bumps else self.last_producer_epoch,
            next_producer_id=next_producer_id,
            # An abort without a partition has no other start.
            started_ms=now_ms if self.state in IDLE else self.started_ms,
            updated_ms=now_ms,
            client_version=client_version,
        )

    def fenced(self) -> Transaction:
        """The transaction with the epoch that its abort brings, for producers of version 1."""
        assert self.state is TransactionState.ONGOING
        return replace(
            self,
            producer_epoch=min(self.producer_epoch + 1, PRODUCER_EPOCH_MAX),
            last_producer_epoch=NO_PRODUCER_EPOCH,
        )

    def completed(self, now_ms: int) -> Transaction:
        """Every partition has its marker. Where the epochs were used up, the next id takes over."""
        producer_id, producer_epoch = self.identity_after
        return self._to(
            TransactionState.COMPLETE_COMMIT
            if self.is_committing
            else TransactionState.COMPLETE_ABORT,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            next_producer_id=NO_PRODUCER_ID,
            partitions=frozenset(),
            updated_ms=now_ms,
        )

    @property
    def identity_after(self) -> tuple[int, int]:
        """Producer id and epoch once the transaction that is being ended is complete."""
        if self.client_version >= EPOCH_BUMP_FROM and self.next_producer_id != NO_PRODUCER_ID:
            return self.next_producer_id, 0
        return self.producer_id, self.producer_epoch

    def _to(self, state: TransactionState, **changes: object) -> Transaction:
        assert self.state in PREDECESSORS[state], f"{self.state} can't become {state}"
        changed: dict[str, object] = {"previous_producer_id": self.producer_id, **changes}
        return replace(self, state=state, **changed)  # type: ignore[arg-type]


# --- the log ---


def to_value(transaction: Transaction) -> TransactionLogValue:
    """The value of the record; which of its fields are written depends on its version."""
    partitions = None
    if transaction.state is not TransactionState.EMPTY:
        partitions = [
            PartitionsSchema(topic=topic, partition_ids=indexes)
            for topic, indexes in transaction.partitions_by_topic.items()
        ]
    return TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state.stored,
        transaction_partitions=partitions,
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.client_version,
    )


def from_value(transactional_id: str, value: TransactionLogValue) -> Transaction:
    """
    Raises:
        WireError: there is no such state.
    """
    state = BY_NUMBER.get(value.transaction_status)
    if state is None:
        raise WireError(f"{value.transaction_status} is no state of a transaction")
    return Transaction(
        transactional_id,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=frozenset(
            (topic.topic, index)
            for topic in value.transaction_partitions or ()
            for index in topic.partition_ids
        ),
        updated_ms=value.transaction_last_update_timestamp_ms,
        started_ms=value.transaction_start_timestamp_ms,
        client_version=value.client_transaction_version,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
    )
