"""Producers and transactions as the batches tell of them, compared with snapshots and indexes.

The state is folded anew from the log. What compaction has removed can't be folded: once a log has
shown a gap, only that is compared which must hold all the same.
"""

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from klamm.log.check.formats import SnapshotEntry
from klamm.wire.records.batch import RecordBatchHeader
from klamm.wire.records.control import EndTransactionMarker

# How many batches of a producer are remembered; Kafka's number.
_BATCHES = 5


class StoredBatch(NamedTuple):
    """What a snapshot says of a batch."""

    last_sequence: int
    last_offset: int
    offset_delta: int


class Aborted(NamedTuple):
    """A transaction that a marker has aborted.

    first_offset is that of its first batch in the log that holds records.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class _Producer:
    """One producer id."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "timestamp", "txn_first_offset",
                 "txn_first_record")  # fmt: skip

    def __init__(self) -> None:
        self.epoch = -1
        self.coordinator_epoch = -1
        self.timestamp = -1
        self.batches: deque[StoredBatch] = deque(maxlen=_BATCHES)
        # Where the open transaction begins, and its first batch with records.
        self.txn_first_offset = -1
        self.txn_first_record = -1

    def begin_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()


class Producers:
    """The fold.

    Args:
        is_complete: whether the log is there from its first batch on. Otherwise the fold begins
            with the first snapshot that is loaded.
        may_expire: whether a snapshot may have forgotten producers that were idle for long.
        has_sequences: whether the batches are numbered, so that the same numbers are a repeat.

    Attributes:
        has_gaps: whether compaction has been at work; set by the caller, never reset.
    """

    def __init__(self, *, is_complete: bool, may_expire: bool, has_sequences: bool) -> None:
        self.has_gaps = False
        self.is_complete = is_complete
        self._may_expire = may_expire
        self._has_sequences = has_sequences
        self._known: dict[int, _Producer] = {}
        # First offsets of the open transactions by producer, in the order of the offsets.
        self._open: dict[int, int] = {}

    def load(self, entries: list[SnapshotEntry]) -> None:
        """Begin with a snapshot instead of the log that lay before it."""
        self._known = {}
        for entry in entries:
            producer = self._known.setdefault(entry.producer_id, _Producer())
            producer.begin_epoch(entry.producer_epoch)
            producer.coordinator_epoch = entry.coordinator_epoch
            producer.timestamp = entry.timestamp
            producer.txn_first_offset = producer.txn_first_record = entry.txn_first_offset
            if entry.last_offset >= 0:
                producer.batches.append(_stored(entry))
        begun = sorted((p.txn_first_offset, producer_id) for producer_id, p in self._known.items())
        self._open = {producer_id: first for first, producer_id in begun if first >= 0}
        self.is_complete = True

    def add(self, header: RecordBatchHeader) -> str | None:
        """Follow a batch of a producer that is no marker; say what is wrong when it is a repeat."""
        producer = self._known.setdefault(header.producer_id, _Producer())
        producer.begin_epoch(header.producer_epoch)
        batch = StoredBatch(header.last_sequence, header.last_offset, header.last_offset_delta)
        twin = next((b for b in producer.batches if _is_twin(b, batch)), None)
        producer.batches.append(batch)
        producer.timestamp = header.max_timestamp
        if header.is_transactional:
            if producer.txn_first_offset < 0:
                producer.txn_first_offset = header.base_offset
                self._open[header.producer_id] = header.base_offset
            if producer.txn_first_record < 0 < header.record_count:
                producer.txn_first_record = header.base_offset
        if twin is None or header.base_sequence < 0 or not self._has_sequences:
            return None
        return (
            f"producer {header.producer_id} sent sequences up to {batch.last_sequence} once, they"
            f" are stored twice: also at offset {twin.last_offset - twin.offset_delta}"
        )

    def end_transaction(
        self, header: RecordBatchHeader, marker: EndTransactionMarker
    ) -> Aborted | None:
        """Follow a marker; return what it has aborted."""
        producer = self._known.setdefault(header.producer_id, _Producer())
        first_offset, first_record = producer.txn_first_offset, producer.txn_first_record
        producer.txn_first_offset = producer.txn_first_record = -1
        self._open.pop(header.producer_id, None)
        producer.begin_epoch(header.producer_epoch)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.timestamp = header.max_timestamp
        begins_at = first_record if self.has_gaps else first_offset
        if marker.is_commit or begins_at < 0:
            return None
        stable = next(iter(self._open.values()), header.last_offset + 1)
        return Aborted(header.producer_id, begins_at, header.last_offset, stable)

    # --- snapshots ---

    def problems(self, entries: list[SnapshotEntry]) -> Iterator[tuple[SnapshotEntry | None, str]]:
        """Compare the state with a snapshot of this offset; yield where they differ.

        Each comes with the entry of the snapshot, or None where one is missing.
        """
        if not self.is_complete:
            return
        newest = {entry.producer_id: entry for entry in entries}
        for entry in entries:
            what = self._problem(entry, is_newest=newest[entry.producer_id] is entry)
            if what is not None:
                yield entry, f"producer {entry.producer_id}: {what}"
        for producer_id, producer in self._known.items():
            if producer_id not in newest and not self.has_gaps:
                is_open = producer.txn_first_offset >= 0
                if is_open or not self._may_expire:
                    yield None, f"producer {producer_id} is missing"

    def _problem(self, entry: SnapshotEntry, *, is_newest: bool) -> str | None:
        producer = self._known.get(entry.producer_id)
        if producer is None:
            return None if self.has_gaps else "the log does not have it"
        if self.has_gaps:
            return _certain_problem(producer, entry) if is_newest else None
        if entry.producer_epoch != producer.epoch:
            return f"epoch {entry.producer_epoch}, the log has {producer.epoch}"
        if entry.last_offset >= 0 and _stored(entry) not in producer.batches:
            return f"the log has no such batch up to offset {entry.last_offset}"
        if not is_newest:
            return None
        last = producer.batches[-1].last_offset if producer.batches else -1
        for name, stored, folded in (
            ("last offset", entry.last_offset, last),
            ("timestamp", entry.timestamp, producer.timestamp),
            ("coordinator epoch", entry.coordinator_epoch, producer.coordinator_epoch),
            ("open transaction from", entry.txn_first_offset, producer.txn_first_offset),
        ):
            if stored != folded:
                return f"{name} {stored}, the log has {folded}"
        return None


def _certain_problem(producer: _Producer, entry: SnapshotEntry) -> str | None:
    """What must hold after compaction, too: the log has nothing newer than the snapshot."""
    if not producer.batches or entry.last_offset < 0 or producer.epoch != entry.producer_epoch:
        return None
    last = producer.batches[-1]
    if last.last_offset > entry.last_offset:
        return f"last offset {entry.last_offset}, the log has {last.last_offset}"
    if last.last_offset == entry.last_offset and last != _stored(entry):
        return f"the log has another batch up to offset {entry.last_offset}"
    return None


def _stored(entry: SnapshotEntry) -> StoredBatch:
    return StoredBatch(entry.last_sequence, entry.last_offset, entry.offset_delta)


def _is_twin(one: StoredBatch, other: StoredBatch) -> bool:
    return one.last_sequence == other.last_sequence and one.offset_delta == other.offset_delta
