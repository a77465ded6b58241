"""What is left of one batch. Pure: bytes in, bytes out.

A record stays when it is the last of its key as far as the key map reaches, or lies behind that.
Records without a key go (they are from a time when the topic was not compacted).

Tombstones (records without a value) and markers of transactions without records stay for a while,
so that a reader who saw what they delete also sees them. When they are first met, the batch gets a
delete horizon, `delete.retention.ms` from now, in the place of its base timestamp (KIP-534); met
again after that time, they go.

An unchanged batch stays as it is, byte by byte. In a changed one offsets, sequences, the last
offset and the codec are kept. A batch without records stays as an empty header where it holds the
last sequence of a producer, or the end of its segment.
"""

from collections.abc import Mapping
from typing import NamedTuple

from klamm.log.cleaner.key_map import SUPERSEDED, TOMBSTONE, KeyMap
from klamm.log.cleaner.scan import (
    max_timestamp_delta,
    scan_keys,
    split_records,
    with_timestamp_delta,
)
from klamm.log.cleaner.transactions import CleanedTransactions
from klamm.log.config import INT64_MAX
from klamm.wire.records.batch import (
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    RecordBatchHeader,
    encode_batch_header,
)
from klamm.wire.records.codecs import Codec, compress
from klamm.wire.records.record import open_payload

_KEPT_BY_EMPTY_BATCHES = TIMESTAMP_TYPE_MASK | TRANSACTIONAL_MASK | CONTROL_MASK
# From the state of a record to whether it is kept: 1, or 0.
_KEEPS_TOMBSTONES = bytes(not state & SUPERSEDED for state in range(256))
_KEEPS_VALUES = bytes(state == 0 for state in range(256))


class LastRecord(NamedTuple):
    """What a partition remembers of a producer last.

    Attributes:
        last_data_offset: where its last batch ends; -1 when only a marker is known.
        producer_epoch: the known epoch.
    """

    last_data_offset: int
    producer_epoch: int


class Kept(NamedTuple):
    """What is written of a batch: its header (for the indexes) and its bytes."""

    header: RecordBatchHeader
    data: bytes | memoryview


class BatchFilter:
    """The rules above, with all that they depend on.

    Args:
        key_map: of the dirty part, complete.
        transactions: told of every batch, in order.
        last_records: of the producers that the partition knows.
        now_ms: the time of this compaction.
        delete_retention_ms: how long tombstones stay.

    Attributes:
        records_read: in all batches so far.
        records_kept: so many of them.
    """

    def __init__(
        self,
        key_map: KeyMap,
        transactions: CleanedTransactions,
        last_records: Mapping[int, LastRecord],
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        self._key_map = key_map
        self._transactions = transactions
        self._last_records = last_records
        self._now_ms = now_ms
        # What is to be kept for ever is: Kafka's sum overflows, and the next compaction removes it.
        self._new_horizon_ms = min(now_ms + delete_retention_ms, INT64_MAX)
        # Of the first record of the next dirty batch, in the key map.
        self._number = 0
        self.records_read = 0
        self.records_kept = 0

    def keep(self, header: RecordBatchHeader, batch: memoryview, *, is_last: bool) -> Kept | None:
        """Return what is left of a batch; None when nothing is.

        Args:
            is_last: whether it is the last one of the segment that is being written.

        Raises:
            WireError: its records are damaged.
        """
        self.records_read += header.record_count
        if header.is_control:
            kept = self._keep_control_batch(header, batch)
        else:
            is_aborted = self._transactions.on_batch(header)
            states = self._take_states(header)
            if is_aborted or header.record_count == 0:
                kept = None
            else:
                kept = self._keep_records(header, batch, states)
        if kept is None:
            if is_last or self._is_last_of_producer(header):
                return _emptied(header)
            return None
        self.records_kept += kept.header.record_count
        return kept

    def _take_states(self, header: RecordBatchHeader) -> bytearray | None:
        """Return the states of a dirty batch; None where the key map does not reach."""
        key_map = self._key_map
        if not key_map.first_offset <= header.last_offset <= key_map.last_offset:
            return None
        number = self._number
        self._number += header.record_count
        return key_map.states[number : self._number]

    def _is_last_of_producer(self, header: RecordBatchHeader) -> bool:
        last = self._last_records.get(header.producer_id)
        if last is None:
            return False
        if last.last_data_offset >= 0:
            return header.last_offset == last.last_data_offset
        return header.is_control and header.producer_epoch == last.producer_epoch

    def _keep_control_batch(self, header: RecordBatchHeader, batch: memoryview) -> Kept | None:
        is_needed = not self._transactions.on_control_batch(header, batch)
        if header.record_count == 0:
            return None
        # Unlike Kafka, which empties it: an empty marker does not tell its epoch on replay.
        if is_needed or self._is_last_of_producer(header):
            return Kept(header, batch)
        if not header.has_delete_horizon:
            return self._rewritten(header, [bytes(open_payload(batch, header))], sets_horizon=True)
        return Kept(header, batch) if self._now_ms < header.base_timestamp else None

    def _keep_records(
        self, header: RecordBatchHeader, batch: memoryview, states: bytes | bytearray | None
    ) -> Kept | None:
        if header.last_offset > self._key_map.last_offset:
            return Kept(header, batch)
        payload = None
        if states is None:
            payload = bytes(open_payload(batch, header))
            states = self._states_in_clean_part(payload, header.record_count)
        if header.has_delete_horizon and header.base_timestamp <= self._now_ms:
            keeps = states.translate(_KEEPS_VALUES)
        else:
            keeps = states.translate(_KEEPS_TOMBSTONES)
        sets_horizon = TOMBSTONE in states and not header.has_delete_horizon
        if 0 not in keeps and not sets_horizon:
            return Kept(header, batch)
        if 1 not in keeps:
            return None
        if payload is None:
            payload = bytes(open_payload(batch, header))
        records = split_records(payload, keeps)
        return self._rewritten(header, records, sets_horizon=sets_horizon)

    def _states_in_clean_part(self, payload: bytes, count: int) -> bytes | bytearray:
        keys, tombstones = scan_keys(payload, count)
        numbers = self._key_map.numbers
        if not tombstones and numbers.keys().isdisjoint(keys) and None not in keys:
            return bytes(count)
        states = bytearray(key in numbers or key is None for key in keys)
        for index in tombstones:
            states[index] |= TOMBSTONE
        return states

    def _rewritten(
        self, header: RecordBatchHeader, records: list[bytes], *, sets_horizon: bool
    ) -> Kept:
        """Build the batch of these records anew."""
        attributes, base_timestamp = header.attributes, header.base_timestamp
        max_timestamp = header.max_timestamp
        if not header.attributes & TIMESTAMP_TYPE_MASK:
            max_timestamp = base_timestamp + max_timestamp_delta(records)
        if sets_horizon:
            attributes |= DELETE_HORIZON_MASK
            change = base_timestamp - self._new_horizon_ms
            base_timestamp = self._new_horizon_ms
            records = [with_timestamp_delta(record, change) for record in records]
        payload = b"".join(records)
        codec = attributes & CODEC_MASK
        if codec != Codec.NONE:
            payload = compress(codec, payload)
        changed = header._replace(
            attributes=attributes,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp,
            record_count=len(records),
        )
        return _encoded(changed, payload)


def _emptied(header: RecordBatchHeader) -> Kept:
    """Return the batch without its records, as Kafka writes it."""
    changed = header._replace(
        attributes=header.attributes & _KEPT_BY_EMPTY_BATCHES,
        base_timestamp=NO_TIMESTAMP,
        record_count=0,
    )
    return _encoded(changed, b"")


def _encoded(header: RecordBatchHeader, payload: bytes) -> Kept:
    data = encode_batch_header(header, payload) + payload
    size = BATCH_HEADER_SIZE + len(payload)
    return Kept(header._replace(batch_length=size - LOG_OVERHEAD), data)
