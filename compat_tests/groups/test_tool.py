"""kafka-consumer-groups and the console consumer: what an administrator uses.

The tool runs inside the Java process of the test run; its classes and output are Kafka's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from compat_tests.apache_kafka import TOOLS
from compat_tests.clients.java_client import JavaProcess
from compat_tests.groups.group import Group
from compat_tests.groups.kinds import CONFLUENT, CONFLUENT_NEW, CONSOLE, CONSOLE_NEW, Kind

Run = Callable[..., str]

both_protocols = pytest.mark.parametrize("kind", [CONFLUENT, CONFLUENT_NEW], ids=str)


@pytest.fixture
def groups(java_process: JavaProcess, group: Group) -> Run:
    """Runs kafka-consumer-groups; its output, with spaces for every stretch of blanks."""

    def run(*arguments: str) -> str:
        reply = java_process.call(
            "tool",
            main=TOOLS["kafka-consumer-groups"],
            arguments=["--bootstrap-server", group.broker.bootstrap, *arguments],
        )
        return re.sub(r" *\n", "\n", re.sub(r"[ \t]+", " ", reply["printed"]))

    return run


@pytest.fixture
def reset(groups: Run, group: Group) -> Run:
    """Runs it to reset offsets of a topic, or of one of its partitions."""

    def run(topic: str, *arguments: str) -> str:
        return groups("--reset-offsets", "--group", group.id, "--topic", topic, *arguments)

    return run


@both_protocols
def test_a_group_with_members(group: Group, groups: Run, reset: Run, kind: Kind) -> None:
    topic = group.create_topic(2)
    sent = group.send(topic, 2, 10)
    first = group.start(kind, "first", [topic])
    second = group.start(kind, "second", [topic])
    group.crew.wait(
        lambda: len(first.partitions or ()) == len(second.partitions or ()) == 1, "one for each"
    )
    group.crew.wait_until_polled(sent)
    group.crew.wait(lambda: {(topic, 0, 10), (topic, 1, 10)} <= group.crew.committed(), "commits")
    ids = {at: _member_id(group, at) for at in (0, 1)}

    assert group.id in groups("--list").split("\n")
    kind_of_group = kind.protocol.capitalize()
    assert f"{group.id} {kind_of_group}\n" in groups("--list", "--type")
    assert f"{group.id} Stable\n" in groups("--list", "--state", "stable")
    assert group.id not in groups("--list", "--state", "empty")

    offsets = groups("--describe", "--group", group.id)
    for at in (0, 1):
        assert f"{group.id} {topic} {at} 10 10 0 {ids[at]} /127.0.0.1 rdkafka" in offsets
    members = groups("--describe", "--members", "--verbose", "--group", group.id)
    for at in (0, 1):
        line = next(line for line in members.split("\n") if ids[at] in line)
        assert "/127.0.0.1 rdkafka 1 " in line
        assert f"{topic}:{at}" in line
    state = groups("--describe", "--state", "--group", group.id)
    assert re.search(
        rf"^{re.escape(group.id)} 127\.0\.0\.1:\d+ \(1\) range Stable .*2 ?$", state, re.M
    )

    refused = groups(
        "--reset-offsets", "--group", group.id, "--topic", topic, "--to-earliest", "--execute"
    )
    assert "can only be reset if the group" in refused
    assert "the current state is Stable" in refused
    assert "is not empty" in groups("--delete", "--group", group.id)
    kept = groups("--delete-offsets", "--group", group.id, "--topic", topic)
    assert "subscribed" in kept


def _member_id(group: Group, partition: int) -> str:
    owner = next(
        member
        for member in group.crew.members
        if partition in {number for _, number in member.partitions or ()}
    )
    return str(group.crew.ask(owner, "member_id"))


@both_protocols
def test_a_group_without_members(group: Group, groups: Run, reset: Run, kind: Kind) -> None:
    topic = group.create_topic(2)
    sent = group.send(topic, 2, 10)
    member = group.start(kind, "member", [topic])
    group.crew.wait_until_polled(sent)
    group.crew.stop(member)
    group.send(topic, 2, 5)

    shown = groups("--describe", "--group", group.id)
    assert f"Consumer group '{group.id}' has no active members." in shown
    for at in (0, 1):
        assert f"{group.id} {topic} {at} 10 15 5 - - -" in shown

    plan = groups(
        "--reset-offsets",
        "--group",
        group.id,
        "--topic",
        f"{topic}:0",
        "--to-offset",
        "3",
        "--dry-run",
    )
    assert f"{group.id} {topic} 0 3\n" in plan
    assert f"{topic} 0 10 15 5 " in groups("--describe", "--group", group.id)
    groups(
        "--reset-offsets",
        "--group",
        group.id,
        "--topic",
        f"{topic}:0",
        "--to-offset",
        "3",
        "--execute",
    )
    groups(
        "--reset-offsets",
        "--group",
        group.id,
        "--topic",
        f"{topic}:1",
        "--shift-by",
        "-4",
        "--execute",
    )
    shown = groups("--describe", "--group", group.id)
    assert f"{topic} 0 3 15 12 " in shown
    assert f"{topic} 1 6 15 9 " in shown

    group.crew.polled.clear()
    again = group.start(kind, "again", [topic])
    group.crew.wait(lambda: len(group.crew.polled) == 12 + 9, "what was read before")
    group.crew.stop(again)
    first = {one.partition: one.offset for one in reversed(group.crew.polled)}
    assert first == {0: 3, 1: 6}

    removed = groups("--delete-offsets", "--group", group.id, "--topic", f"{topic}:0")
    assert "Request succeeded for deleting offsets" in removed
    shown = groups("--describe", "--group", group.id)
    assert f"{topic} 1 15 15 0 " in shown
    assert f"{topic} 0 " not in shown

    deleted = groups("--delete", "--group", group.id)
    assert f"Deletion of requested consumer groups ('{group.id}') was successful." in deleted
    assert group.id not in groups("--list")
    unknown = groups("--describe", "--group", group.id)
    assert f"Group {group.id} not found." in unknown
    assert "could not be deleted" in groups("--delete", "--group", group.id)


def test_offsets_of_a_group_that_never_had_members(group: Group, groups: Run, reset: Run) -> None:
    """Resetting makes the group."""
    topic = group.create_topic(1)
    group.send(topic, 1, 10)
    reset(topic, "--to-latest", "--execute")
    shown = groups("--describe", "--offsets", "--group", group.id)
    assert f"{group.id} {topic} 0 10 10 0 - - -" in shown
    exported = groups(
        "--reset-offsets",
        "--group",
        group.id,
        "--topic",
        topic,
        "--to-current",
        "--export",
        "--dry-run",
    )
    assert f'"{topic}",0,10' in exported


def test_console_consumers_of_both_protocols_share(group: Group, groups: Run) -> None:
    """One reads alone, another joins it; the first is killed and the other goes on and leaves."""
    topic = group.create_topic(4)
    options: dict[str, Any] = {"auto_commit_ms": 100, "session_ms": 3_000}
    new = group.start(CONSOLE_NEW, "new", [topic], **options)
    group.crew.wait_until_polled(group.send(topic, 4, 5))
    old = group.start(CONSOLE, "old", [topic], **options)
    while readers_of_next_records(group, topic) != {new.address, old.address}:
        group.crew.check_alive([new, old])
        group.crew.wait_briefly()
    group.kill(new)
    group.crew.wait_until_polled(group.send(topic, 4, 5))
    assert readers_of_next_records(group, topic) == {old.address}
    group.crew.stop(old)
    shown = groups("--describe", "--group", group.id)
    assert f"Consumer group '{group.id}' has no active members." in shown
    end = len(group.sent) // 4
    for at in range(4):
        assert f"{group.id} {topic} {at} {end} {end} 0 - - -" in shown


def readers_of_next_records(group: Group, topic: str) -> set[str]:
    """Who reads a record of each of four partitions."""
    group.crew.polled.clear()
    group.crew.wait_until_polled(group.send(topic, 4, 1))
    return {one.member for one in group.crew.polled}
