"""What transactions need from the world, beside the journal of `coordinator.ports`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from klamm.coordinator.ports import Journal
from klamm.coordinator.transaction.transaction import TopicPartition


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a transaction ends: the same marker for each of its partitions."""

    producer_id: int
    producer_epoch: int
    is_commit: bool
    partitions: frozenset[TopicPartition]
    transaction_version: int


class Markers(Protocol):
    """Where the markers of transactions go."""

    def write(self, outcome: Outcome, done: Callable[[], None]) -> None:
        """Write a marker to every partition as soon as what the journal holds now is on disk, and
        call `done` as a step of the coordinator when all markers are. A partition that does not
        exist any more needs none. Dropped if the coordinator goes away: the next one begins anew.
        """


@dataclass(slots=True)
class TransactionShard:
    """One partition of `__transaction_state` and what its coordinator shares with the broker.

    Args:
        new_producer_id: an id that nobody else ever gets.
        now_ms: wall time, for what is stored.
        transaction_version: the level of `transaction.version` that the cluster has agreed on.
        max_timeout_ms: `transaction.max.timeout.ms`.
        expiration_ms: `transactional.id.expiration.ms`.
    """

    journal: Journal
    markers: Markers
    new_producer_id: Callable[[], int]
    now_ms: Callable[[], int]
    transaction_version: Callable[[], int]
    max_timeout_ms: int
    expiration_ms: int
