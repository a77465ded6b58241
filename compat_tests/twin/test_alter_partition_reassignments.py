"""AlterPartitionReassignments: with one broker, a partition can only stay where it is."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.topics import Twin


def partition(index: int, replicas: list[int] | None) -> Plain:
    return {"partition_index": index, "replicas": replicas}


def alter(*topics: tuple[str, list[Plain]], **fields: Any) -> Plain:
    named = [{"name": name, "partitions": partitions} for name, partitions in topics]
    return {"topics": named, "timeout": 10_000, **fields}


both = pytest.mark.parametrize("may_change", [True, False])


@pytest.mark.every_version("alter_partition_reassignments")
@both
def test_assignments(twin: Twin, talk: Conversation, version: int, may_change: bool) -> None:
    topic = twin.create_topic(partitions=2)
    for replicas in ([1], None, [], [2], [1, 2], [2, 1], [1, 1], [-1], [1, -1], [2, 2]):
        body = alter((topic, [partition(0, replicas)]), allow_replication_factor_change=may_change)
        talk.ask("alter_partition_reassignments", version, body)
    talk.ask("list_partition_reassignments", 0, {"topics": None})
    talk.ask("metadata", 12, {"topics": [{"name": topic}]})


@pytest.mark.every_version("alter_partition_reassignments")
def test_what_is_not_there(twin: Twin, talk: Conversation, version: int) -> None:
    topic = twin.create_topic(partitions=2)
    unknown = twin.unused_name("unknown")
    for name, index in (
        (topic, 7),
        (topic, -1),
        (topic, 2147483647),
        (unknown, 0),
        ("", 0),
        ("a b", 0),
        ("__cluster_metadata", 0),
    ):
        for replicas in ([1], None, [2]):
            body = alter((name, [partition(index, replicas)]))
            talk.ask("alter_partition_reassignments", version, body)


@pytest.mark.every_version("alter_partition_reassignments")
@both
@pytest.mark.parametrize("timeout", [0, -1, -2147483648])
def test_no_time(
    twin: Twin, talk: Conversation, version: int, may_change: bool, timeout: int
) -> None:
    topic = twin.create_topic()
    fields = {"timeout": timeout, "allow_replication_factor_change": may_change}
    for body in (
        alter((topic, [partition(0, [1])]), **fields),
        alter((topic, [partition(0, [2]), partition(9, [1])]), ("a b", []), **fields),
        alter((topic, []), **fields),
        alter(**fields),
    ):
        talk.ask("alter_partition_reassignments", version, body)


@pytest.mark.every_version("alter_partition_reassignments")
@both
def test_several(twin: Twin, talk: Conversation, version: int, may_change: bool) -> None:
    topic, other = twin.create_topic(partitions=2), twin.create_topic(partitions=2)
    fields = {"allow_replication_factor_change": may_change}
    for body in (
        alter(**fields),
        alter((topic, []), **fields),
        alter((topic, [partition(0, [1]), partition(0, None), partition(1, [2])]), **fields),
        alter((topic, [partition(0, [1])]), (topic, [partition(0, [1])]), **fields),
        alter((other, [partition(1, [1])]), (topic, [partition(7, [1])]), ("", []), **fields),
    ):
        talk.ask("alter_partition_reassignments", version, body)
