"""One partition of `__consumer_offsets` with the groups in it: the world of a `GroupCoordinator`.

A reply leaves when everything that its shard has written so far is on disk (unless
`flush.before.ack` is off): so nobody is told of a state that a crash could take back, be it in the
reply to a commit or in that to a read beside it.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

import trio

from klamm.broker.dispatch import is_raised_in_the_log
from klamm.broker.groups.batches import build_records_batch, opened_batch
from klamm.broker.groups.loading import LoadError, LogReader
from klamm.broker.groups.timers import GroupTimers
from klamm.broker.partition import Partition
from klamm.broker.replies import Pending
from klamm.broker.steps import Stepwise
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.group import Shard
from klamm.coordinator.group_coordinator import GroupCoordinator
from klamm.coordinator.ports import CoordinatorRecord, Reply
from klamm.log.append_origin import AppendOrigin
from klamm.log.errors import LogError
from klamm.wire.errors import ErrorCode

if TYPE_CHECKING:
    from klamm.broker.groups.service import Groups

logger = logging.getLogger(__name__)

Response = TypeVar("Response")
Result = TypeVar("Result")

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
    # Its log can't be loaded: the groups in it are not served, all others are.
    FAILED = "failed"
    CLOSED = "closed"


class GroupShard:
    """A partition of `__consumer_offsets` that this broker leads."""

    def __init__(self, groups: Groups, partition: Partition) -> None:
        self._groups = groups
        self._broker = groups.broker
        self._partition = partition
        self._log = partition.log
        self._timers = GroupTimers(self._broker.timers, self._run_step)
        self.state = ShardState.LOADING
        self.coordinator = GroupCoordinator(
            Shard(
                groups={},
                journal=self,
                timers=self._timers,
                topics=groups.topics,
                settings=groups.settings,
                new_uuid=uuid4,
                now_ms=self._broker.clock.now_ms,
                background=self,
                group_configs=groups.group_configs,
            )
        )

    def __repr__(self) -> str:
        return f"{self._partition.topic}-{self._partition.index}"

    # --- life ---

    async def load(self) -> None:
        """Replay the log; afterwards the shard is active or failed."""
        broker = self._broker
        reader = LogReader(
            self._log,
            bytes_at_once=broker.config.offsets_load_buffer_size,
            decompressed_bytes_max=broker.config.klamm_decompressed_bytes_max,
            limiter=self._groups.loaders,
        )
        try:
            while (records := await reader.read()) is not None:
                await broker.steps.run(self._replay(records))
        except LoadError as error:
            logger.error("the groups in %s are not served: %s", self, error)
            self._fail()
            return
        except Exception:
            # Nothing is told of what is loaded so far, so no promise can be broken by it.
            logger.exception("the groups in %s are not served: they can't be replayed", self)
            self._fail()
            return
        if reader.unknown_types:
            unknown = ", ".join(map(str, sorted(reader.unknown_types)))
            logger.warning("%s has records of unknown types, left alone: %s", self, unknown)
        self.activate()

    def _replay(self, records: Sequence[CoordinatorRecord]) -> Stepwise[None]:
        for record in records:
            self.coordinator.replay(record)
            yield None

    def activate(self) -> None:
        """Everything is replayed: serve."""
        if self.state is ShardState.LOADING:
            self.state = ShardState.ACTIVE
            self._run_step(self.coordinator.on_loaded)

    def _fail(self) -> None:
        if self.state is ShardState.LOADING:
            self.state = ShardState.FAILED

    def close(self) -> None:
        """The partition is not led any more: whoever waits has to look for the group again."""
        if self.state is ShardState.ACTIVE:
            self._run_step(self.coordinator.on_unloaded)
        self.state = ShardState.CLOSED
        self._timers.cancel_all()

    @property
    def is_empty(self) -> bool:
        """Nothing has to be loaded."""
        return self._log.log_start_offset == self._log.log_end_offset

    # --- steps ---

    def call_later(
        self,
        command: Callable[[Reply[Response]], None],
        abandon: Callable[[Reply[Response]], None],
        finish: Callable[[Response], None] = lambda response: None,
    ) -> Pending[Response]:
        """Give a command whose reply may have to wait for other members.

        Args:
            abandon: what to do with the reply when nobody waits for it any more.
            finish: changes the response before it leaves.

        Raises:
            CoordinatorError: the command is refused.
        """
        pending: Pending[Response] = Pending()
        is_asking = True

        def reply(response: Response) -> None:
            pending.on_abandon = None
            finish(response)
            if is_asking or not self.is_durable:
                self.when_durable(lambda: pending.complete(response))
            else:
                # The end of a rebalance answers all members in one step.
                self._groups.outbox.put(lambda: pending.complete(response))

        pending.on_abandon = lambda: abandon(reply)
        command(reply)
        is_asking = False
        return pending

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

    def _run_step(self, step: Callable[[], None]) -> None:
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
            self._broker.halt(f"{self}: an invariant of the groups is broken")

    # --- journal (coordinator.ports.Journal) ---

    def append(self, records: Sequence[CoordinatorRecord]) -> None:
        """See there. One batch, at the end of the partition's log."""
        if self.state is not ShardState.ACTIVE or self._partition.deleted:
            raise CoordinatorError(ErrorCode.NOT_COORDINATOR)
        broker = self._broker
        now_ms = broker.clock.now_ms()
        batch = build_records_batch(records, now_ms, self._groups.codec)
        try:
            result = self._partition.append(
                memoryview(batch),
                now_ms,
                opened_batch(batch, self._log.config),
                AppendOrigin.COORDINATOR,
            )
        except LogError as error:
            logger.error("%s: %s", self, error)
            raise CoordinatorError(REFUSALS.get(error.code, error.code)) from error
        if self._log.config.flush_before_ack or result.rolled:
            # Whether somebody waits for it or not.
            broker.flusher.sync_soon(self._log)
        try:
            for record in records:
                self.coordinator.replay(record)
        except Exception:
            # The log has what the state does not: nothing that follows could be trusted.
            broker.halt(f"{self}: a record that was written can't be replayed")
            raise

    # --- background (coordinator.ports.Background) ---

    def run(self, work: Callable[[], Result], done: Callable[[Result], None]) -> None:
        """See there."""
        self._groups.start_soon(self._work, work, done)

    async def _work(self, work: Callable[[], Result], done: Callable[[Result], None]) -> None:
        try:
            result = await trio.to_thread.run_sync(work, limiter=self._groups.workers)
        except Exception as error:
            self.note_failure(error)
            return
        self._run_step(partial(done, result))
