"""One partition of `__consumer_offsets` with its groups: the world of a `GroupCoordinator`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

import trio

from klamm.broker.coordinator_shard import CoordinatorShard, when_durable
from klamm.broker.groups.batches import GROUPS_BASE_SEQUENCE, BuiltRecords
from klamm.broker.groups.commits import GatheredCommits
from klamm.broker.groups.loading import LogReader
from klamm.broker.groups.timers import GroupTimers
from klamm.broker.partition import Partition
from klamm.broker.replies import Pending
from klamm.coordinator.group import Shard
from klamm.coordinator.group_coordinator import GroupCoordinator
from klamm.coordinator.offset_commits import OffsetCommit
from klamm.coordinator.ports import CoordinatorRecord, Reply, TransactionMarker
from klamm.coordinator.records import decode_coordinator_record
from klamm.wire.messages.offset_commit import OffsetCommitResponse

if TYPE_CHECKING:
    from klamm.broker.groups.service import Groups

Response = TypeVar("Response")
Result = TypeVar("Result")


class GroupShard(CoordinatorShard):
    """A partition of `__consumer_offsets` that this broker leads."""

    holds = "groups"
    base_sequence = GROUPS_BASE_SEQUENCE

    def __init__(self, groups: Groups, partition: Partition) -> None:
        super().__init__(groups.broker, partition, groups.codec)
        self._groups = groups
        self._timers = GroupTimers(self._broker.timers, self.run_step)
        self._commits = GatheredCommits(self)
        self._coordinator = GroupCoordinator(
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

    # --- the coordinator ---

    @property
    def coordinator(self) -> GroupCoordinator:
        """The groups, with everything that was accepted until now."""
        if self._commits:
            self._commits.store()
        return self._coordinator

    def replay(self, records: Sequence[CoordinatorRecord]) -> None:
        self._coordinator.replay(records)

    def replay_marker(self, marker: TransactionMarker) -> None:
        self._coordinator.replay_marker(marker)

    def on_loaded(self) -> None:
        self.coordinator.on_loaded()

    def on_unloaded(self) -> None:
        self.coordinator.on_unloaded()

    def reader(self) -> LogReader:
        config = self._broker.config
        return LogReader(
            self._partition,
            decode_coordinator_record,
            bytes_at_once=config.offsets_load_buffer_size,
            decompressed_bytes_max=config.klamm_decompressed_bytes_max,
            limiter=self._groups.loaders,
        )

    def close(self) -> None:
        super().close()
        self._timers.cancel_all()

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

    def run_step(self, step: Callable[[], None]) -> None:
        self.flush()
        super().run_step(step)

    # --- commits ---

    def commit_offsets(
        self, commit: OffsetCommit
    ) -> OffsetCommitResponse | Pending[OffsetCommitResponse]:
        """Store a commit, with others of the same sweep if there are any.

        Raises:
            CoordinatorError: the group or the log refuses it.
        """
        reactor = self._broker.reactor
        if (
            not reactor.in_turn
            or not commit.records
            or isinstance(commit.records, BuiltRecords)
            # It makes a group, and the next request must find it.
            or not self._coordinator.has_group(commit.request.group_id)
        ):
            self.coordinator.commit_offsets(commit)
            return when_durable(commit.response(), [self])
        # What is gathered already changes nothing that this depends on.
        self._coordinator.check_offset_commit(commit)
        if not self._commits:
            reactor.end_after_sweep(self)
        return self._commits.add(commit)

    def flush(self) -> None:
        """The sweep has ended (reactor.Flushable)."""
        if self._commits and not self._broker.is_halted:
            self._commits.store()

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
        self.run_step(partial(done, result))
