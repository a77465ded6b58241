"""CreatePartitions: more partitions for a topic, never fewer."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.topics import Twin


def grow(name: str, count: int, *assignments: list[int], **fields: Any) -> Plain:
    topic: Plain = {"name": name, "count": count, "assignments": None}
    if assignments:
        topic["assignments"] = [{"broker_ids": brokers} for brokers in assignments]
    return {"topics": [topic], "timeout": 10_000, "validate_only": False, **fields}


@pytest.mark.every_version("create_partitions")
def test_more_partitions(twin: Twin, talk: Conversation, version: int) -> None:
    name = twin.create_topic(partitions=2)
    talk.ask("create_partitions", version, grow(name, 5, validate_only=True))
    talk.ask("metadata", 12, {"topics": [{"name": name}]})
    talk.ask("create_partitions", version, grow(name, 4))
    twin.wait_until_led(name, 4)
    talk.ask("create_partitions", version, grow(name, 6, [1], [1]))
    twin.wait_until_led(name, 6)
    talk.ask("metadata", 12, {"topics": [{"name": name}]})


@pytest.mark.every_version("create_partitions")
@pytest.mark.parametrize("validate_only", [False, True])
def test_refused(twin: Twin, talk: Conversation, version: int, validate_only: bool) -> None:
    name = twin.create_topic(partitions=2)
    for body in (
        *(grow(name, count) for count in (-2, -1, 0, 1, 2)),
        grow(name, 3, [1], [1]),
        grow(name, 4, [1]),
        grow(name, 3, [2]),
        grow(name, 3, [1, 2]),
        grow(name, 3, [1, 1]),
        grow(name, 3, []),
        grow(name, 3, [-1]),
        grow(name, 2, [1]),
        grow(twin.unused_name("unknown"), 3),
        grow("", 3),
        grow("a b", 3),
    ):
        body["validate_only"] = validate_only
        talk.ask("create_partitions", version, body)
    talk.ask("metadata", 12, {"topics": [{"name": name}]})


@pytest.mark.every_version("create_partitions")
def test_no_time_and_too_many(twin: Twin, talk: Conversation, version: int) -> None:
    name = twin.create_topic()
    unknown = twin.unused_name("unknown")
    talk.ask("create_partitions", version, grow(name, 2, timeout=-1))
    talk.ask("create_partitions", version, grow(unknown, 2, timeout=-1))
    talk.ask("create_partitions", version, grow(name, 10_001, validate_only=True))
    for count in (10_002, 20_000, 2147483647):
        body = grow(name, count, validate_only=True)
        talk.ask("create_partitions", version, body, deviation="D-011")
    talk.ask("metadata", 12, {"topics": [{"name": name}]})


@pytest.mark.every_version("create_partitions")
def test_several_topics(twin: Twin, talk: Conversation, version: int) -> None:
    first, second = twin.create_topic(), twin.create_topic()
    unknown = twin.unused_name("unknown")

    def topics(*entries: tuple[str, int]) -> Plain:
        listed = [{"name": name, "count": count, "assignments": None} for name, count in entries]
        return {"topics": listed, "timeout": 10_000, "validate_only": False}

    talk.ask("create_partitions", version, topics())
    talk.ask("create_partitions", version, topics((first, 2), (first, 3)))
    talk.ask("create_partitions", version, topics((first, 2), (first, 2), (second, 2)))
    twin.wait_until_led(second, 2)
    talk.ask("create_partitions", version, topics((first, 4), (unknown, 2), (second, 1)))
    twin.wait_until_led(first, 4)
    talk.ask("metadata", 12, {"topics": [{"name": first}, {"name": second}]})
