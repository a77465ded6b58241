"""Transactions as compaction meets them, batch by batch.

Compaction stays below the last stable offset, so every transaction it meets has ended, and the
transaction indexes tell which ones were aborted. The data of those goes at once. A marker stays as
long as a batch of its transaction is met; when there is none any more, it may go, after the time
that tombstones get.
"""

from collections import deque
from collections.abc import Iterable

from klamm.log.txn_index import AbortedTransactionEntry
from klamm.wire.records.batch import RecordBatchHeader
from klamm.wire.records.control import ControlRecordType, parse_control_type
from klamm.wire.records.record import iter_records


class _Aborted:
    """An aborted transaction that has begun and not ended yet."""

    __slots__ = ("entry", "has_batches")

    def __init__(self, entry: AbortedTransactionEntry) -> None:
        self.entry = entry
        self.has_batches = False


class CleanedTransactions:
    """What is known of the transactions between the first batch and the one that was met last.

    Args:
        aborted: the aborted transactions that reach beyond the first batch.

    """

    def __init__(self, aborted: Iterable[AbortedTransactionEntry]) -> None:
        self._upcoming = deque(sorted(aborted, key=lambda entry: entry.first_offset))
        self._aborted: dict[int, _Aborted] = {}
        self._committed: set[int] = set()
        self._kept: list[AbortedTransactionEntry] = []

    def on_batch(self, header: RecordBatchHeader) -> bool:
        """Note a batch of records; say whether its transaction was aborted."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        aborted = self._aborted.get(header.producer_id)
        if aborted is None:
            self._committed.add(header.producer_id)
            return False
        aborted.has_batches = True
        return True

    def on_control_batch(self, header: RecordBatchHeader, batch: memoryview) -> bool:
        """Note a control batch; say whether nothing needs it any more.

        Raises:
            WireError: its record is damaged.
        """
        self._begin_up_to(header.last_offset)
        for record in iter_records(batch):
            control_type = parse_control_type(record.key)
            break
        else:
            # An earlier compaction has emptied it.
            return True
        if control_type == ControlRecordType.ABORT:
            aborted = self._aborted.pop(header.producer_id, None)
            if aborted is None or not aborted.has_batches:
                return True
            self._kept.append(aborted.entry)
            return False
        if control_type == ControlRecordType.COMMIT:
            if header.producer_id not in self._committed:
                return True
            self._committed.remove(header.producer_id)
        return False

    def take_kept(self) -> list[AbortedTransactionEntry]:
        """Return the aborted transactions whose markers are needed, met since the last call.

        They belong into the transaction index of the segment that their markers are in.
        """
        kept, self._kept = self._kept, []
        return kept

    def _begin_up_to(self, offset: int) -> None:
        upcoming = self._upcoming
        while upcoming and upcoming[0].first_offset <= offset:
            entry = upcoming.popleft()
            self._aborted.setdefault(entry.producer_id, _Aborted(entry))
