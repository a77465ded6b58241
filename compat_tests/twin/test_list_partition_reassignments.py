"""ListPartitionReassignments: with one broker, nothing is ever on its way."""

from __future__ import annotations

import pytest

from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.topics import Twin


def named(*topics: tuple[str, list[int]]) -> list[Plain]:
    return [{"name": name, "partition_indexes": held} for name, held in topics]


@pytest.mark.every_version("list_partition_reassignments")
def test_nothing_is_on_its_way(twin: Twin, talk: Conversation, version: int) -> None:
    topic = twin.create_topic(partitions=2)
    unknown = twin.unused_name("unknown")
    for topics in (
        None,
        [],
        named((topic, [0, 1])),
        named((topic, [])),
        named((topic, [7, -1]), (unknown, [0]), ("", [0]), ("a b", [0])),
        named((topic, [0]), (topic, [0])),
    ):
        for timeout in (10_000, 0, -1):
            body = {"topics": topics, "timeout": timeout}
            talk.ask("list_partition_reassignments", version, body)
