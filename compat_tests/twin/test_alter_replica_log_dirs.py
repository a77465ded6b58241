"""AlterReplicaLogDirs: both brokers have one directory, so nothing can move."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation, Side
from compat_tests.twin.topics import Twin

Move = tuple[str, list[tuple[str, list[int]]]]
Alter = Callable[..., Callable[[Side], Plain]]

HERE, ELSEWHERE = "here", "/no/such/directory"


@pytest.fixture(scope="module")
def directories(twin: Twin) -> dict[str, str]:
    """The path of each broker's directory, by the name of its side."""
    pair = twin.control.ask("describe_log_dirs", 4, {"topics": []}, compare=False)
    return {side.name: pair[side]["results"][0]["log_dir"] for side in twin.sides}


@pytest.fixture
def alter(directories: dict[str, str]) -> Alter:
    """A request of (path, topics) pairs; the path `here` is that of each broker's own."""

    def make(*dirs: Move) -> Callable[[Side], Plain]:
        def body(side: Side) -> Plain:
            return {
                "dirs": [
                    {
                        "path": path.replace(HERE, directories[side.name]),
                        "topics": [{"name": name, "partitions": held} for name, held in topics],
                    }
                    for path, topics in dirs
                ]
            }

        return body

    return make


@pytest.mark.every_version("alter_replica_log_dirs")
def test_directories(twin: Twin, talk: Conversation, alter: Alter, version: int) -> None:
    topic = twin.create_topic(partitions=2)
    for path in (HERE, f"{HERE}/", f"{HERE}/.", ELSEWHERE, "relative", "", "/", "."):
        body = alter((path, [(topic, [0, 1])]))
        talk.ask("alter_replica_log_dirs", version, body)
    talk.ask("describe_log_dirs", 4, {"topics": [{"topic": topic, "partitions": [0, 1]}]})


@pytest.mark.every_version("alter_replica_log_dirs")
def test_what_is_not_there(twin: Twin, talk: Conversation, alter: Alter, version: int) -> None:
    topic = twin.create_topic(partitions=2)
    unknown = twin.unused_name("unknown")
    for path in (HERE, ELSEWHERE):
        for topics in (
            [(topic, [7, -1, 0])],
            [(unknown, [0])],
            [("", [0]), ("a b", [0]), ("..", [0])],
            [("__cluster_metadata", [0])],
            [("x" * 213, [0, 10])],
            [("x" * 214, [0, -1])],
            [("x" * 250, [0])],
        ):
            talk.ask("alter_replica_log_dirs", version, alter((path, topics)))


@pytest.mark.every_version("alter_replica_log_dirs")
def test_several(twin: Twin, talk: Conversation, alter: Alter, version: int) -> None:
    topic, other = twin.create_topic(partitions=2), twin.create_topic(partitions=2)
    asked: list[list[Move]] = [
        [],
        [(HERE, [])],
        [(HERE, [(topic, [])])],
        [(HERE, [(topic, [0, 0])])],
        [(HERE, [(topic, [0]), (other, [0]), (topic, [1])])],
        [(HERE, [(topic, [0])]), (ELSEWHERE, [(topic, [0])])],
        [(ELSEWHERE, [(topic, [0, 1])]), (HERE, [(topic, [0])])],
        [(HERE, [(topic, [0])]), (HERE, [(other, [1])])],
    ]
    for dirs in asked:
        talk.ask("alter_replica_log_dirs", version, alter(*dirs))
