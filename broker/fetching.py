"""Reading for a fetch: bytes shared by the partitions in their order, and the wait for more."""

from __future__ import annotations

import logging
from bisect import bisect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from klamm.broker.fetch_session import UNKNOWN_PARTITION, FetchScope, SessionPartition, by_rank
from klamm.broker.partition import Partition
from klamm.broker.partitions import Partitions
from klamm.broker.replies import Pending
from klamm.broker.steps import Stepwise
from klamm.log.errors import LogError, StorageError
from klamm.log.open_files import FileSlice
from klamm.log.readiness import NotReady, Preparation
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)

if TYPE_CHECKING:
    from klamm.broker.broker import Broker

logger = logging.getLogger(__name__)

NO_RECORDS = b""
# Up to this size records are copied into the reply.
COPIED_BYTES_MAX = 8192
NOT_LED_AS_ASKED = frozenset({ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER})


@dataclass(frozen=True, slots=True)
class FetchParameters:
    """The limits of one fetch."""

    max_bytes: int
    min_bytes: int
    read_committed: bool
    is_consumer: bool
    # Since version 16 a refusal says who leads (KIP-951).
    tells_leader: bool


class FetchRead:
    """The partitions of one fetch and what was read from each of them so far.

    In a session these are the partitions that are awake. Others that wake up meanwhile are read,
    too, when this fetch looks again.
    """

    def __init__(
        self,
        partitions: Partitions,
        scope: FetchScope,
        parameters: FetchParameters,
        node_id: int,
    ) -> None:
        self._node_id = node_id
        self._partitions = partitions
        self._scope = scope
        self._parameters = parameters
        self.asked: list[SessionPartition] = scope.partitions
        self.found: list[Partition | None] = [None] * len(self.asked)
        self._results: list[PartitionData | None] = [None] * len(self.asked)
        self._bytes = 0
        self._bytes_left = parameters.max_bytes
        self._must_answer = False
        # Whether any partition exists: there is nothing to wait for otherwise.
        self.knows_any = scope.has_sleepers
        self._woken: dict[SessionPartition, Partition] = {}
        self.on_woken: Callable[[Partition], None] | None = None
        if scope.session is not None:
            scope.session.reader = self

    @property
    def is_satisfied(self) -> bool:
        """There is enough to answer with, or something the consumer has to know at once."""
        return self._must_answer or not self.knows_any or self._bytes >= self._parameters.min_bytes

    def read_all(self) -> Stepwise[None]:
        for index in range(len(self.asked)):
            preparation = self._read(index)
            if preparation is not None:
                yield from self._prepare_and_read(index, preparation)
            yield None

    def changed_meanwhile(self) -> Iterator[Partition]:
        """Between two steps others may have appended to what was read before."""
        for partition, result in zip(self.found, self._results, strict=True):
            if (
                partition is not None
                and result is not None
                and result.high_watermark != partition.log.high_watermark
            ):
                yield partition
        yield from self._woken.values()

    def on_awake(self, asked: SessionPartition, partition: Partition) -> None:
        self._woken[asked] = partition
        if self.on_woken is not None:
            self.on_woken(partition)

    def _include_woken(self) -> None:
        woken, self._woken = self._woken, {}
        known = set(self.asked) if woken else ()
        for asked, partition in woken.items():
            if asked not in known:
                at = bisect(self.asked, asked.rank, key=by_rank)
                self.asked.insert(at, asked)
                self.found.insert(at, partition)
                self._results.insert(at, None)

    def read_again(self, changed: set[Partition]) -> Stepwise[None]:
        """Read what changed since; the other partitions had nothing and still have nothing."""
        self._include_woken()
        results = self._results
        self._bytes = 0
        self._bytes_left = self._parameters.max_bytes
        for index, partition in enumerate(self.found):
            result = results[index]
            if partition in changed or result is None or len(result.records or NO_RECORDS):
                preparation = self._read(index)
                if preparation is not None:
                    yield from self._prepare_and_read(index, preparation)
            yield None

    def _read(self, index: int, *, is_ready: bool = False) -> Preparation | None:
        """Read a partition, or say what has to be done before it can be read."""
        asked = self.asked[index]
        previous = self._results[index]
        if previous is not None:
            release_records(previous)
        try:
            partition = self.found[index]
            if partition is None:
                partition = self.found[index] = self._find(asked)
            self.knows_any = True
            result = self._read_partition(partition, asked, is_ready)
            session = self._scope.session
            if session is not None and asked.is_told(result):
                session.let_sleep(asked, partition)
        except NotReady as unready:
            return unready.steps
        except (LogError, StorageError, OSError) as error:
            result = self._failure(index, error)
        self._results[index] = result
        return None

    def _prepare_and_read(self, index: int, preparation: Preparation) -> Stepwise[None]:
        try:
            yield from preparation
        except (LogError, StorageError, OSError) as error:
            self._results[index] = self._failure(index, error)
        else:
            self._read(index, is_ready=True)

    def _failure(self, index: int, error: LogError | StorageError | OSError) -> PartitionData:
        asked = self.asked[index]
        if isinstance(error, LogError):
            if self.found[index] is None and error.code in UNKNOWN_PARTITION:
                return unknown_partition(asked, error.code)
            self.knows_any = self._must_answer = True
            return self._refusal(asked, error)
        partition = self.found[index]
        if partition is None:
            logger.error("fetch: %s", error)
        else:
            partition.note_fault("fetch from", error)
        self._must_answer = True
        return self._refusal(asked, LogError(ErrorCode.KAFKA_STORAGE_ERROR))

    def _find(self, asked: SessionPartition) -> Partition:
        """A session keeps the name that an id had first: when the topic is deleted and made again,
        the consumer learns that its id is no longer that of the name."""
        partitions = self._partitions
        if not self._scope.uses_topic_ids:
            return partitions.find(asked.topic, asked.index)
        if asked.resolved_topic is None:
            asked.resolved_topic = partitions.topic_of(asked.topic_id)
            if asked.resolved_topic is None:
                raise LogError(ErrorCode.UNKNOWN_TOPIC_ID)
        partition = partitions.find(asked.resolved_topic, asked.index)
        if partition.topic_id != asked.topic_id:
            raise LogError(ErrorCode.INCONSISTENT_TOPIC_ID)
        return partition

    def _read_partition(
        self, partition: Partition, asked: SessionPartition, is_ready: bool
    ) -> PartitionData:
        parameters = self._parameters
        if partition.deleted:
            raise LogError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if partition.is_offline:
            raise LogError(ErrorCode.KAFKA_STORAGE_ERROR)
        if not parameters.is_consumer:
            # There is no other replica: whoever claims to be one is not in the assignment.
            raise LogError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if asked.current_leader_epoch >= 0:
            partition.check_leader_epoch(asked.current_leader_epoch)
        log = partition.log
        diverging = self._diverging_epoch(partition, asked)
        if diverging is not None:
            self._must_answer = True
            return PartitionData(
                partition_index=asked.index,
                high_watermark=log.high_watermark,
                last_stable_offset=log.last_stable_offset,
                log_start_offset=log.log_start_offset,
                diverging_epoch=diverging,
                aborted_transactions=None,
                records=NO_RECORDS,
            )
        upper = log.last_stable_offset if parameters.read_committed else log.high_watermark
        limit = min(asked.max_bytes, self._bytes_left)
        self._bytes_left = max(0, self._bytes_left)
        read = log.read(
            asked.fetch_offset,
            max(0, limit),
            upper_bound_offset=upper,
            min_one_batch=self._bytes == 0,
            may_wait=is_ready,
        )
        records = read.slice
        if limit < 0 and len(records):
            records.release()
            raise LogError(ErrorCode.UNKNOWN_SERVER_ERROR, f"there are no {limit} bytes")
        self._bytes += len(records)
        self._bytes_left = max(0, self._bytes_left - len(records))
        fetched: FileSlice | bytes = records
        if 0 < len(records) <= COPIED_BYTES_MAX:
            fetched = copied(records)
        aborted = None
        if parameters.read_committed:
            aborted = [
                AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
                for each in log.aborted_transactions(asked.fetch_offset, read.next_offset)
            ]
        return PartitionData(
            partition_index=asked.index,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=aborted,
            records=fetched,
        )

    def _diverging_epoch(
        self, partition: Partition, asked: SessionPartition
    ) -> EpochEndOffset | None:
        """Since version 12 a reader says which epoch it read last: where the log of that epoch
        ends before the asked offset, the reader must truncate first (KIP-595)."""
        if asked.last_fetched_epoch < 0:
            return None
        epoch, end_offset = partition.epoch_end_offset(asked.last_fetched_epoch)
        if epoch == -1 or end_offset == -1:
            raise LogError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if epoch < asked.last_fetched_epoch or end_offset < asked.fetch_offset:
            return EpochEndOffset(epoch=epoch, end_offset=end_offset)
        return None

    def _refusal(self, asked: SessionPartition, error: LogError) -> PartitionData:
        data = PartitionData(
            partition_index=asked.index,
            error_code=error.code,
            high_watermark=-1,
            last_stable_offset=-1,
            log_start_offset=-1,
            aborted_transactions=None,
            records=NO_RECORDS,
        )
        if self._parameters.tells_leader and error.code in NOT_LED_AS_ASKED:
            partition = self._find(asked)
            data.current_leader = LeaderIdAndEpoch(
                leader_id=self._node_id, leader_epoch=partition.leader_epoch
            )
        return data

    def response(self) -> Stepwise[FetchResponse]:
        self._leave_session()
        return self._scope.response(self._results)

    def _leave_session(self) -> None:
        session = self._scope.session
        if session is not None and session.reader is self:
            session.reader = None

    def release(self) -> None:
        self._leave_session()
        for result in self._results:
            if result is not None:
                release_records(result)


def unknown_partition(asked: SessionPartition, code: ErrorCode) -> PartitionData:
    """The answer for what is not there. It does not hurry: the other partitions may still wait."""
    return PartitionData(
        partition_index=asked.index,
        error_code=code,
        high_watermark=-1,
        last_stable_offset=-1,
        log_start_offset=-1,
        aborted_transactions=[],
        records=NO_RECORDS,
    )


def copied(records: FileSlice) -> bytes:
    """The bytes of a small range, which is in the page cache: reading them costs less than the
    two more calls by which a range of a file is sent.

    Raises:
        OSError: the file is shorter than the log says.
    """
    data = records.read()
    if len(data) != len(records):
        raise OSError(f"{len(records) - len(data)} bytes are missing from the segment")
    records.release()
    return data


def release_records(result: PartitionData) -> None:
    """Give back the file that a result that will not be sent holds open."""
    records = result.records
    if records is not None and not isinstance(records, bytes | memoryview):
        records.release()


class ParkedFetch:
    """A fetch that waits on all its partitions at once, with one deadline."""

    __slots__ = (
        "_broker",
        "_changed",
        "_is_due",
        "_is_reading",
        "_queued",
        "_read",
        "_timer",
        "pending",
    )

    def __init__(self, read: FetchRead, broker: Broker, wait_s: float) -> None:
        self._read = read
        self._broker = broker
        self._changed: set[Partition] = set()
        self._queued = False
        self._is_due = False
        self._is_reading = False
        self.pending: Pending[FetchResponse] = Pending()
        self.pending.on_abandon = self._abandon
        self._park()
        read.on_woken = self.on_change
        self._timer = broker.timers.call_after(wait_s, self._deadline)
        for partition in read.changed_meanwhile():
            self.on_change(partition)

    def _park(self) -> None:
        """On each partition that was read and does not sleep: a sleeper wakes this fetch."""
        read = self._read
        for asked, partition in zip(read.asked, read.found, strict=True):
            if partition is not None and asked.asleep_at is None:
                partition.parked[self] = None

    def on_change(self, partition: Partition) -> None:
        """Wake after the sweep, so that one reply carries all that this sweep appended."""
        self._changed.add(partition)
        if not self._queued:
            self._queued = True
            self._broker.reactor.call_after_sweep(self._wake)

    def _wake(self) -> None:
        self._queued = False
        self._look_again()

    def _deadline(self) -> None:
        self._is_due = True
        self._look_again()

    def _look_again(self) -> None:
        # Whoever is reading already sees at the end what has changed meanwhile.
        if not self._is_reading and not self.pending.abandoned:
            self._is_reading = True
            self._broker.steps.start(self._steps(), self._fail)

    def _steps(self) -> Stepwise[None]:
        while self._changed and not self._is_done:
            changed, self._changed = self._changed, set()
            yield from self._read.read_again(changed)
            if self.pending.abandoned:
                self._read.release()
                return
        if self._is_done:
            # What is queued to wake it comes too late, and finds it still reading.
            yield from self._answer()
        else:
            self._park()
            self._is_reading = False

    @property
    def _is_done(self) -> bool:
        return self._read.is_satisfied or (self._is_due and not self._changed)

    def _answer(self) -> Stepwise[None]:
        self._leave()
        response = yield from self._read.response()
        self.pending.on_abandon = None
        self.pending.complete(response)

    def _fail(self, error: Exception) -> None:
        """Nobody else is there to answer: a fault must not leave the consumer waiting."""
        self._leave()
        self._read.release()
        self.pending.fail(error)

    def _abandon(self) -> None:
        self._leave()
        self._read.release()

    def _leave(self) -> None:
        self._timer.cancel()
        self._read.on_woken = None
        for partition in self._read.found:
            if partition is not None:
                partition.parked.pop(self, None)
