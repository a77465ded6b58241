"""DescribeLogDirs: the directory, and the partitions in it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.twin.batches import R, batch
from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.logs import write
from compat_tests.twin.topics import Twin


def asked(*topics: tuple[str, list[int]]) -> Plain:
    return {"topics": [{"topic": topic, "partitions": held} for topic, held in topics]}


def only(*names: str) -> Callable[[Plain], Plain]:
    """Keeps what is said of some topics: others come and go while a test runs."""

    def narrow(reply: Plain) -> Plain:
        for result in reply["results"]:
            result["topics"] = [topic for topic in result["topics"] if topic["name"] in names]
        return reply

    return narrow


@pytest.fixture(scope="module")
def filled(twin: Twin) -> str:
    topic = twin.create_topic(partitions=3)
    with twin.conversation() as talk:
        write(talk, topic, batch(R(), R()), batch())
    return topic


@pytest.mark.every_version("describe_log_dirs")
def test_sizes(talk: Conversation, filled: str, version: int) -> None:
    for partitions in ([0], [0, 1, 2], [2, 0], [0, 0], []):
        talk.ask("describe_log_dirs", version, asked((filled, partitions)))


@pytest.mark.every_version("describe_log_dirs")
def test_everything(twin: Twin, talk: Conversation, filled: str, version: int) -> None:
    empty = twin.create_topic()
    everything = {"topics": None}
    pair = talk.ask("describe_log_dirs", version, everything, prepare=only(filled, empty))
    for side in talk.sides:
        (result,) = pair[side]["results"]
        names = {topic["name"] for topic in result["topics"]}
        assert {filled, empty} <= names
        assert "__cluster_metadata" not in names


@pytest.mark.every_version("describe_log_dirs")
def test_what_is_not_there(twin: Twin, talk: Conversation, filled: str, version: int) -> None:
    unknown = twin.unused_name("unknown")
    for body in (
        asked(),
        asked((filled, [7, -1])),
        asked((unknown, [0])),
        asked(("", [0]), ("a b", [0])),
        asked(("__cluster_metadata", [0])),
        asked((unknown, [0]), (filled, [1, 9]), (filled, [0])),
    ):
        talk.ask("describe_log_dirs", version, body)


@pytest.mark.every_version("describe_log_dirs")
def test_a_deleted_topic_is_gone(twin: Twin, talk: Conversation, version: int) -> None:
    """Kafka keeps its log for a minute, in a directory with another name."""
    topic = twin.create_topic(stem="deleted")
    body = {"topics": [{"name": topic}], "topic_names": [topic], "timeout": 10_000}
    talk.ask("delete_topics", 6, body)
    twin.wait_until_gone(topic)
    twin.wait("describe_log_dirs", 4, asked((topic, [0])), lambda r: not r["results"][0]["topics"])
    talk.ask("describe_log_dirs", version, asked((topic, [0])))
