"""One partition of an internal topic with the coordinator whose state it holds.

The partition is replayed when this broker begins to lead it; from then on the coordinator appends
to it what it decides. A reply leaves when everything that its shard has written so far is on disk
(unless `flush.before.ack` is off): so nobody is told of a state that a crash could take back, be it
in the reply to a change or in that to a read beside it.
"""

from __future__ import annotations

import enum
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

from klamm.broker.dispatch import is_raised_in_the_log
from klamm.broker.groups.batches import build_records_batch, opened_batch
from klamm.broker.groups.loading import LoadError, LogReader
from klamm.broker.partition import Partition
from klamm.broker.replies import Pending, complete_after
from klamm.broker.steps import Stepwise, portions
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.ports import CoordinatorRecord, OpenTransaction, TransactionMarker
from klamm.log.append_origin import AppendOrigin
from klamm.log.errors import LogError
from klamm.log.producer_state import VerificationGuard
from klamm.wire.errors import ErrorCode

if TYPE_CHECKING:
    from klamm.broker.broker import Broker
    from klamm.log.partition_log import PartitionLog

logger = logging.getLogger(__name__)

Response = TypeVar("Response")

# What a client is told when the log refuses, as in Kafka: codes of a coordinator, not of a log.
REFUSALS: Mapping[ErrorCode, ErrorCode] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


class ShardState(enum.Enum):
    LOADING = "loading"
    ACTIVE = "active"
    # Its log can't be loaded: what it holds is not served, all other shards are.
    FAILED = "failed"
    CLOSED = "closed"


class CoordinatorShard(ABC):
    """A partition of an internal topic that this broker leads.

    Args:
        codec: how its batches are compressed.
    """

    # What the log speaks of.
    holds: str
    # The number of the first record of a batch, as Kafka's coordinators write it.
    base_sequence: int

    def __init__(self, broker: Broker, partition: Partition, codec: int = 0) -> None:
        self._broker = broker
        self._partition = partition
        self._codec = codec
        self.state = ShardState.LOADING

    @property
    def _log(self) -> PartitionLog:
        # Another one after the partition has moved to another directory.
        return self._partition.log

    def __repr__(self) -> str:
        return f"{self._partition.topic}-{self._partition.index}"

    # --- the coordinator ---

    @abstractmethod
    def replay(self, records: Sequence[CoordinatorRecord]) -> None:
        """Make records that were written together a part of the state, or some of them."""

    def replay_marker(self, marker: TransactionMarker) -> None:
        """Make the end of a transaction a part of the state; only groups write in transactions."""
        raise LoadError("it holds a marker, although nobody writes to it in a transaction")

    @abstractmethod
    def on_loaded(self) -> None:
        """The whole log was replayed."""

    @abstractmethod
    def on_unloaded(self) -> None:
        """This broker does not serve the partition any more."""

    @abstractmethod
    def reader(self) -> LogReader:
        """Reads the partition from its beginning."""

    # --- life ---

    async def load(self) -> None:
        """Replay the log; afterwards the shard is active or failed."""
        reader = self.reader()
        try:
            while (entries := await reader.read()) is not None:
                await self._broker.steps.run(self._replay(entries))
        except LoadError as error:
            logger.error("the %s in %s are not served: %s", self.holds, self, error)
            self._fail()
            return
        except Exception:
            # Nothing is told of what is loaded so far, so no promise can be broken by it.
            logger.exception(
                "the %s in %s are not served: they can't be replayed", self.holds, self
            )
            self._fail()
            return
        if reader.unknown_types:
            unknown = ", ".join(map(str, sorted(reader.unknown_types)))
            logger.warning("%s has records of unknown types, left alone: %s", self, unknown)
        self.activate()

    def _replay(self, entries: Sequence[CoordinatorRecord | TransactionMarker]) -> Stepwise[None]:
        for _, run in groupby(entries, key=_kind_and_producer):
            for some in portions(run):
                records = [entry for entry in some if isinstance(entry, CoordinatorRecord)]
                if records:
                    self.replay(records)
                    yield None
                    continue
                for entry in some:
                    assert isinstance(entry, TransactionMarker)
                    self.replay_marker(entry)
                    yield None

    def activate(self) -> None:
        """Everything is replayed: serve."""
        if self.state is ShardState.LOADING:
            self.state = ShardState.ACTIVE
            self.run_step(self.on_loaded)

    def _fail(self) -> None:
        if self.state is ShardState.LOADING:
            self.state = ShardState.FAILED

    def close(self) -> None:
        """The partition is not led any more: whoever waits has to look for its coordinator."""
        if self.state is ShardState.ACTIVE:
            self.run_step(self.on_unloaded)
        self.state = ShardState.CLOSED

    @property
    def is_empty(self) -> bool:
        """Nothing has to be loaded."""
        return self._log.log_start_offset == self._log.log_end_offset

    # --- durability ---

    @property
    def is_durable(self) -> bool:
        """Everything that was written is on disk, or need not be."""
        log = self._log
        return log.recovery_point >= log.log_end_offset or not log.config.flush_before_ack

    def when_durable(self, callback: Callable[[], None]) -> None:
        """Call back once everything that is written now is on disk."""
        if self.is_durable:
            callback()
        else:
            self._broker.flusher.call_when_synced(self._log, callback)

    # --- steps ---

    def run_step(self, step: Callable[[], None]) -> None:
        """Do what no request asked for: a timer, or the end of some work."""
        if self.state is not ShardState.ACTIVE:
            return
        try:
            step()
        except Exception as error:
            self.note_failure(error)

    def note_failure(self, error: Exception) -> None:
        """What no client asked for has failed: log it, and halt if a machine is broken."""
        if isinstance(error, CoordinatorError):
            logger.error("%s: %s", self, error)
            return
        logger.error("%s: a fault in the broker", self, exc_info=error)
        if isinstance(error, AssertionError) and is_raised_in_the_log(error):
            self._broker.halt(f"{self}: an invariant of its coordinator is broken")

    # --- journal (coordinator.ports.Journal) ---

    def append(
        self,
        records: Sequence[CoordinatorRecord],
        transaction: OpenTransaction | None = None,
    ) -> None:
        """See there. One batch, at the end of the partition's log."""
        if self.state is not ShardState.ACTIVE or self._partition.deleted:
            raise CoordinatorError(ErrorCode.NOT_COORDINATOR)
        broker = self._broker
        now_ms = broker.clock.now_ms()
        batch = build_records_batch(
            records, now_ms, self._codec, transaction, base_sequence=self.base_sequence
        )
        guard = None if transaction is None else transaction.guard
        assert guard is None or isinstance(guard, VerificationGuard)
        try:
            result = self._partition.append(
                memoryview(batch),
                now_ms,
                opened_batch(batch, self._log.config),
                AppendOrigin.COORDINATOR,
                guard=guard,
            )
        except LogError as error:
            logger.error("%s: %s", self, error)
            raise CoordinatorError(REFUSALS.get(error.code, error.code)) from error
        if self._log.config.flush_before_ack or result.rolled:
            # Whether somebody waits for it or not.
            broker.flusher.sync_soon(self._log)
        try:
            self.replay(records)
        except Exception:
            # The log has what the state does not: nothing that follows could be trusted.
            broker.halt(f"{self}: a record that was written can't be replayed")
            raise


def _kind_and_producer(entry: CoordinatorRecord | TransactionMarker) -> tuple[type, int]:
    return type(entry), entry.producer_id


def when_durable(
    response: Response, shards: Iterable[CoordinatorShard]
) -> Response | Pending[Response]:
    """The response, or a reply that waits until all that these shards have written is on disk."""
    unsynced = [shard for shard in dict.fromkeys(shards) if not shard.is_durable]
    if not unsynced:
        return response
    return complete_after(response, [shard.when_durable for shard in unsynced])
