"""Changes to the metadata: one at a time, durable before they are visible.

A topic is ready when its creation is answered: its logs exist and this broker leads them. (Kafka
answers earlier, and an idempotent producer that writes at once can get stuck.)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import trio

from klamm.broker.config import ConfigError, ServerConfig, validate_topic_configs
from klamm.broker.config.loggers import set_level
from klamm.broker.groups.offsets_topic import OFFSETS_TOPIC, InternalTopic, offsets_topic
from klamm.broker.leadership import resignation
from klamm.broker.loading import lead_partition, open_log
from klamm.broker.metadata.configs import Alteration, ConfigPlan
from klamm.broker.metadata.image import MetadataImage, ResourceType
from klamm.broker.metadata.topics import (
    PARTITIONS_PER_REQUEST_MAX,
    USE_DEFAULT,
    Assignments,
    Refused,
    check_new_topic_name,
    choose_replicas,
    topic_records,
)
from klamm.broker.partition import Partition
from klamm.broker.placement import Placement
from klamm.broker.reconfiguration import put_into_force
from klamm.broker.steps import Stepwise, let_go
from klamm.broker.transactions.state_topic import TRANSACTION_STATE_TOPIC, transaction_state_topic
from klamm.log.errors import LogError
from klamm.wire.errors import ErrorCode
from klamm.wire.schema import Message

if TYPE_CHECKING:
    from klamm.broker.broker import Broker

logger = logging.getLogger(__name__)

# Topics that are made in their own way, whoever asks for them.
INTERNAL: Mapping[str, Callable[[ServerConfig, int], InternalTopic]] = {
    OFFSETS_TOPIC: offsets_topic,
    TRANSACTION_STATE_TOPIC: transaction_state_topic,
}


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic that can be made: what it will be, and the records that make it, to be taken once."""

    name: str
    topic_id: UUID
    replicas: list[list[int]]
    configs: dict[str, str]
    records: Iterable[Message]


class Controller:
    """The one writer of the metadata log."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        # Held from the decision to the commit, so that no two decisions rest on the same image.
        self.lock = trio.Lock()
        self.placement = Placement(broker)

    @property
    def image(self) -> MetadataImage:
        return self._broker.metadata.image

    @property
    def brokers(self) -> list[int]:
        """The brokers that can hold replicas."""
        return [self._broker.node_id]

    @property
    def brokers_for_new(self) -> list[int]:
        """Those that take new ones: none while all their log directories are cordoned."""
        return self.brokers if self.placement.is_possible else []

    def plan_topic(
        self,
        name: str,
        *,
        num_partitions: int = USE_DEFAULT,
        replication_factor: int = USE_DEFAULT,
        assignments: Assignments = (),
        configs: Mapping[str, str | None] | None = None,
    ) -> NewTopic:
        """Check everything about a new topic. Raises Refused."""
        broker = self._broker
        check_new_topic_name(name, self.image)
        try:
            validate_topic_configs(configs or {}, broker.config)
        except ConfigError as error:
            raise Refused(ErrorCode.INVALID_CONFIG, str(error)) from None
        replicas = choose_replicas(
            num_partitions,
            replication_factor,
            assignments,
            default_partitions=broker.config.num_partitions,
            default_replication_factor=broker.config.default_replication_factor,
            brokers=self.brokers_for_new,
        )
        given = {key: value for key, value in (configs or {}).items() if value is not None}
        topic_id = new_topic_id()
        records = topic_records(name, topic_id, replicas, given, self.placement.next)
        return NewTopic(name, topic_id, replicas, given, records)

    async def auto_create(self, names: Iterable[str]) -> None:
        """Make the topics that can be made, with defaults; the log says why others can't."""
        async with self.lock:
            planned = await self._broker.steps.run(self._plan_missing(names))
            if planned:
                await self.create_topics(planned)

    def _plan_missing(self, names: Iterable[str]) -> Stepwise[dict[str, Iterable[Message]]]:
        planned: dict[str, Iterable[Message]] = {}
        partitions = 0
        for name in names:
            yield None
            if name in self.image.topics:
                continue
            try:
                topic = self._plan_default(name)
            except Refused as refused:
                logger.info("topic %r is not created on the way: %s", name, refused)
                continue
            planned[name] = topic.records
            partitions += len(topic.replicas)
            if partitions > PARTITIONS_PER_REQUEST_MAX:
                # As in Kafka, which creates them as if they were asked for by CreateTopics.
                logger.info("one request would create over %d partitions on the way", partitions)
                return {}
        return planned

    def _plan_default(self, name: str) -> NewTopic:
        make = INTERNAL.get(name)
        if make is None:
            return self.plan_topic(name)
        topic = make(self._broker.config, len(self.brokers))
        return self.plan_topic(
            name,
            num_partitions=topic.num_partitions,
            replication_factor=topic.replication_factor,
            configs=topic.configs,
        )

    async def alter_configs(
        self, wanted: Stepwise[list[Alteration]], *, validate_only: bool
    ) -> list[Refused | None]:
        """Alter what can be altered; return for each resource why it was not, or None.

        What is wanted is read here, so that nobody holds on to it while the reply is made: it takes
        long to let go of very much at once.
        """
        broker = self._broker
        alterations = await broker.steps.run(wanted)
        async with self.lock:
            plan = ConfigPlan(self.image, broker.config, broker.node_id)
            outcomes = await broker.steps.run(plan.decide(alterations))
            if not validate_only:
                for name, level in plan.levels.items():
                    set_level(name, level)
                if plan.records:
                    await self.commit(plan.records)
                    await broker.steps.run(put_into_force(broker, plan.server, plan.altered))
                    topics = [name for kind, name in plan.altered if kind == ResourceType.TOPIC]
                    await broker.steps.run(self._warn_of_large_messages(topics))
        await broker.steps.run(let_go(alterations))
        return outcomes

    async def commit(self, records: Iterable[Message]) -> None:
        assert self.lock.locked(), "decide and commit under one lock"
        broker = self._broker
        await broker.metadata.commit(records, broker.flusher, broker.steps, broker.clock.now_ms())
        self.placement.on_committed()

    async def create_topics(self, topics: Mapping[str, Iterable[Message]]) -> None:
        """Commit the records of new topics and make their logs."""
        await self.commit(chain.from_iterable(topics.values()))
        await self.open_partitions(topics)
        await self._broker.steps.run(self._warn_of_large_messages(topics))

    def _warn_of_large_messages(self, names: Iterable[str]) -> Stepwise[None]:
        """Say which topics allow what no request can bring: it is Kafka's to take such a config,
        and a producer only sees its connection closed."""
        for name in names:
            yield None
            largest = self.image.topic_configs(name).get("max.message.bytes")
            if largest is not None and int(largest) > self._broker.config.socket_request_max_bytes:
                logger.warning(
                    "topic %s: max.message.bytes=%s can never arrive; "
                    "raise socket.request.max.bytes above it",
                    *(name, largest),
                )

    async def open_partitions(self, names: Iterable[str]) -> None:
        """Make and lead the partitions of topics that are not led yet."""
        names = list(names)
        refused = await self._broker.steps.run(self._open(names))
        if refused:
            await self.commit(refused)
        self._broker.transactions.lead_new_partitions()
        await self._broker.steps.run(self._broker.groups.on_topics_changed(names))

    def _open(self, names: Iterable[str]) -> Stepwise[list[Message]]:
        """Open what is not led; return the records that say what can't be."""
        refused: list[Message] = []
        broker = self._broker
        for name in names:
            topic = self.image.topics[name]
            for state in topic.partitions:
                if broker.partitions.get(name, state.index) is None:
                    log = yield from open_log(broker, topic, state)
                    lead_partition(broker, topic, state, log)
                    if log is None:
                        refused += resignation(topic, state)
                yield None
        return refused

    async def resign(self, partitions: Iterable[Partition]) -> None:
        """Say that partitions whose directory is offline have no leader any more."""
        async with self.lock:
            records: list[Message] = []
            for partition in partitions:
                topic = self.image.topics_by_id.get(partition.topic_id)
                if topic is not None:
                    records += resignation(topic, topic.partitions[partition.index])
            if records:
                await self.commit(records)

    async def delete_topics(self, records: Iterable[Message], topic_ids: Iterable[UUID]) -> None:
        """Commit the removal, then forget the partitions and remove their files."""
        topic_ids = list(topic_ids)
        names = [self.image.topics_by_id[topic_id].name for topic_id in topic_ids]
        records = list(records)
        try:
            await self.commit(records)
        except LogError:
            # A full disk: this is what makes room again.
            if not self._broker.reserve.release():
                raise
            await self.commit(records)
        for topic_id in topic_ids:
            for name, index in self._broker.partitions.remove_topic(topic_id):
                self._broker.logs.delete_partition(name, index)
                await trio.lowlevel.checkpoint()
        self._broker.transactions.resign_if_deleted()
        self._broker.moves.on_deleted()
        await self._broker.steps.run(self._broker.groups.on_topics_deleted(names))
        self._broker.remove_deleted_soon()


def new_topic_id() -> UUID:
    """A random id; Kafka's text form of it may not begin with a dash, which tools take for an
    option, so neither do ours."""
    while (topic_id := uuid4()).bytes[0] >> 2 == 62:
        pass
    return topic_id
