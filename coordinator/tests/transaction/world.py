"""The world of a transaction coordinator in memory: a log, partitions that get markers, a clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from klamm.coordinator.ports import CoordinatorRecord
from klamm.coordinator.tests.fakes import FakeJournal
from klamm.coordinator.transaction.coordinator import TransactionCoordinator
from klamm.coordinator.transaction.ports import Outcome, TransactionShard
from klamm.coordinator.transaction.transaction import TopicPartition, Transaction

EPOCH_MS = 1_000_000


@dataclass
class MarkerTask:
    """Markers that shall be written; `needs` is how much of the log must be on disk before."""

    outcome: Outcome
    done: Callable[[], None]
    needs: int
    written: set[TopicPartition] = field(default_factory=set)

    @property
    def left(self) -> list[TopicPartition]:
        return sorted(self.outcome.partitions - self.written)


class FakeMarkers:
    """Keeps what shall be written until a test lets it happen."""

    def __init__(self, journal: FakeJournal) -> None:
        self._journal = journal
        self.tasks: list[MarkerTask] = []

    def write(self, outcome: Outcome, done: Callable[[], None]) -> None:
        self.tasks.append(MarkerTask(outcome, done, len(self._journal.batches)))


class World:
    """One shard that can be thrown away and loaded again from its log."""

    def __init__(
        self, *, version: int = 2, max_timeout_ms: int = 900_000, expiration_ms: int = 10_000_000
    ) -> None:
        self.version = version
        self.max_timeout_ms = max_timeout_ms
        self.expiration_ms = expiration_ms
        self.now_ms = 0
        self.journal = FakeJournal()
        self._producer_ids = count(100)
        self.load()

    def load(self) -> None:
        """A new coordinator that knows what the log says. What the old one waited for is lost."""
        self.markers = FakeMarkers(self.journal)
        self.coordinator = self._new_coordinator()
        self.journal.replay = self.coordinator.replay
        for record in self.journal.records:
            self.coordinator.replay(record)
        self.coordinator.on_loaded()

    def _new_coordinator(self) -> TransactionCoordinator:
        return TransactionCoordinator(
            TransactionShard(
                journal=self.journal,
                markers=self.markers,
                new_producer_id=lambda: next(self._producer_ids),
                now_ms=lambda: EPOCH_MS + self.now_ms,
                transaction_version=lambda: self.version,
                max_timeout_ms=self.max_timeout_ms,
                expiration_ms=self.expiration_ms,
            )
        )

    @property
    def transactions(self) -> dict[str, Transaction]:
        return {one.transactional_id: one for one in self.coordinator.all()}

    def replayed(self) -> dict[str, Transaction]:
        """What a coordinator would know that has just been loaded."""
        fresh = self._new_coordinator()
        for record in self.journal.records:
            fresh.replay(record)
        return {one.transactional_id: one for one in fresh.all()}

    def crash(self, batches: int) -> None:
        """Only that many batches of the log were on disk."""
        del self.journal.batches[batches:]
        self.load()

    def abort_timed_out(self) -> None:
        for _ in self.coordinator.abort_timed_out(EPOCH_MS + self.now_ms):
            pass

    def remove_expired(self) -> None:
        for _ in self.coordinator.remove_expired(EPOCH_MS + self.now_ms):
            pass

    def records_since(self, batches: int) -> list[CoordinatorRecord]:
        return [record for batch in self.journal.batches[batches:] for record in batch]
