"""Both brokers together: topics under the same name, ready on both before a test compares."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from compat_tests.twin.conversation import Body, Conversation, Pair, Side

# Apache Kafka may get little of a busy machine.
READY_TIMEOUT_S = 40
CREATION_TIMEOUT_MS = 25_000
CREATED_AHEAD_MAX = 32


class Twin:
    """Both brokers, and what a test needs from them before it can compare anything."""

    def __init__(self, kafka_port: int, other_port: int, *, same_broker: bool) -> None:
        self.sides = (Side("kafka", kafka_port), Side("klamm", other_port))
        self.same_broker = same_broker
        self._names = 0
        self._ready: dict[Any, list[str]] = {}
        self._ahead: dict[Any, int] = {}
        self.control = Conversation(self.sides, same_broker=same_broker)

    def close(self) -> None:
        self.control.close()

    @contextmanager
    def conversation(self) -> Iterator[Conversation]:
        conversation = Conversation(self.sides, same_broker=self.same_broker)
        try:
            yield conversation
        finally:
            conversation.close()

    def unused_name(self, stem: str = "topic") -> str:
        """A topic name that no test of this session has used."""
        self._names += 1
        return f"{stem}-{self._names:05d}"

    def unused_group(self) -> str:
        """A group id that no test of this session has used, and `neighbour` neither."""
        return self.unused_name("groupBB")

    def create_topic(
        self, stem: str = "topic", *, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> str:
        """A new topic on both brokers, led by both.

        It keeps everything for ever, unless configs say otherwise: batches of tests have fixed
        timestamps of long ago, and retention must not take them away while a test compares.

        Topics of one kind are made ahead, more of them each time one is asked for: making many at
        once costs Kafka hardly more than making one.
        """
        settings = {"retention.ms": "-1", **(configs or {})}
        kind = (stem, partitions, tuple(sorted(settings.items())))
        ready = self._ready.setdefault(kind, [])
        if not ready:
            count = self._ahead[kind] = min(2 * self._ahead.get(kind, 0) or 1, CREATED_AHEAD_MAX)
            ready += self._create(stem, partitions, settings, count)
        return ready.pop(0)

    def _create(
        self, stem: str, partitions: int, configs: Mapping[str, str], count: int
    ) -> list[str]:
        names = [self.unused_name(stem) for _ in range(count)]
        fields = {
            "num_partitions": partitions,
            "replication_factor": 1,
            "configs": [{"name": key, "value": value} for key, value in configs.items()],
        }
        body = {
            "topics": [{"name": name, **fields} for name in names],
            "timeout": CREATION_TIMEOUT_MS,
        }
        pair = self.control.ask("create_topics", 7, body, compare=False)
        for side in self.sides:
            for created in pair[side]["topics"]:
                assert created["error_code"] == "none", f"{side.name}: {created}"
            side.learn(pair[side])
        for name in names:
            self.wait_until_led(name, partitions)
        return names

    def wait_until_led(self, topic: str, partitions: int = 1) -> None:
        """Wait until both brokers serve all partitions.

        Kafka answers CreateTopics before its log exists, and even Metadata runs ahead of it.
        """
        latest = [{"partition_index": index, "timestamp": -1} for index in range(partitions)]
        body = {"replica_id": -1, "topics": [{"name": topic, "partitions": latest}]}
        self.wait("list_offsets", 7, body, lambda reply: not _errors(reply))

    def wait_until_gone(self, topic: str) -> None:
        """Wait until neither broker knows a deleted topic any more."""
        body = {"topics": [{"name": topic}], "allow_auto_topic_creation": False}
        self.wait(
            *("metadata", 12, body),
            lambda reply: _errors(reply) == ["unknown_topic_or_partition"],
        )

    def wait_until_ids_are_given(self) -> None:
        """Wait until both brokers give producer ids: Kafka asks its controller for them first."""
        body = {"transactional_id": None, "transaction_timeout": 60_000}
        self.wait("init_producer_id", 4, body, lambda reply: not _errors(reply))

    def wait_until_groups_are_served(self) -> None:
        """Wait until both brokers coordinate every group, which begins with asking them once."""
        body = {"key_type": 0, "coordinator_keys": ["any group"]}
        self.wait("find_coordinator", 6, body, lambda reply: not _errors(reply))
        # The hash of one letter is its code, so fifty letters in a row need all fifty partitions.
        groups = [chr(code) for code in range(ord("0"), ord("0") + 50)]
        self.wait("describe_groups", 5, {"groups": groups}, lambda reply: not _errors(reply))

    def wait_until_transactions_are_served(self) -> None:
        """Wait until both brokers coordinate every transactional id, as above."""
        body = {"key_type": 1, "coordinator_keys": ["any id"]}
        self.wait("find_coordinator", 6, body, lambda reply: not _errors(reply))
        ids = [chr(code) for code in range(ord("0"), ord("0") + 50)]
        unknown = {"transactional_id_not_found"}
        self.wait(
            *("describe_transactions", 0, {"transactional_ids": ids}),
            lambda reply: set(_errors(reply)) == unknown,
            # Kafka makes fifty logs first.
            timeout_s=2 * READY_TIMEOUT_S,
        )
        self.wait_until_ids_are_given()

    def wait(
        self,
        api: str,
        version: int,
        body: Body,
        done: Callable[[Any], bool],
        timeout_s: float = READY_TIMEOUT_S,
    ) -> None:
        """Ask until both brokers give a reply that is wanted."""
        deadline = time.monotonic() + timeout_s
        while True:
            pair: Pair = self.control.ask(api, version, body, compare=False)
            waiting = [side.name for side in self.sides if not done(pair[side])]
            if not waiting:
                return
            assert time.monotonic() < deadline, f"{waiting}: not in time: {pair}"
            time.sleep(0.005)


def neighbour(group: str) -> str:
    """Another group that the same partition of groups keeps: Java hashes "Aa" and "BB" alike."""
    return group.replace("BB", "Aa")


def _errors(reply: Any) -> list[str]:
    """All error codes in a reply, at any depth, except `none`."""
    if isinstance(reply, list):
        return [code for item in reply for code in _errors(item)]
    if not isinstance(reply, dict):
        return []
    own = [reply["error_code"]] if reply.get("error_code", "none") != "none" else []
    return own + [code for item in reply.values() for code in _errors(item)]
