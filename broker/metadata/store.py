"""The metadata port: an image that follows the `__cluster_metadata` log.

Commit = append one batch, sync it, replay it. The image never shows what is not on disk, and a
batch is all or nothing, so a topic is never half there after a crash.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count

from klamm.broker.flusher import Flusher
from klamm.broker.metadata.image import REPLAY, MetadataImage
from klamm.broker.metadata.records import decode_metadata_record, encode_metadata_record
from klamm.broker.steps import StepRunner, Stepwise, collect
from klamm.log.append_origin import AppendOrigin
from klamm.log.errors import InconsistentDirectoryError
from klamm.log.partition_log import PartitionLog
from klamm.wire.errors import WireError
from klamm.wire.messages.stored.metadata import RemoveTopicRecord, TopicRecord
from klamm.wire.records.batch import read_batch_header
from klamm.wire.records.record import encode_record, iter_records, join_records
from klamm.wire.schema import Message

REPLAY_BYTES = 1024 * 1024
RECORD_BYTES_MAX = 64 * 1024 * 1024
# There is one writer of this log and it is never replaced, so its epoch never changes.
LEADER_EPOCH = 1


class MetadataStore:
    """The metadata log of a broker that is alone in its cluster."""

    def __init__(self, log: PartitionLog) -> None:
        self.log = log
        self.image = MetadataImage()
        self._load()

    @property
    def is_new(self) -> bool:
        return self.log.log_end_offset == 0

    def _load(self) -> None:
        log = self.log
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            read = log.read(
                offset, REPLAY_BYTES, upper_bound_offset=log.log_end_offset, min_one_batch=True
            )
            data = memoryview(read.slice.read())
            while data:
                header = read_batch_header(data)
                if header.size_in_bytes > len(data):
                    break
                self._replay_batch(data[: header.size_in_bytes], header.is_control)
                offset = header.next_offset
                data = data[header.size_in_bytes :]

    def _replay_batch(self, batch: memoryview, is_control: bool) -> None:
        if is_control:
            # Kafka's own log has leader changes and voters in between; one writer needs neither.
            return
        for record in iter_records(batch, decompressed_bytes_max=RECORD_BYTES_MAX):
            try:
                decoded = decode_metadata_record(record.value or b"")
            except WireError as error:
                raise self._not_understood(record.offset, str(error)) from error
            if type(decoded) not in REPLAY:
                raise self._not_understood(record.offset, type(decoded).__name__)
            self.image.replay(decoded)

    def _not_understood(self, offset: int, what: str) -> InconsistentDirectoryError:
        """Going on without a record that another broker wrote could do harm."""
        return InconsistentDirectoryError(
            f"{self.log.directory}: klamm does not know what stands at offset {offset} ({what});"
            " was it written by Apache Kafka or a newer klamm? Choose another --data-dir"
        )

    def append_and_replay(self, records: Sequence[Message], now_ms: int) -> None:
        """For the time before the broker serves anybody; the caller flushes the log."""
        self._append([*map(_encode, count(), records)], now_ms)
        for record in records:
            self.image.replay(record)

    def _append(self, encoded: Sequence[bytes], now_ms: int) -> None:
        batch = join_records(encoded, base_timestamp=now_ms, max_timestamp=now_ms)
        self.log.append(
            memoryview(batch),
            leader_epoch=LEADER_EPOCH,
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
        await steps.run(self._replay(made))

    def _replay(self, records: Iterable[Message]) -> Stepwise[None]:
        for record in records:
            if isinstance(record, TopicRecord | RemoveTopicRecord):
                # Others may have their turn between two topics: nobody sees half of one.
                yield None
            self.image.replay(record)


def _encode(index: int, record: Message) -> bytes:
    return encode_record(index, 0, None, encode_metadata_record(record))
