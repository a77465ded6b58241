"""Loading a shard: its log is read and decoded in a thread, and replayed in steps."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

import trio

from klamm.broker.partition import Partition
from klamm.coordinator.ports import CoordinatorRecord
from klamm.coordinator.records import UnknownRecordTypeError
from klamm.log.errors import LogError, StorageError
from klamm.log.open_files import FileSlice
from klamm.wire.errors import WireError
from klamm.wire.records.batch import read_batch_header
from klamm.wire.records.record import iter_records

logger = logging.getLogger(__name__)


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

    async def read(self) -> list[CoordinatorRecord] | None:
        """The records of the next piece; None at the end.

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

    def _decode(self, part: FileSlice) -> list[CoordinatorRecord]:
        """Runs in a thread, and touches nothing but this reader."""
        data = memoryview(part.read())
        records: list[CoordinatorRecord] = []
        try:
            while len(data) > 0:
                header = read_batch_header(data)
                if header.size_in_bytes > len(data):
                    break
                if header.is_transactional:
                    raise LoadError(
                        f"the batch at offset {header.base_offset} is part of a transaction,"
                        " which klamm does not have"
                    )
                self._decode_batch(data[: header.size_in_bytes], records)
                self._offset = header.next_offset
                data = data[header.size_in_bytes :]
        except WireError as error:
            raise LoadError(f"the batch at offset {self._offset} is damaged: {error}") from error
        return records

    def _decode_batch(self, batch: memoryview, records: list[CoordinatorRecord]) -> None:
        for record in iter_records(batch, decompressed_bytes_max=self._decompressed_bytes_max):
            try:
                records.append(self._decode_record(record.key, record.value))
            except UnknownRecordTypeError as unknown:
                self.unknown_types.add(unknown.record_type)
            except WireError as error:
                raise LoadError(f"the record at offset {record.offset}: {error}") from error
