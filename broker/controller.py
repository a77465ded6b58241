"""Changes to the metadata: one at a time, durable before they are visible.

A topic is ready when its creation is answered: its logs exist and this broker leads them. (Kafka
answers earlier, and an idempotent producer that writes at once can get stuck.)
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import trio

from klamm.broker.config import ConfigError, validate_topic_configs
from klamm.broker.loading import open_partition
from klamm.broker.metadata.image import MetadataImage, TopicState
from klamm.broker.metadata.topics import (
    USE_DEFAULT,
    Assignments,
    Refused,
    check_new_topic_name,
    choose_replicas,
    topic_records,
)
from klamm.wire.errors import ErrorCode
from klamm.wire.schema import Message

if TYPE_CHECKING:
    from klamm.broker.broker import Broker

logger = logging.getLogger(__name__)

# Making a partition takes about a millisecond; others get their turn after this many.
PARTITIONS_PER_TURN = 8


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic that can be made: what it will be, and the records that make it."""

    name: str
    topic_id: UUID
    replicas: list[list[int]]
    configs: dict[str, str]
    records: Sequence[Message]


class Controller:
    """The one writer of the metadata log."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        # Held from the decision to the commit, so that no two decisions rest on the same image.
        self.lock = trio.Lock()

    @property
    def image(self) -> MetadataImage:
        return self._broker.metadata.image

    @property
    def brokers(self) -> list[int]:
        """The brokers that can hold replicas."""
        return [self._broker.node_id]

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
            brokers=self.brokers,
        )
        given = {key: value for key, value in (configs or {}).items() if value is not None}
        topic_id = new_topic_id()
        records = topic_records(name, topic_id, replicas, given, broker.logs.directory_id)
        return NewTopic(name, topic_id, replicas, given, records)

    async def auto_create(self, names: Iterable[str]) -> None:
        """Make the topics that can be made, with defaults; the log says why others can't."""
        async with self.lock:
            planned = {}
            for name in names:
                if name in self.image.topics:
                    continue
                try:
                    planned[name] = self.plan_topic(name).records
                except Refused as refused:
                    logger.info("topic %r is not created on the way: %s", name, refused)
            if planned:
                await self.create_topics(planned)

    async def commit(self, records: Sequence[Message]) -> None:
        assert self.lock.locked(), "decide and commit under one lock"
        broker = self._broker
        await broker.metadata.commit(records, broker.flusher, broker.clock.now_ms())

    async def create_topics(self, topics: dict[str, Sequence[Message]]) -> None:
        """Commit the records of new topics and make their logs."""
        await self.commit([record for records in topics.values() for record in records])
        for name in topics:
            await self.open_partitions(self.image.topics[name])

    async def open_partitions(self, topic: TopicState) -> None:
        """Make and lead the partitions of a topic that are not led yet."""
        for number, state in enumerate(topic.partitions):
            if self._broker.partitions.get(topic.name, state.index) is None:
                open_partition(self._broker, topic, state)
                if number % PARTITIONS_PER_TURN == 0:
                    await trio.lowlevel.checkpoint()

    async def delete_topics(self, records: Sequence[Message], topic_ids: Sequence[UUID]) -> None:
        """Commit the removal, then forget the partitions and remove their files."""
        await self.commit(records)
        for topic_id in topic_ids:
            for name, index in self._broker.partitions.remove_topic(topic_id):
                self._broker.logs.delete_partition(name, index)
                await trio.lowlevel.checkpoint()
        self._broker.remove_deleted_soon()


def new_topic_id() -> UUID:
    """A random id; Kafka's text form of it may not begin with a dash, which tools take for an
    option, so neither do ours."""
    while (topic_id := uuid4()).bytes[0] >> 2 == 62:
        pass
    return topic_id
