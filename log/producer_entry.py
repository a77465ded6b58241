"""One producer as a partition remembers it, and the transactions and verifications around it."""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from klamm.wire.records.batch import (
    INT32_MAX,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    decrement_sequence,
)

BATCHES_TO_RETAIN = 5
NO_COORDINATOR_EPOCH = -1


class BatchMetadata(NamedTuple):
    """Where a batch went, to answer its duplicate."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return decrement_sequence(self.last_sequence, self.offset_delta)

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class CompletedTransaction(NamedTuple):
    """A transaction that a marker has ended, as the transaction index records it.

    last_stable_offset is the first offset still undecided when the marker was written.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool
    last_stable_offset: int


class VerificationGuard:
    """Proof that one verification with the transaction coordinator belongs to one append.

    Each is its own: one that was handed out before an abort marker fits no later transaction.
    """

    __slots__ = ()


class Verification:
    """A verification under way: its guard, and the lowest sequence that asked for it."""

    __slots__ = ("epoch", "guard", "lowest_sequence", "supports_epoch_bump", "timestamp")

    def __init__(self, now_ms: int, sequence: int, epoch: int, supports_epoch_bump: bool) -> None:
        self.timestamp = now_ms
        self.lowest_sequence = sequence
        self.epoch = epoch
        self.supports_epoch_bump = supports_epoch_bump
        self.guard = VerificationGuard()

    def update(self, sequence: int, epoch: int) -> None:
        if epoch == self.epoch and sequence < self.lowest_sequence:
            self.lowest_sequence = sequence
        if epoch > self.epoch:
            self.epoch = epoch
            self.lowest_sequence = sequence


_ENTRY_FIELDS = (
    "batches",
    "coordinator_epoch",
    "current_txn_first_offset",
    "last_timestamp",
    "producer_epoch",
    "producer_id",
)


class ProducerStateEntry:
    """The state of one producer id; `batches` has the newest last."""

    # A compiled class has no __slots__ to be asked for.
    __slots__ = _ENTRY_FIELDS

    def __init__(
        self,
        producer_id: int,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        coordinator_epoch: int = NO_COORDINATOR_EPOCH,
        last_timestamp: int = NO_TIMESTAMP,
        current_txn_first_offset: int | None = None,
        batches: Iterable[BatchMetadata] = (),
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        self.current_txn_first_offset = current_txn_first_offset
        self.batches = deque(batches, BATCHES_TO_RETAIN)

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_data_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1

    @property
    def last_offset_delta(self) -> int:
        return self.batches[-1].offset_delta if self.batches else 0

    def find_duplicate(self, epoch: int, first_sequence: int, count: int) -> BatchMetadata | None:
        """Return the remembered batch of exactly those sequences, if there is one."""
        if epoch != self.producer_epoch:
            return None
        last_sequence = (first_sequence + count) & INT32_MAX
        for batch in self.batches:
            if batch.last_sequence == last_sequence and batch.first_sequence == first_sequence:
                return batch
        return None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProducerStateEntry):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _ENTRY_FIELDS)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in _ENTRY_FIELDS)
        return f"ProducerStateEntry({fields})"
