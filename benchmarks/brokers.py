"""The two brokers as processes on fresh directories, and the topics made on them."""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from benchmarks import frames, memory
from benchmarks.loads import LoadError
from benchmarks.sockets import ERROR_CODE, ask, connect, wait_for_coordinator
from compat_tests.apache_kafka import ApacheKafka
from compat_tests.klamm_process import KlammProcess

KLAMM, KAFKA = "klamm", "Kafka"
TOPIC_READY_TIMEOUT_S = 20
ADMIN_TIMEOUT_S = 20
OFFSETS_TOPIC = "__consumer_offsets"


class Durability(Enum):
    """How a topic acknowledges acks=all; everything else is stock."""

    STOCK = "stock"
    PAGE_CACHE = "page cache"
    SYNCED = "synced"


# What has to be said to a topic so that it behaves so. klamm syncs before an acks=all reply unless
# told otherwise; Kafka leaves it to the page cache unless told otherwise.
_TOPIC_CONFIGS: dict[str, dict[Durability, dict[str, str]]] = {
    KLAMM: {
        Durability.STOCK: {},
        Durability.PAGE_CACHE: {"flush.before.ack": "false"},
        Durability.SYNCED: {},
    },
    KAFKA: {
        Durability.STOCK: {},
        Durability.PAGE_CACHE: {},
        Durability.SYNCED: {"flush.messages": "1"},
    },
}


# Both brokers form a group at once, and consumer groups hear of changes within a moment: otherwise
# the rows about rebalances would show the intervals and not the brokers.
_GROUP_PROPERTIES = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "50",
    "group.consumer.assignment.interval.ms": "0",
}


def canonical(broker: str, durability: Durability) -> Durability:
    """STOCK for settings that are the broker's stock behaviour, so that it is measured once."""
    return durability if _TOPIC_CONFIGS[broker][durability] else Durability.STOCK


def process_for(broker: str, folder: Path, *, port: int = 0) -> ApacheKafka | KlammProcess:
    """A broker that is not started yet, with a fresh data directory in the folder."""
    kind = KlammProcess if broker == KLAMM else ApacheKafka
    return kind(folder / "data", port=port, properties=_GROUP_PROPERTIES)


class Server:
    """A running broker and what the run remembers about it."""

    def __init__(self, broker: str, process: ApacheKafka | KlammProcess) -> None:
        self.broker = broker
        self.port = process.port
        self.pid = process.pid
        self.bootstrap = process.bootstrap
        self._data_dir = process.data_dir
        self.filled: dict[str, str] = {}
        # Level 2 keeps librdkafka from reporting that the broker went away when the run is over.
        self._admin: Any = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 2})
        self._numbers = itertools.count(1)

    def create_topic(
        self,
        partitions: int,
        durability: Durability = Durability.STOCK,
        timeout_s: float = TOPIC_READY_TIMEOUT_S,
    ) -> str:
        """A new topic, ready to be written to."""
        name = f"bench-{next(self._numbers)}"
        config = _TOPIC_CONFIGS[self.broker][durability]
        wanted = NewTopic(name, num_partitions=partitions, replication_factor=1, config=config)
        try:
            self._admin.create_topics([wanted])[name].result(ADMIN_TIMEOUT_S)
        except Exception as problem:
            raise LoadError(f"no topic with {config or 'stock configs'}: {problem}") from problem
        self._wait_until_writable(name, partitions, timeout_s)
        return name

    def delete_topic(self, name: str) -> None:
        self._admin.delete_topics([name])[name].result(ADMIN_TIMEOUT_S)

    @contextmanager
    def topic(self, partitions: int, durability: Durability = Durability.STOCK) -> Iterator[str]:
        """A topic for one measurement."""
        name = self.create_topic(partitions, durability)
        try:
            yield name
        finally:
            memory.give_back(self._data_dir.glob(f"{name}-*/*.log"))
            self.delete_topic(name)

    @contextmanager
    def offsets_kept(self, durability: Durability) -> Iterator[None]:
        """The offsets of groups are kept so meanwhile, and as in a stock broker afterwards."""
        config = _TOPIC_CONFIGS[self.broker][durability]
        if config:
            # The broker makes the topic when it first coordinates a group.
            wait_for_coordinator(self.port, "benchmark")
        self._alter_offsets_topic(config, AlterConfigOpType.SET)
        try:
            yield
        finally:
            self._alter_offsets_topic(config, AlterConfigOpType.DELETE)

    def _alter_offsets_topic(self, config: dict[str, str], operation: AlterConfigOpType) -> None:
        if not config:
            return
        entries = [
            ConfigEntry(name, value, incremental_operation=operation)
            for name, value in config.items()
        ]
        topic = ConfigResource(ResourceType.TOPIC, OFFSETS_TOPIC, incremental_configs=entries)
        try:
            self._admin.incremental_alter_configs([topic])[topic].result(ADMIN_TIMEOUT_S)
        except Exception as problem:
            raise LoadError(f"{OFFSETS_TOPIC} does not take {config}: {problem}") from problem

    def _wait_until_writable(self, topic: str, partitions: int, timeout_s: float) -> None:
        """Wait until each partition answers a fetch.

        Kafka answers CreateTopics before the partitions are led, and an idempotent producer that
        writes at once can then be stuck in OUT_OF_ORDER_SEQUENCE_NUMBER for good.
        """
        deadline = time.monotonic() + timeout_s
        error_at = frames.fetch_error_at(topic)
        with connect(self.port) as connection:
            for partition in range(partitions):
                request = frames.fetch(topic, partition, 0, bytes_max=1, wait_ms=0)
                while ERROR_CODE.unpack_from(ask(connection, request), error_at)[0] != 0:
                    if time.monotonic() > deadline:
                        raise LoadError(f"partition {partition} of {topic} is not led")
                    time.sleep(0.01)


@contextmanager
def running(broker: str, folder: Path) -> Iterator[Server]:
    """A broker on a fresh directory, stopped and wiped in the end."""
    folder.mkdir(parents=True)
    with process_for(broker, folder) as process:
        yield Server(broker, process)
    shutil.rmtree(folder, ignore_errors=True)
