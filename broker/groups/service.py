"""The groups of a broker: finds the shard of a group, makes the topic behind them, sweeps.

Each group belongs to one partition of `__consumer_offsets`, by the hash of its id, and the leader
of that partition is its coordinator. There is nothing to save at a clean stop: what matters of a
group is in the log, and a start replays it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import trio

from klamm.broker.features import GROUP_VERSION, GROUP_VERSION_LEVEL
from klamm.broker.groups.offsets_topic import OFFSETS_TOPIC
from klamm.broker.groups.outbox import Outbox
from klamm.broker.groups.settings import group_configs, group_settings
from klamm.broker.groups.shard import GroupShard, ShardState
from klamm.broker.groups.steady_clock import SteadyClock
from klamm.broker.groups.topics import MetadataTopics
from klamm.broker.partition import Partition
from klamm.broker.replies import Pending, complete_after
from klamm.broker.steps import Stepwise
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.group_coordinator import GroupCoordinator
from klamm.coordinator.partitioning import partition_for
from klamm.wire.errors import ErrorCode

if TYPE_CHECKING:
    from klamm.broker.broker import Broker

logger = logging.getLogger(__name__)

Response = TypeVar("Response")

# Shards that load at the same time: what has been read and not yet replayed is in memory.
LOADS_AT_ONCE_MAX = 2
WORKER_THREADS_MAX = 1


class Groups:
    """All group coordinators of a broker."""

    def __init__(self, broker: Broker, nursery: trio.Nursery) -> None:
        self.broker = broker
        self.topics = MetadataTopics(broker.metadata.image, broker.config.broker_rack)
        self.settings = group_settings(broker.config)
        self.codec = broker.config.offsets_topic_compression_codec
        self.loaders = trio.CapacityLimiter(LOADS_AT_ONCE_MAX)
        self.workers = trio.CapacityLimiter(WORKER_THREADS_MAX)
        self.outbox = Outbox(nursery, broker.steps)
        self._nursery = nursery
        self._loading = trio.Semaphore(LOADS_AT_ONCE_MAX)
        self._shards: dict[int, GroupShard] = {}
        self._topic_id: UUID | None = None
        # It decides where a group is, so it stays as it was found, whatever becomes of the topic.
        self._partition_count = broker.config.offsets_topic_num_partitions
        self._clock = SteadyClock(broker.clock)
        self._orphans_wanted = trio.Event()
        # How often all groups were looked through for what is expired.
        self.sweeps = 0

    # --- life ---

    def start(self) -> None:
        """Load what is there already, and begin to sweep."""
        self._lead_new_partitions()
        self.start_soon(self._expire_regularly)
        self.start_soon(self._remove_orphans)

    def start_soon(self, function: Callable[..., Awaitable[Any]], *args: Any) -> None:
        self._nursery.start_soon(function, *args)

    def on_topics_changed(self, names: Iterable[str]) -> Stepwise[None]:
        """Topics were made, have more partitions, or have been deleted."""
        self._lead_new_partitions()
        for shard in self._active():
            for name in names:
                shard.coordinator.on_topics_changed([name])
                yield None

    def on_topics_deleted(self, names: Iterable[str]) -> Stepwise[None]:
        topic = self.broker.metadata.image.topics.get(OFFSETS_TOPIC)
        if self._topic_id is not None and (topic is None or topic.topic_id != self._topic_id):
            self._resign()
        self._orphans_wanted.set()
        yield from self.on_topics_changed(names)

    def _lead_new_partitions(self) -> None:
        topic = self.broker.metadata.image.topics.get(OFFSETS_TOPIC)
        if topic is None:
            return
        if self._topic_id is None:
            self._topic_id = topic.topic_id
            self._partition_count = len(topic.partitions)
        for state in topic.partitions:
            partition = self.broker.partitions.get(OFFSETS_TOPIC, state.index)
            if partition is not None and state.index not in self._shards:
                self._lead(partition)

    def _lead(self, partition: Partition) -> None:
        shard = self._shards[partition.index] = GroupShard(self, partition)
        if shard.is_empty:
            shard.activate()
        else:
            self.start_soon(self._load, shard)

    async def _load(self, shard: GroupShard) -> None:
        async with self._loading:
            await shard.load()
        if shard.state is ShardState.ACTIVE:
            # Topics may have been deleted while nobody looked.
            await self._sweep(shard, shard.coordinator.remove_orphans())

    def _resign(self) -> None:
        """`__consumer_offsets` itself has been deleted."""
        self._topic_id = None
        self._partition_count = self.broker.config.offsets_topic_num_partitions
        shards, self._shards = self._shards, {}
        for shard in shards.values():
            shard.close()

    # --- what handlers ask ---

    async def create_topic(self) -> None:
        """Make the topic, or wait for somebody who is about to; then its partitions are led.

        Raises:
            LogError: the disk refuses it.
        """
        await self.broker.controller.auto_create([OFFSETS_TOPIC])

    @property
    def is_topic_ready(self) -> bool:
        return self._topic_id is not None

    def is_coordinator_of(self, group_id: str) -> bool:
        return self._partition_of(group_id) in self._shards

    def _partition_of(self, group_id: str) -> int:
        return partition_for(group_id, self._partition_count)

    def shard_of(self, group_id: str) -> GroupShard:
        """
        Raises:
            CoordinatorError: NOT_COORDINATOR, or COORDINATOR_LOAD_IN_PROGRESS.
        """
        shard = self._shards.get(self._partition_of(group_id))
        if shard is None:
            raise CoordinatorError(ErrorCode.NOT_COORDINATOR)
        if shard.state is ShardState.ACTIVE:
            return shard
        if shard.state is ShardState.LOADING:
            raise CoordinatorError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        raise CoordinatorError(ErrorCode.NOT_COORDINATOR)

    def shards(self) -> list[GroupShard]:
        """Every shard that is served.

        Raises:
            CoordinatorError: COORDINATOR_LOAD_IN_PROGRESS, one of them is not loaded yet.
        """
        if any(shard.state is ShardState.LOADING for shard in self._shards.values()):
            raise CoordinatorError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return self._active()

    def _active(self) -> list[GroupShard]:
        return [shard for shard in self._shards.values() if shard.state is ShardState.ACTIVE]

    def call(
        self, group_id: str, command: Callable[[GroupCoordinator], Response]
    ) -> Response | Pending[Response]:
        """Give a command to the coordinator of a group.

        Raises:
            CoordinatorError: there is none here, or it refuses.
        """
        shard = self.shard_of(group_id)
        return when_durable(command(shard.coordinator), [shard])

    @property
    def serves_consumer_protocol(self) -> bool:
        """Whether the protocol of KIP-848 is on: the configuration and the cluster agree on it."""
        protocols = self.broker.config.group_coordinator_rebalance_protocols
        level = self.broker.metadata.image.features.get(GROUP_VERSION, 0)
        return "consumer" in protocols and level >= GROUP_VERSION_LEVEL

    def group_configs(self, group_id: str) -> Mapping[str, int]:
        """The configs that are set for a group, within the limits of the broker's."""
        return group_configs(self.broker.metadata.image, self.broker.config, group_id)

    # --- sweeps ---

    async def _expire_regularly(self) -> None:
        interval_s = self.broker.config.offsets_retention_check_interval_ms / 1000
        while True:
            await trio.sleep(interval_s)
            now_ms = self._clock.now_ms()
            for shard in self._active():
                await self._sweep(shard, shard.coordinator.remove_expired(now_ms))
            self.sweeps += 1

    async def _remove_orphans(self) -> None:
        while True:
            await self._orphans_wanted.wait()
            self._orphans_wanted = trio.Event()
            for shard in self._active():
                await self._sweep(shard, shard.coordinator.remove_orphans())

    async def _sweep(self, shard: GroupShard, steps: Iterator[None]) -> None:
        try:
            await self.broker.steps.run(in_steps(steps))
        except Exception as error:
            # A full disk, say. The next sweep goes on.
            shard.note_failure(error)


def in_steps(steps: Iterator[None]) -> Stepwise[None]:
    """What a coordinator does in pieces, as the broker does such things."""
    yield from steps


def when_durable(response: Response, shards: Iterable[GroupShard]) -> Response | Pending[Response]:
    """The response, or a reply that waits until all that these shards have written is on disk."""
    unsynced = [shard for shard in dict.fromkeys(shards) if not shard.is_durable]
    if not unsynced:
        return response
    return complete_after(response, [shard.when_durable for shard in unsynced])
