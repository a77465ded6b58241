"""The groups of a broker: settings, topics, sweeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

import trio

from klamm.broker.coordinator_service import CoordinatorService
from klamm.broker.coordinator_shard import ShardState, when_durable
from klamm.broker.features import GROUP_VERSION, GROUP_VERSION_LEVEL
from klamm.broker.groups.offsets_topic import OFFSETS_TOPIC
from klamm.broker.groups.outbox import Outbox
from klamm.broker.groups.settings import group_configs, group_settings
from klamm.broker.groups.shard import GroupShard
from klamm.broker.groups.topics import MetadataTopics
from klamm.broker.partition import Partition
from klamm.broker.replies import Pending
from klamm.broker.steady_clock import SteadyClock
from klamm.broker.steps import Stepwise
from klamm.coordinator.group_coordinator import GroupCoordinator
from klamm.coordinator.ports import TransactionMarker

if TYPE_CHECKING:
    from klamm.broker.broker import Broker

Response = TypeVar("Response")

WORKER_THREADS_MAX = 1


class Groups(CoordinatorService[GroupShard]):
    """All group coordinators of a broker."""

    def __init__(self, broker: Broker, nursery: trio.Nursery) -> None:
        super().__init__(broker, nursery, OFFSETS_TOPIC, broker.config.offsets_topic_num_partitions)
        self.topics = MetadataTopics(broker.metadata.image, broker.config.broker_rack)
        self.settings = group_settings(broker.config)
        self.codec = broker.config.offsets_topic_compression_codec
        self.workers = trio.CapacityLimiter(WORKER_THREADS_MAX)
        self.outbox = Outbox(nursery, broker.steps)
        self._clock = SteadyClock(broker.clock)
        self._orphans_wanted = trio.Event()
        # How often all groups were looked through for what is expired.
        self.sweeps = 0

    # --- life ---

    def start(self) -> None:
        """Load what is there already, and begin to sweep."""
        self.lead_new_partitions()
        self.start_soon(self._expire_regularly)
        self.start_soon(self._remove_orphans)

    def new_shard(self, partition: Partition) -> GroupShard:
        return GroupShard(self, partition)

    async def after_load(self, shard: GroupShard) -> None:
        # Topics may have been deleted while nobody looked.
        await self.sweep(shard, shard.coordinator.remove_orphans())

    def on_topics_changed(self, names: Iterable[str]) -> Stepwise[None]:
        """Topics were made, have more partitions, or have been deleted."""
        self.lead_new_partitions()
        for shard in self.active_shards():
            for name in names:
                shard.coordinator.on_topics_changed([name])
                yield None

    def on_topics_deleted(self, names: Iterable[str]) -> Stepwise[None]:
        self.resign_if_deleted()
        self._orphans_wanted.set()
        yield from self.on_topics_changed(names)

    def reconfigure(self) -> None:
        """The settings of the broker have changed."""
        self.settings = group_settings(self.broker.config)
        for shard in self._shards.values():
            shard.coordinator.reconfigure(self.settings)

    def on_transaction_marker(
        self, partition_index: int, producer_id: int, producer_epoch: int, committed: bool
    ) -> None:
        """A marker has been appended to a partition of `__consumer_offsets`.

        A producer has one open transaction at most, whatever its epoch is. A shard that is still
        loading finds the marker in the log.
        """
        shard = self._shards.get(partition_index)
        if shard is None or shard.state is not ShardState.ACTIVE:
            return
        try:
            shard.replay_marker(TransactionMarker(producer_id, committed))
        except Exception:
            # The log has what the state does not: nothing that follows could be trusted.
            self.broker.halt(f"{shard}: a marker that was written can't be replayed")
            raise

    # --- what handlers ask ---

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
            for shard in self.active_shards():
                await self.sweep(shard, shard.coordinator.remove_expired(now_ms))
            self.sweeps += 1

    async def _remove_orphans(self) -> None:
        while True:
            await self._orphans_wanted.wait()
            self._orphans_wanted = trio.Event()
            for shard in self.active_shards():
                await self.sweep(shard, shard.coordinator.remove_orphans())
