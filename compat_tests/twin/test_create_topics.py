"""CreateTopics: defaults, assignments, configs, and every way to ask wrongly."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.topics import Twin

VALID_CONFIGS = {
    "cleanup.policy": ["compact", "delete", "compact,delete", "delete, compact", ""],
    "retention.ms": ["-1", "0", "1000", "9223372036854775807"],
    "retention.bytes": ["-1", "0", "1"],
    "segment.bytes": ["1048576", "2147483647"],
    "segment.ms": ["1"],
    "max.message.bytes": ["0", "1000"],
    "message.timestamp.type": ["CreateTime", "LogAppendTime"],
    "compression.type": ["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"],
    "min.insync.replicas": ["1", "2", "100"],
    "min.cleanable.dirty.ratio": ["0", "0.5", "1", "1.0"],
    "unclean.leader.election.enable": ["true", "FALSE", " true "],
    "preallocate": ["true"],
    "flush.messages": ["1"],
    "leader.replication.throttled.replicas": ["*", "", "0:1", "0:1,1:1"],
}
INVALID_CONFIGS = {
    "cleanup.policy": ["remove", "compact;delete", "COMPACT"],
    "retention.ms": ["-2", "1.5", "week", "9223372036854775808", " "],
    "retention.bytes": ["x"],
    "segment.bytes": ["0", "13", "1048575", "2147483648"],
    "segment.ms": ["0"],
    "max.message.bytes": ["-1"],
    "message.timestamp.type": ["createtime", "Now"],
    "compression.type": ["none", "brotli", "GZIP"],
    "min.insync.replicas": ["0", "-1"],
    "min.cleanable.dirty.ratio": ["-0.1", "1.1"],
    "unclean.leader.election.enable": ["yes", "1"],
    "leader.replication.throttled.replicas": ["0-1", "broker"],
    "message.format.version": ["3.0"],
    "no.such.config": ["1"],
    "": ["1"],
}


def topic(name: str, **fields: Any) -> Plain:
    base = {"name": name, "num_partitions": 1, "replication_factor": 1}
    return {**base, **fields}


def create(*topics: Plain, **fields: Any) -> Plain:
    return {"topics": list(topics), "timeout": 10_000, "validate_only": False, **fields}


def assigned(*replicas: list[int], start: int = 0) -> list[Plain]:
    return [
        {"partition_index": start + index, "broker_ids": brokers}
        for index, brokers in enumerate(replicas)
    ]


@pytest.mark.every_version("create_topics")
@pytest.mark.parametrize("validate_only", [False, True])
def test_created(twin: Twin, talk: Conversation, version: int, validate_only: bool) -> None:
    name = twin.unused_name()
    wanted = topic(name, num_partitions=3, configs=[{"name": "retention.ms", "value": "1000"}])
    for _ in range(2):
        talk.ask("create_topics", version, create(wanted, validate_only=validate_only))
    if not validate_only:
        twin.wait_until_led(name, 3)
    talk.ask("metadata", 12, {"topics": [{"name": name}], "allow_auto_topic_creation": False})


@pytest.mark.every_version("create_topics")
def test_defaults(twin: Twin, talk: Conversation, version: int) -> None:
    """From version 4, -1 stands for the broker's default; before, it is an invalid number."""
    for partitions, factor in ((-1, 1), (1, -1), (-1, -1)):
        wanted = topic(twin.unused_name(), num_partitions=partitions, replication_factor=factor)
        talk.ask("create_topics", version, create(wanted))


@pytest.mark.every_version("create_topics")
def test_numbers_out_of_range(twin: Twin, talk: Conversation, version: int) -> None:
    for fields in (
        *({"num_partitions": 0}, {"num_partitions": -2}, {"replication_factor": 0}),
        *({"replication_factor": 2}, {"replication_factor": -2}, {"replication_factor": 32767}),
        {"num_partitions": 0, "replication_factor": 2},
    ):
        talk.ask("create_topics", version, create(topic(twin.unused_name(), **fields)))


@pytest.mark.every_version("create_topics")
@pytest.mark.parametrize(
    "assignments",
    [
        assigned([1]),
        assigned([1], [1], [1]),
        assigned([2]),
        assigned([1, 1]),
        assigned([1, 2]),
        assigned([]),
        assigned([1], []),
        assigned([-1]),
        assigned([1], start=1),
        [*assigned([1]), *assigned([1], start=2)],
        [*assigned([1]), *assigned([1])],
        assigned([1], start=-1),
        assigned([1], [2]),
    ],
    ids=lambda value: "+".join(f"{one['partition_index']}{one['broker_ids']}" for one in value),
)
def test_assignments(
    twin: Twin, talk: Conversation, version: int, assignments: list[Plain]
) -> None:
    for partitions, factor in ((-1, -1), (1, -1), (-1, 1)):
        wanted = topic(
            twin.unused_name(),
            num_partitions=partitions,
            replication_factor=factor,
            assignments=assignments,
        )
        talk.ask("create_topics", version, create(wanted, validate_only=True))
    talk.ask(
        "create_topics", version, create({**wanted, "num_partitions": -1, "replication_factor": -1})
    )


@pytest.mark.every_version("create_topics")
@pytest.mark.parametrize("name", VALID_CONFIGS)
def test_valid_configs(twin: Twin, talk: Conversation, version: int, name: str) -> None:
    for value in VALID_CONFIGS[name]:
        wanted = topic(twin.unused_name(), configs=[{"name": name, "value": value}])
        talk.ask("create_topics", version, create(wanted))


@pytest.mark.every_version("create_topics")
@pytest.mark.parametrize("name", INVALID_CONFIGS)
def test_invalid_configs(twin: Twin, talk: Conversation, version: int, name: str) -> None:
    for value in INVALID_CONFIGS[name]:
        wanted = topic(twin.unused_name(), configs=[{"name": name, "value": value}])
        talk.ask("create_topics", version, create(wanted))


@pytest.mark.every_version("create_topics")
def test_configs_together(twin: Twin, talk: Conversation, version: int) -> None:
    for pairs in (
        [("retention.ms", None)],
        [("no.such.config", None)],
        [("retention.ms", "1"), ("retention.ms", "2")],
        [("retention.ms", "1"), ("local.retention.ms", "2")],
        [("retention.bytes", "1"), ("local.retention.bytes", "2")],
        [("min.compaction.lag.ms", "10"), ("max.compaction.lag.ms", "5")],
        [("remote.storage.enable", "true")],
        [("retention.ms", "bad"), ("segment.ms", "bad")],
    ):
        configs = [{"name": name, "value": value} for name, value in pairs]
        talk.ask("create_topics", version, create(topic(twin.unused_name(), configs=configs)))


@pytest.mark.every_version("create_topics")
def test_names(twin: Twin, talk: Conversation, version: int) -> None:
    for name in ("", ".", "..", "a b", "a/b", "ä", "x" * 249 + "y", "__cluster_metadata"):
        talk.ask("create_topics", version, create(topic(name)))
    for stem in ("x" * 243, "A-z_0.9"):
        talk.ask("create_topics", version, create(topic(twin.unused_name(stem))))


@pytest.mark.every_version("create_topics")
def test_names_that_collide(twin: Twin, talk: Conversation, version: int) -> None:
    existing = twin.create_topic("col.li_de")
    talk.ask("create_topics", version, create(topic(existing.replace(".", "_"))))
    first = twin.unused_name("new.name")
    talk.ask("create_topics", version, create(topic(first), topic(first.replace(".", "_"))))


@pytest.mark.every_version("create_topics")
def test_names_twice(twin: Twin, talk: Conversation, version: int) -> None:
    name, existing = twin.unused_name(), twin.create_topic()
    talk.ask("create_topics", version, create(topic(name), topic(name)))
    talk.ask("create_topics", version, create(topic(existing), topic(existing, num_partitions=2)))
    good, bad = twin.unused_name(), twin.unused_name()
    talk.ask(
        *("create_topics", version),
        create(topic(good), topic(existing), topic(bad, num_partitions=0), topic("a b")),
    )


@pytest.mark.every_version("create_topics")
def test_no_topics(talk: Conversation, version: int) -> None:
    talk.ask("create_topics", version, create())
    talk.ask("create_topics", version, create(timeout=-1))


@pytest.mark.every_version("create_topics")
def test_no_time(twin: Twin, talk: Conversation, version: int) -> None:
    """A negative time is over before anything could be done in it."""
    name, existing = twin.unused_name(), twin.create_topic()
    for timeout in (-1, -2147483648):
        for topics in (
            [topic(name)],
            [topic(name), topic(existing), topic("a b")],
            [topic(name), topic(name)],
            [topic(name), topic("a b"), topic("a b"), topic("__cluster_metadata")],
        ):
            talk.ask("create_topics", version, create(*topics, timeout=timeout))
    talk.ask("metadata", 12, {"topics": [{"name": name}], "allow_auto_topic_creation": False})


@pytest.mark.every_version("create_topics")
def test_too_many_partitions(twin: Twin, talk: Conversation, version: int) -> None:
    """A request creates at most 10,000 things; beyond that, nothing of it is looked at."""
    large, small = twin.unused_name(), twin.unused_name()
    for topics in (
        [topic(large, num_partitions=10_001)],
        [topic(large, num_partitions=2147483647)],
        [topic(large, num_partitions=10_001), topic(small), topic("a b")],
        [topic(large, num_partitions=6_000), topic(small, num_partitions=6_000)],
        [topic(large, num_partitions=10_001), topic(small), topic(small)],
        [topic(small), topic(large, num_partitions=10_001), topic(large, num_partitions=1)],
        [topic(large, num_partitions=10_000)],
    ):
        talk.ask("create_topics", version, create(*topics, validate_only=True))


@pytest.mark.every_version("create_topics")
def test_what_is_reported_first(twin: Twin, talk: Conversation, version: int) -> None:
    """Several mistakes in one topic: the order of the checks is what clients see."""
    bad_config = [{"name": "segment.ms", "value": "0"}]
    existing = twin.create_topic()
    for name, fields in (
        (existing, {"num_partitions": 0}),
        (existing, {"configs": bad_config}),
        ("a b", {"num_partitions": 0}),
        ("a b", {"configs": bad_config}),
        (twin.unused_name(), {"num_partitions": 0, "configs": bad_config}),
        (twin.unused_name(), {"replication_factor": 5, "configs": bad_config}),
        (existing, {"assignments": assigned([7])}),
    ):
        talk.ask("create_topics", version, create(topic(name, **fields)))
