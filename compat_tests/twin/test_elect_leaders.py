"""ElectLeaders: with one broker, everything is led by whom it should be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.topics import Twin

Topics = Sequence[tuple[str, list[int]]] | None


def elect(topics: Topics, **fields: Any) -> Plain:
    named = None
    if topics is not None:
        named = [{"topic": topic, "partitions": held} for topic, held in topics]
    base = {"election_type": 0, "topic_partitions": named, "timeout": 10_000}
    return {**base, **fields}


def only(*names: str) -> Callable[[Plain], Plain]:
    """Keeps what is said of some topics: others come and go while a test runs."""

    def narrow(reply: Plain) -> Plain:
        results = reply["replica_election_results"]
        kept = [topic for topic in results if topic["topic"] in names]
        return {**reply, "replica_election_results": kept}

    return narrow


every_type = pytest.mark.parametrize("election_type", [0, 1, 2, -1, 127])


@pytest.mark.every_version("elect_leaders")
@every_type
def test_partitions(twin: Twin, talk: Conversation, version: int, election_type: int) -> None:
    topic, other = twin.create_topic(partitions=2), twin.create_topic(partitions=2)
    unknown = twin.unused_name("unknown")
    asked: list[Topics] = [
        [],
        [(topic, [0, 1])],
        [(topic, [0, 0])],
        [(topic, [])],
        [(topic, [7, -1, 1])],
        [(topic, [0]), (other, [0]), (topic, [1])],
        [(unknown, [0]), ("", [0]), ("a b", [0]), (other, [1])],
        [("__cluster_metadata", [0])],
    ]
    for topics in asked:
        talk.ask("elect_leaders", version, elect(topics, election_type=election_type))


@pytest.mark.every_version("elect_leaders")
@every_type
def test_everything(twin: Twin, talk: Conversation, version: int, election_type: int) -> None:
    topic = twin.create_topic(partitions=2)
    body = elect(None, election_type=election_type)
    talk.ask("elect_leaders", version, body, prepare=only(topic))


@pytest.mark.every_version("elect_leaders")
@pytest.mark.parametrize("timeout", [0, -1, -2147483648])
def test_no_time(twin: Twin, talk: Conversation, version: int, timeout: int) -> None:
    topic = twin.create_topic()
    asked: list[Topics] = [[(topic, [0, 7]), ("a b", [0])], [(topic, [])], [], None]
    for topics in asked:
        for election_type in (0, 2):
            body = elect(topics, timeout=timeout, election_type=election_type)
            talk.ask("elect_leaders", version, body)
