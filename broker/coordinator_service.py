"""The coordinators of one kind: an internal topic, its partitions as shards, and who finds them.

Each key (a group id, a transactional id) belongs to one partition of the topic, by its hash, and
the leader of that partition is its coordinator. There is nothing to save at a clean stop: what
matters is in the log, and a start replays it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import UUID

import trio

from klamm.broker.coordinator_shard import CoordinatorShard, ShardState
from klamm.broker.partition import Partition
from klamm.broker.steps import Stepwise
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.partitioning import partition_for
from klamm.wire.errors import ErrorCode

if TYPE_CHECKING:
    from klamm.broker.broker import Broker

ShardT = TypeVar("ShardT", bound=CoordinatorShard)

# Shards of a kind that load at the same time: what has been read and not yet replayed is in memory.
LOADS_AT_ONCE_MAX = 2


class CoordinatorService(ABC, Generic[ShardT]):
    """All shards of one internal topic.

    Args:
        topic: its name.
        partition_count: of the topic, if it has to be made.
    """

    def __init__(
        self, broker: Broker, nursery: trio.Nursery, topic: str, partition_count: int
    ) -> None:
        self.broker = broker
        self.loaders = trio.CapacityLimiter(LOADS_AT_ONCE_MAX)
        self._nursery = nursery
        self._topic = topic
        self._topic_id: UUID | None = None
        self._loading = trio.Semaphore(LOADS_AT_ONCE_MAX)
        self._shards: dict[int, ShardT] = {}
        self._configured_partition_count = partition_count
        # It decides where a key is, so it stays as it was found, whatever becomes of the topic.
        self._partition_count = partition_count

    @abstractmethod
    def new_shard(self, partition: Partition) -> ShardT:
        """A shard over a partition that this broker begins to lead."""

    async def after_load(self, shard: ShardT) -> None:
        """What has to be done once a shard is active that held something."""

    def start_soon(self, function: Callable[..., Awaitable[Any]], *args: Any) -> None:
        self._nursery.start_soon(function, *args)

    # --- partitions ---

    def lead_new_partitions(self) -> None:
        """Load what is there and not led yet."""
        topic = self.broker.metadata.image.topics.get(self._topic)
        if topic is None:
            return
        if self._topic_id is None:
            self._topic_id = topic.topic_id
            self._partition_count = len(topic.partitions)
        for state in topic.partitions:
            partition = self.broker.partitions.get(self._topic, state.index)
            if partition is not None and state.index not in self._shards:
                self._lead(partition)

    def _lead(self, partition: Partition) -> None:
        shard = self._shards[partition.index] = self.new_shard(partition)
        if shard.is_empty:
            shard.activate()
        else:
            self.start_soon(self._load, shard)

    async def _load(self, shard: ShardT) -> None:
        async with self._loading:
            await shard.load()
        if shard.state is ShardState.ACTIVE:
            await self.after_load(shard)

    def on_partition_offline(self, partition: Partition) -> None:
        """What a partition holds is not served until its log can be read again."""
        if partition.topic_id == self._topic_id:
            self._shards.pop(partition.index).close()

    def resign_if_deleted(self) -> None:
        """The topic itself may be among those that have just been deleted."""
        topic = self.broker.metadata.image.topics.get(self._topic)
        if self._topic_id is None or (topic is not None and topic.topic_id == self._topic_id):
            return
        self._topic_id = None
        self._partition_count = self._configured_partition_count
        shards, self._shards = self._shards, {}
        for shard in shards.values():
            shard.close()

    # --- what handlers ask ---

    async def create_topic(self) -> None:
        """Make the topic, or wait for somebody who is about to; then its partitions are led.

        Raises:
            LogError: the disk refuses it.
        """
        await self.broker.controller.auto_create([self._topic])

    @property
    def is_topic_ready(self) -> bool:
        return self._topic_id is not None

    def is_coordinator_of(self, key: str) -> bool:
        return self.partition_of(key) in self._shards

    def partition_of(self, key: str) -> int:
        return partition_for(key, self._partition_count)

    def shard_of(self, key: str) -> ShardT:
        """
        Raises:
            CoordinatorError: NOT_COORDINATOR, or COORDINATOR_LOAD_IN_PROGRESS.
        """
        shard = self._shards.get(self.partition_of(key))
        if shard is None:
            raise CoordinatorError(ErrorCode.NOT_COORDINATOR)
        if shard.state is ShardState.ACTIVE:
            return shard
        if shard.state is ShardState.LOADING:
            raise CoordinatorError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        raise CoordinatorError(ErrorCode.NOT_COORDINATOR)

    def shards(self) -> list[ShardT]:
        """Every shard that is served.

        Raises:
            CoordinatorError: COORDINATOR_LOAD_IN_PROGRESS, one of them is not loaded yet.
        """
        if any(shard.state is ShardState.LOADING for shard in self._shards.values()):
            raise CoordinatorError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return self.active_shards()

    def active_shards(self) -> list[ShardT]:
        return [shard for shard in self._shards.values() if shard.state is ShardState.ACTIVE]

    async def sweep(self, shard: ShardT, steps: Iterator[None]) -> None:
        """Do what no request asked for, in pieces."""
        try:
            await self.broker.steps.run(in_steps(steps))
        except Exception as error:
            # A full disk, say. The next sweep goes on.
            shard.note_failure(error)


def in_steps(steps: Iterator[None]) -> Stepwise[None]:
    """What a coordinator does in pieces, as the broker does such things."""
    yield from steps
