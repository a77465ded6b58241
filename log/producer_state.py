"""What a partition remembers of its producers: the ground of idempotence and of transactions.

Per producer id: the epoch, the last five batches, the epoch of the coordinator that last wrote a
marker, and where the open transaction began. The rules, in the order in which they are applied
to a batch with a producer id:

1. From a client: the same (first sequence, last sequence, epoch) as one of the last five batches
   is a duplicate, which is answered with the original offset and not written again.
2. A transactional batch outside an open transaction needs a verification guard (KIP-890): without
   it INVALID_TXN_STATE, and before that INVALID_PRODUCER_EPOCH where the epoch is an old one.
3. An epoch below the known one: INVALID_PRODUCER_EPOCH. A transactions-v2 marker must be above it;
   an equal one passes as a retry where no transaction is open.
4. From a client: a producer of transactions v2 that has no batch here yet starts at sequence 0; a
   new epoch starts at 0; otherwise the sequence follows the last one, and after 2147483647 comes
   0. Else OUT_OF_ORDER_SEQUENCE_NUMBER. A producer that is not known here may start anywhere.
5. A batch outside a transaction while the producer has one open: INVALID_TXN_STATE.
6. A marker from an older coordinator epoch: TRANSACTION_COORDINATOR_FENCED.

`check` decides and changes nothing; `apply` follows once the batch is written, and never refuses,
so that replaying a log needs nothing else. Time comes in as an argument.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from klamm.log.append_origin import AppendOrigin
from klamm.log.errors import LogError
from klamm.log.producer_entry import (
    BATCHES_TO_RETAIN,
    BatchMetadata,
    CompletedTransaction,
    ProducerStateEntry,
    Verification,
    VerificationGuard,
)
from klamm.wire.errors import ErrorCode
from klamm.wire.records.batch import (
    CONTROL_MASK,
    INT32_MAX,
    NO_PRODUCER_EPOCH,
    TRANSACTIONAL_MASK,
    RecordBatchHeader,
)
from klamm.wire.records.control import ControlRecordType, EndTransactionMarker

__all__ = [
    "BATCHES_TO_RETAIN",
    "BatchMetadata",
    "CompletedTransaction",
    "ProducerState",
    "ProducerStateEntry",
    "VerificationGuard",
]

PRODUCER_ID_EXPIRATION_MS = 24 * 60 * 60 * 1000
TRANSACTIONS_V2 = 2
_PRODUCER_EPOCH_MAX = 2**15 - 1

_CLIENT = AppendOrigin.CLIENT
_COORDINATOR = AppendOrigin.COORDINATOR
_REPLICATION = AppendOrigin.REPLICATION


class ProducerState:
    """All producers of one partition, and the transactions that hold back the stable offset.

    Args:
        producer_id_expiration_ms: how long an idle producer is remembered.
        verification_required: whether a transaction must be verified before its first batch
            (transaction.partition.verification.enable).
    """

    def __init__(
        self,
        *,
        producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
        verification_required: bool = True,
    ) -> None:
        self.producer_id_expiration_ms = producer_id_expiration_ms
        self.verification_required = verification_required
        self._entries: dict[int, ProducerStateEntry] = {}
        self._verifications: dict[int, Verification] = {}
        # First offset → producer id, in the order of the offsets: transactions begin at the end
        # of the log, and a loaded snapshot is sorted.
        self._ongoing: dict[int, int] = {}
        # Ended transactions whose marker is not below the high watermark: (marker, first offset)
        # in the order of the markers, and the first offsets sorted.
        self._unreplicated: deque[tuple[int, int]] = deque()
        self._unreplicated_first_offsets: list[int] = []

    # --- what others ask ----------------------------------------------------------------------

    @property
    def entries(self) -> Mapping[int, ProducerStateEntry]:
        """The remembered producers by id; for reading only."""
        return MappingProxyType(self._entries)

    @property
    def first_undecided_offset(self) -> int | None:
        """Where the oldest transaction without a marker begins."""
        return next(iter(self._ongoing), None)

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest transaction begins that is open, or ended above the high watermark."""
        undecided = next(iter(self._ongoing), None)
        if not self._unreplicated_first_offsets:
            return undecided
        unreplicated = self._unreplicated_first_offsets[0]
        return unreplicated if undecided is None else min(undecided, unreplicated)

    def has_ongoing_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Say whether the producer has a transaction open here, in just that epoch."""
        entry = self._entries.get(producer_id)
        return (
            entry is not None
            and entry.current_txn_first_offset is not None
            and entry.producer_epoch == producer_epoch
        )

    # --- check, then apply --------------------------------------------------------------------

    def check(
        self,
        header: RecordBatchHeader,
        origin: AppendOrigin = _CLIENT,
        *,
        guard: VerificationGuard | None = None,
        marker: EndTransactionMarker | None = None,
        transaction_version: int = 0,
    ) -> BatchMetadata | None:
        """Decide whether the batch may be written; nothing is changed.

        Args:
            header: of the batch as the client or the coordinator sent it.
            origin: who sent it.
            guard: what start_verification gave, where the batch begins a transaction.
            marker: the content of a control batch; None where compaction has emptied it.
            transaction_version: of the coordinator that wrote the marker.

        Returns:
            None, or the metadata of the batch that this one repeats.

        Raises:
            LogError: the batch is refused, for a rule in this module's docstring.
        """
        producer_id = header.producer_id
        if producer_id < 0:
            return None
        entry = self._entries.get(producer_id)
        attributes = header.attributes
        epoch = header.producer_epoch
        if origin is _CLIENT and entry is not None:
            duplicate = entry.find_duplicate(epoch, header.base_sequence, header.last_offset_delta)
            if duplicate is not None:
                return duplicate
        if attributes & TRANSACTIONAL_MASK and (origin is _CLIENT or origin is _COORDINATOR):
            self._check_verified(header, entry, guard)
        if attributes & CONTROL_MASK:
            if marker is not None:
                _check_marker(header, entry, origin, marker, transaction_version)
            return None
        known_epoch = NO_PRODUCER_EPOCH if entry is None else entry.producer_epoch
        if epoch < known_epoch and origin is not _REPLICATION:
            raise _old_epoch(header, known_epoch, "<")
        if origin is _CLIENT:
            self._check_sequence(header, entry)
        if (
            entry is not None
            and entry.current_txn_first_offset is not None
            and not attributes & TRANSACTIONAL_MASK
        ):
            raise LogError(
                ErrorCode.INVALID_TXN_STATE,
                f"Expected transactional write from producer {producer_id}",
            )
        return None

    def apply(
        self,
        header: RecordBatchHeader,
        base_offset: int,
        *,
        max_timestamp: int | None = None,
        marker: EndTransactionMarker | None = None,
    ) -> CompletedTransaction | None:
        """Remember a batch that is in the log now, or is found there on replay.

        Args:
            header: of the batch; its own base offset is not used.
            base_offset: the offset that the batch got.
            max_timestamp: the batch's max timestamp where the broker has changed it.
            marker: the content of a control batch; None where compaction has emptied it.

        Returns:
            The transaction that a marker has ended, where it held any batch.
        """
        producer_id = header.producer_id
        if producer_id < 0:
            return None
        timestamp = header.max_timestamp if max_timestamp is None else max_timestamp
        attributes = header.attributes
        if attributes & TRANSACTIONAL_MASK and self._verifications:
            self._verifications.pop(producer_id, None)
        if attributes & CONTROL_MASK:
            if marker is None:
                return None
            return self._apply_marker(header, base_offset, timestamp, marker)
        entry = self._entries.get(producer_id)
        if entry is None:
            entry = self._entries[producer_id] = ProducerStateEntry(producer_id)
        if entry.producer_epoch != header.producer_epoch:
            entry.producer_epoch = header.producer_epoch
            entry.batches.clear()
        delta = header.last_offset_delta
        entry.batches.append(
            BatchMetadata(header.last_sequence, base_offset + delta, delta, timestamp)
        )
        entry.last_timestamp = timestamp
        if attributes & TRANSACTIONAL_MASK and entry.current_txn_first_offset is None:
            entry.current_txn_first_offset = base_offset
            self._ongoing[base_offset] = producer_id
        return None

    def _apply_marker(
        self,
        header: RecordBatchHeader,
        offset: int,
        timestamp: int,
        marker: EndTransactionMarker,
    ) -> CompletedTransaction | None:
        producer_id = header.producer_id
        entry = self._entries.get(producer_id)
        if entry is None:
            entry = self._entries[producer_id] = ProducerStateEntry(producer_id)
        completed = None
        first_offset = entry.current_txn_first_offset
        if first_offset is not None:
            del self._ongoing[first_offset]
            stable = next(iter(self._ongoing), offset + 1)
            aborted = marker.control_type == ControlRecordType.ABORT
            completed = CompletedTransaction(producer_id, first_offset, offset, aborted, stable)
            self._unreplicated.append((offset, first_offset))
            insort(self._unreplicated_first_offsets, first_offset)
            entry.current_txn_first_offset = None
        if entry.producer_epoch != header.producer_epoch:
            entry.producer_epoch = header.producer_epoch
            entry.batches.clear()
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp = timestamp
        return completed

    # --- the rules ----------------------------------------------------------------------------

    def _check_verified(
        self,
        header: RecordBatchHeader,
        entry: ProducerStateEntry | None,
        guard: VerificationGuard | None,
    ) -> None:
        if entry is not None:
            epoch = entry.producer_epoch
            if entry.current_txn_first_offset is not None and epoch == header.producer_epoch:
                return
            if header.producer_epoch < epoch:
                raise _old_epoch(header, epoch, "<")
        if not self.verification_required or header.is_control:
            return
        verification = self._verifications.get(header.producer_id)
        if verification is None or verification.guard is not guard:
            raise LogError(
                ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction"
            )

    def _check_sequence(self, header: RecordBatchHeader, entry: ProducerStateEntry | None) -> None:
        sequence = header.base_sequence
        if self._verifications:
            self._check_sequence_of_verification(header, entry)
        if entry is None or entry.producer_epoch == NO_PRODUCER_EPOCH:
            return
        if header.producer_epoch != entry.producer_epoch:
            if sequence != 0:
                raise LogError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"Invalid sequence number for new epoch of producer {header.producer_id}:"
                    f" {header.producer_epoch} (request epoch), {sequence} (seq. number),"
                    f" {entry.producer_epoch} (current producer epoch)",
                )
            return
        last = entry.last_sequence
        if sequence != last + 1 and not (sequence == 0 and last == INT32_MAX):
            raise _out_of_order(header, last, "current end sequence number")

    def _check_sequence_of_verification(
        self, header: RecordBatchHeader, entry: ProducerStateEntry | None
    ) -> None:
        verification = self._verifications.get(header.producer_id)
        if verification is None:
            return
        sequence = header.base_sequence
        if (
            verification.supports_epoch_bump
            and sequence != 0
            and (entry is None or not entry.batches)
        ):
            raise _out_of_order(header, 0, "expected sequence of a new transactions-v2 producer")
        if sequence > verification.lowest_sequence:
            raise _out_of_order(header, verification.lowest_sequence, "earliest seen sequence")

    # --- verification of transactions (KIP-890) -------------------------------------------------

    def start_verification(
        self,
        producer_id: int,
        sequence: int,
        producer_epoch: int,
        *,
        supports_epoch_bump: bool,
        now_ms: int,
    ) -> VerificationGuard | None:
        """Begin (or go on with) a verification; None where the transaction is open already.

        Raises:
            LogError: INVALID_PRODUCER_EPOCH, the epoch is below the known one.
        """
        if self.has_ongoing_transaction(producer_id, producer_epoch):
            return None
        entry = self._entries.get(producer_id)
        if entry is not None and producer_epoch < entry.producer_epoch:
            raise LogError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {producer_id} is {producer_epoch},"
                f" which is smaller than the last seen epoch {entry.producer_epoch}",
            )
        verification = self._verifications.get(producer_id)
        if verification is None:
            verification = Verification(now_ms, sequence, producer_epoch, supports_epoch_bump)
            self._verifications[producer_id] = verification
        verification.update(sequence, producer_epoch)
        return verification.guard

    # --- watermarks, expiry, snapshots ----------------------------------------------------------

    def on_high_watermark_updated(self, high_watermark: int) -> None:
        """Release the transactions whose markers are below the high watermark."""
        while self._unreplicated and self._unreplicated[0][0] < high_watermark:
            _, first_offset = self._unreplicated.popleft()
            index = bisect_left(self._unreplicated_first_offsets, first_offset)
            del self._unreplicated_first_offsets[index]

    def on_log_start_offset_incremented(self, log_start_offset: int) -> None:
        """Release the transactions whose markers have been deleted; producers stay known."""
        self.on_high_watermark_updated(log_start_offset)

    def remove_expired(self, now_ms: int) -> None:
        """Forget producers that have been idle too long and have no transaction open."""
        expired = [e.producer_id for e in self._entries.values() if self._is_expired(e, now_ms)]
        for producer_id in expired:
            del self._entries[producer_id]
        stale = [
            producer_id
            for producer_id, verification in self._verifications.items()
            if now_ms - verification.timestamp >= self.producer_id_expiration_ms
        ]
        for producer_id in stale:
            del self._verifications[producer_id]

    def _is_expired(self, entry: ProducerStateEntry, now_ms: int) -> bool:
        return (
            entry.current_txn_first_offset is None
            and now_ms - entry.last_timestamp >= self.producer_id_expiration_ms
        )

    def load(self, entries: Iterable[ProducerStateEntry], now_ms: int) -> None:
        """Replace everything by what a snapshot held, without what has expired since.

        Truncation goes this way too: load the newest snapshot in range, then apply the batches
        from there to the new end.
        """
        self.clear()
        for entry in sorted(entries, key=lambda entry: entry.current_txn_first_offset or 0):
            if self._is_expired(entry, now_ms):
                continue
            self._entries[entry.producer_id] = entry
            if entry.current_txn_first_offset is not None:
                self._ongoing[entry.current_txn_first_offset] = entry.producer_id

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._verifications.clear()
        self._ongoing.clear()
        self._unreplicated.clear()
        self._unreplicated_first_offsets.clear()


def _check_marker(
    header: RecordBatchHeader,
    entry: ProducerStateEntry | None,
    origin: AppendOrigin,
    marker: EndTransactionMarker,
    transaction_version: int,
) -> None:
    if origin is _REPLICATION or entry is None:
        return
    epoch = header.producer_epoch
    known = entry.producer_epoch
    if transaction_version >= TRANSACTIONS_V2:
        is_retry = epoch == known and (
            entry.current_txn_first_offset is None or epoch == _PRODUCER_EPOCH_MAX
        )
        if epoch <= known and not is_retry:
            raise _old_epoch(header, known, "<=")
    elif epoch < known:
        raise _old_epoch(header, known, "<")
    if entry.coordinator_epoch > marker.coordinator_epoch:
        raise LogError(
            ErrorCode.TRANSACTION_COORDINATOR_FENCED,
            f"Invalid coordinator epoch for producer {header.producer_id}:"
            f" {marker.coordinator_epoch} (zombie), {entry.coordinator_epoch} (current)",
        )


def _old_epoch(header: RecordBatchHeader, known_epoch: int, relation: str) -> LogError:
    return LogError(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"Epoch of producer {header.producer_id} is {header.producer_epoch},"
        f" which is {relation} the last seen epoch {known_epoch}",
    )


def _out_of_order(header: RecordBatchHeader, expected: int, meaning: str) -> LogError:
    return LogError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"Out of order sequence number for producer {header.producer_id}:"
        f" {header.base_sequence} (incoming seq. number), {expected} ({meaning})",
    )
