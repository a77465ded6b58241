"""Batches of coordinator records, ready for the log."""

from __future__ import annotations

from collections.abc import Sequence

from klamm.coordinator.ports import CoordinatorRecord, OpenTransaction
from klamm.coordinator.records import encode_coordinator_record
from klamm.log.config import LogConfig
from klamm.log.opening import OpenedRecords
from klamm.wire.records.batch import (
    BATCH_HEADER_SIZE,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    read_batch_header,
)
from klamm.wire.records.record import build_batch

# Kafka's group coordinators number the records of a batch from 0, also without a producer id.
GROUPS_BASE_SEQUENCE = 0


class BuiltRecords(list[CoordinatorRecord]):
    """Records whose batch is already built: so many of them that it was done in a thread."""

    def __init__(self, records: Sequence[CoordinatorRecord], batch: bytes) -> None:
        super().__init__(records)
        self.batch = batch


def build_records_batch(
    records: Sequence[CoordinatorRecord],
    now_ms: int,
    codec: int,
    transaction: OpenTransaction | None = None,
    *,
    base_sequence: int = GROUPS_BASE_SEQUENCE,
) -> bytes:
    if isinstance(records, BuiltRecords):
        return records.batch
    return build_batch(
        [(*encode_coordinator_record(record), (), now_ms) for record in records],
        codec=codec,
        base_sequence=base_sequence,
        producer_id=NO_PRODUCER_ID if transaction is None else transaction.producer_id,
        producer_epoch=NO_PRODUCER_EPOCH if transaction is None else transaction.producer_epoch,
        transactional=transaction is not None,
    )


def opened_batch(batch: bytes, config: LogConfig) -> OpenedRecords:
    """What opening a batch of our own would find: every record has a key, and the timestamp of
    now. So it is not opened, although the topic is compacted."""
    return OpenedRecords(
        config, read_batch_header(batch), memoryview(batch)[BATCH_HEADER_SIZE:], False
    )
