"""The metadata port: an image that follows the `__cluster_metadata` log.

Commit = append one batch, sync it, replay it. The image never shows what is not on disk, and a
batch is all or nothing, so a topic is never half there after a crash.

The files are read before the log is opened, and so before anything in the directory is changed:
first the newest snapshot, if an Apache Kafka has left one (KIP-630), then the batches behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any
from uuid import UUID

from klamm.broker.flusher import Flusher
from klamm.broker.metadata.image import REPLAY, MetadataImage
from klamm.broker.metadata.quorum import Quorum
from klamm.broker.metadata.records import decode_metadata_record, encode_metadata_record
from klamm.broker.metadata.topics import METADATA_TOPIC
from klamm.broker.steps import StepRunner, Stepwise, collect
from klamm.log.append_origin import AppendOrigin
from klamm.log.errors import CorruptLogError, InconsistentDirectoryError
from klamm.log.fs import FileSystem
from klamm.log.layout import BOOTSTRAP_CHECKPOINT, parse_metadata_snapshot, partition_directory
from klamm.log.partition_log import PartitionLog
from klamm.log.reading import read_log, read_snapshot
from klamm.wire.errors import WireError
from klamm.wire.messages.stored.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from klamm.wire.records.record import Record, encode_record, iter_records, join_records
from klamm.wire.schema import Message

RECORD_BYTES_MAX = 64 * 1024 * 1024


class MetadataStore:
    """The metadata log of a broker that is alone in its cluster.

    Args:
        fs: where the log is.
        root: the data directory that it is in; where there is no log, there is no metadata yet.

    Attributes:
        is_formatted: whether Kafka's storage tool has made the directory.
        bootstrap: the records with which it wants a new cluster to begin.
        damage: where reading stopped before the end of the files. Recovery may find that this is
            the end of the log.
    """

    log: PartitionLog

    def __init__(self, fs: FileSystem, root: str) -> None:
        self.image = MetadataImage()
        self.quorum = Quorum()
        self.bootstrap: list[Message] = []
        self._directory = f"{root}/{partition_directory(METADATA_TOPIC, 0)}"
        self._next_offset = 0
        # Where the log could not be read any further.
        self.damage: CorruptLogError | None = None
        # The records since BeginTransactionRecord (KIP-868), which count once they have ended.
        self._transaction: list[Any] | None = None
        if fs.exists(self._directory):
            self._load(fs)
        bootstrap = f"{root}/{BOOTSTRAP_CHECKPOINT}"
        self.is_formatted = fs.exists(bootstrap)
        if self.is_new and self.is_formatted:
            self.bootstrap = self._read_bootstrap(fs, bootstrap)

    @property
    def is_new(self) -> bool:
        """Whether there is no metadata yet; there may be a quorum."""
        return self.image.version == 0

    # --- reading ---

    def _load(self, fs: FileSystem) -> None:
        directory = self._directory
        parsed = ((parse_metadata_snapshot(name), name) for name in fs.list_files(directory))
        snapshots = [(key, name) for key, name in parsed if key is not None]
        if snapshots:
            (self._next_offset, self.quorum.epoch), name = max(snapshots)
            self._replay(read_snapshot(fs, f"{directory}/{name}"))
        try:
            self._replay_log(fs)
        except CorruptLogError as damage:
            self.damage = damage
        self.quorum.read_state(fs, directory)

    def _replay_log(self, fs: FileSystem) -> None:
        directory = self._directory
        for header, batch in read_log(fs, directory, self._next_offset):
            if header.base_offset != self._next_offset:
                raise InconsistentDirectoryError(
                    f"{directory}: the metadata from {self._next_offset} to {header.base_offset}"
                    " is missing"
                )
            self._replay([(header, batch)])
            self._next_offset = header.next_offset
            self.quorum.epoch = max(self.quorum.epoch, header.partition_leader_epoch)

    def _read_bootstrap(self, fs: FileSystem, path: str) -> list[Message]:
        return [
            self._decode(record)
            for header, batch in read_snapshot(fs, path)
            if not header.is_control
            for record in _records(batch)
        ]

    def _replay(self, batches: Iterable[tuple[Any, memoryview]]) -> None:
        for header, batch in batches:
            for record in _records(batch):
                if header.is_control:
                    self._see_control(record)
                else:
                    self._replay_read(self._decode(record))

    def _see_control(self, record: Record) -> None:
        try:
            self.quorum.see(record)
        except WireError as error:
            raise self._not_understood(record.offset, str(error)) from error

    def _decode(self, record: Record) -> Any:
        try:
            decoded = decode_metadata_record(record.value or b"")
        except WireError as error:
            raise self._not_understood(record.offset, str(error)) from error
        if type(decoded) not in REPLAY and not isinstance(decoded, _TRANSACTION_RECORDS):
            raise self._not_understood(record.offset, type(decoded).__name__)
        return decoded

    def _replay_read(self, record: Any) -> None:
        if isinstance(record, BeginTransactionRecord):
            self._transaction = []
        elif isinstance(record, _TRANSACTION_RECORDS):
            ended, self._transaction = self._transaction or [], None
            if isinstance(record, EndTransactionRecord):
                for held in ended:
                    self.image.replay(held)
        elif self._transaction is not None:
            self._transaction.append(record)
        else:
            self.image.replay(record)

    def _not_understood(self, offset: int, what: str) -> InconsistentDirectoryError:
        """Going on without a record that another broker wrote could do harm."""
        return InconsistentDirectoryError(
            f"{self._directory}: klamm does not know what stands at offset {offset} ({what});"
            " was it written by a newer klamm or Apache Kafka? Choose another --data-dir"
        )

    # --- writing ---

    def check_end(self, log: PartitionLog) -> None:
        """Compare with the log, which was opened meanwhile.

        Raises:
            CorruptLogError: it does not end where it ended when it was read.
        """
        if log.log_end_offset != self._next_offset:
            raise self.damage or CorruptLogError(
                log.directory, self._next_offset, 0, f"the log ends at {log.log_end_offset}"
            )

    def lead(self, log: PartitionLog, node_id: int, directory_id: UUID, now_ms: int) -> None:
        """Go on with the log, which was opened meanwhile; the caller flushes it.

        Raises:
            CorruptLogError: as check_end.
        """
        self.check_end(log)
        self.log = log
        batch = self.quorum.election(
            node_id, directory_id, base_offset=log.log_end_offset, now_ms=now_ms
        )
        log.append(
            batch,
            leader_epoch=self.quorum.epoch,
            now_ms=now_ms,
            origin=AppendOrigin.RAFT_LEADER,
        )
        log.advance_high_watermark(log.log_end_offset)
        if self._transaction is not None:
            # Its leader has gone before the end.
            self._transaction = None
            self._append([_encode(0, AbortTransactionRecord(reason="a new leader"))], now_ms)

    def append_and_replay(self, records: Sequence[Message], now_ms: int) -> None:
        """For the time before the broker serves anybody; the caller flushes the log."""
        self._append([*map(_encode, count(), records)], now_ms)
        for record in records:
            self._replay_read(record)

    def _append(self, encoded: Sequence[bytes], now_ms: int) -> None:
        batch = join_records(encoded, base_timestamp=now_ms, max_timestamp=now_ms)
        self.log.append(
            memoryview(batch),
            leader_epoch=self.quorum.epoch,
            now_ms=now_ms,
            origin=AppendOrigin.COORDINATOR,
        )
        self.log.advance_high_watermark(self.log.log_end_offset)

    async def commit(
        self, records: Iterable[Message], flusher: Flusher, steps: StepRunner, now_ms: int
    ) -> None:
        """Make a change durable, then visible; records may be made while they are taken."""
        made = await steps.run(collect(records))
        encoded = await steps.run(collect(map(_encode, count(), made)))
        self._append(encoded, now_ms)
        await flusher.wait_synced(self.log)
        await steps.run(self._replay_made(made))

    def _replay_made(self, records: Iterable[Message]) -> Stepwise[None]:
        """Others may have their turn between two topics, and between the configs of two resources:
        nobody sees half of one."""
        before: Message | None = None
        for record in records:
            if isinstance(record, TopicRecord | RemoveTopicRecord) or (
                isinstance(record, ConfigRecord)
                and isinstance(before, ConfigRecord)
                and record.resource_name != before.resource_name
            ):
                yield None
            self.image.replay(record)
            before = record


_TRANSACTION_RECORDS = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)


def _records(batch: memoryview) -> Iterable[Record]:
    return iter_records(batch, decompressed_bytes_max=RECORD_BYTES_MAX)


def _encode(index: int, record: Message) -> bytes:
    return encode_record(index, 0, None, encode_metadata_record(record))
