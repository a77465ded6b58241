"""Loading a shard: its log is read and decoded in a thread, and replayed in steps."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

import trio

from klamm.broker.partition import Partition
from klamm.coordinator.ports import CoordinatorRecord, TransactionMarker
from klamm.coordinator.records import UnknownRecordTypeError
from klamm.log.errors import LogError, StorageError
from klamm.log.open_files import FileSlice
from klamm.wire.errors import WireError
from klamm.wire.records.batch import NO_PRODUCER_ID, RecordBatchHeader, read_batch_header
from klamm.wire.records.control import read_end_transaction_marker
from klamm.wire.records.record import iter_records

logger = logging.getLogger(__name__)

Entry = CoordinatorRecord | TransactionMarker


class LoadError(Exception):
    """The log of a shard can't be read, or holds what klamm does not understand."""


class LogReader:
    """Reads the records of a log piece by piece.

    Args:
        decode: makes a record of a key and a value.
        bytes_at_once: how much is read in one piece, except where one batch is larger.
        decompressed_bytes_max: how much a batch may be when it is opened.
        limiter: the threads that may be used.
    """

    def __init__(
        self,
        partition: Partition,
        decode: Callable[[bytes | None, bytes | None], CoordinatorRecord],
        *,
        bytes_at_once: int,
        decompressed_bytes_max: int,
        limiter: trio.CapacityLimiter,
    ) -> None:
        # Its log is another one after it has moved to another directory.
        self._partition = partition
        self._decode_record = decode
        self._offset = partition.log.log_start_offset
        self._bytes_at_once = bytes_at_once
        self._decompressed_bytes_max = decompressed_bytes_max
        self._limiter = limiter
        self.unknown_types: set[int] = set()

    async def read(self) -> list[Entry] | None:
        """The records and markers of the next piece; None at the end.

        Raises:
            LoadError: see there.
        """
        log = self._partition.log
        end = log.log_end_offset
        if self._offset >= end:
            return None
        try:
            found = log.read(
                self._offset, self._bytes_at_once, upper_bound_offset=end, min_one_batch=True
            )
            if not len(found):
                return None
            work = partial(self._decode, found.slice)
            return await trio.to_thread.run_sync(work, limiter=self._limiter)
        except (LogError, StorageError, OSError) as error:
            raise LoadError(f"it can't be read: {error}") from error

    def _decode(self, part: FileSlice) -> list[Entry]:
        """Runs in a thread, and touches nothing but this reader."""
        data = memoryview(part.read())
        entries: list[Entry] = []
        try:
            while len(data) > 0:
                header = read_batch_header(data)
                if header.size_in_bytes > len(data):
                    break
                batch = data[: header.size_in_bytes]
                if header.is_control:
                    self._decode_marker(header, batch, entries)
                else:
                    self._decode_batch(header, batch, entries)
                self._offset = header.next_offset
                data = data[header.size_in_bytes :]
        except WireError as error:
            raise LoadError(f"the batch at offset {self._offset} is damaged: {error}") from error
        return entries

    def _decode_marker(
        self, header: RecordBatchHeader, batch: memoryview, entries: list[Entry]
    ) -> None:
        """Compaction empties a marker when nothing of its transaction is left."""
        marker = read_end_transaction_marker(batch)
        if marker is not None:
            entries.append(TransactionMarker(header.producer_id, marker.is_commit))

    def _decode_batch(
        self, header: RecordBatchHeader, batch: memoryview, entries: list[Entry]
    ) -> None:
        producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
        for record in iter_records(batch, decompressed_bytes_max=self._decompressed_bytes_max):
            try:
                decoded = self._decode_record(record.key, record.value)
                entries.append(
                    decoded
                    if producer_id == NO_PRODUCER_ID
                    else decoded._replace(producer_id=producer_id)
                )
            except UnknownRecordTypeError as unknown:
                self.unknown_types.add(unknown.record_type)
            except WireError as error:
                raise LoadError(f"the record at offset {record.offset}: {error}") from error
