"""One partition of `__consumer_offsets` with its groups: the world of a `GroupCoordinator`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

import trio

from klamm.broker.coordinator_shard import CoordinatorShard
from klamm.broker.groups.batches import GROUPS_BASE_SEQUENCE
from klamm.broker.groups.loading import LogReader
from klamm.broker.groups.timers import GroupTimers
from klamm.broker.partition import Partition
from klamm.broker.replies import Pending
from klamm.coordinator.group import Shard
from klamm.coordinator.group_coordinator import GroupCoordinator
from klamm.coordinator.ports import CoordinatorRecord, Reply
from klamm.coordinator.records import decode_coordinator_record

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

    # --- the coordinator ---

    def replay(self, record: CoordinatorRecord) -> None:
        self.coordinator.replay(record)

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
