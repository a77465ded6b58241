"""Commits: sync, async, by themselves, with metadata; and where reading begins without one."""

from __future__ import annotations

import pytest

from compat_tests.groups.group import Group
from compat_tests.groups.kinds import CONFLUENT, CONFLUENT_NEW, JAVA, JAVA_NEW, KAFKA_PYTHON, Kind

COMMITTING = (CONFLUENT, CONFLUENT_NEW, KAFKA_PYTHON, JAVA, JAVA_NEW)
every_kind = pytest.mark.parametrize("kind", COMMITTING, ids=str)

NO_OFFSET = {
    "confluent-kafka": "_AUTO_OFFSET_RESET",
    "kafka-python": "NoOffsetForPartition",
    "java": "NoOffsetForPartition",
}


@every_kind
@pytest.mark.parametrize("how", ["sync", "async"])
def test_what_was_committed_is_told(group: Group, kind: Kind, how: str) -> None:
    topic = group.create_topic(2)
    sent = group.send(topic, 2, 30)
    member = group.start(kind, "member", [topic], commit=how)
    group.crew.wait_until_polled(sent)
    wanted = {(topic, 0, 30), (topic, 1, 30)}

    group.crew.wait(lambda: wanted <= group.crew.committed(), "the last commits")
    for _, partition, offset in wanted:
        assert group.crew.ask(member, "committed", topic, partition)[0] == offset
    assert not [one for one in group.crew.commits if one.outcome == "refused"]


@every_kind
def test_metadata_of_a_commit(group: Group, kind: Kind) -> None:
    topic = group.create_topic(2)
    group.send(topic, 2, 5)
    member = group.start(kind, "member", [topic], commit=None)
    group.wait_until_shared([member], topic, 2)
    assert group.crew.ask(member, "committed", topic, 0) is None
    group.crew.ask(member, "commit", topic, 0, 3, "as far as page 7 · ä")
    assert list(group.crew.ask(member, "committed", topic, 0)) == [3, "as far as page 7 · ä"]
    assert group.crew.ask(member, "committed", topic, 1) is None


@every_kind
def test_automatic_commits(group: Group, kind: Kind) -> None:
    topic = group.create_topic(1)
    sent = group.send(topic, 1, 20)
    first = group.start(kind, "first", [topic], commit=None, auto_commit_ms=100)
    group.crew.wait_until_polled(sent)
    group.crew.stop(first)
    group.crew.polled.clear()
    later = group.send(topic, 1, 5)
    second = group.start(kind, "second", [topic], commit=None, auto_commit_ms=100)
    group.crew.wait_until_polled(later)
    assert group.crew.values() == set(later)
    group.crew.stop(second)


@every_kind
def test_without_a_commit_reading_begins_at_the_end(group: Group, kind: Kind) -> None:
    topic = group.create_topic(1)
    group.send(topic, 1, 20)
    member = group.start(kind, "member", [topic], reset="latest")
    group.wait_until_shared([member], topic, 1)
    # The position is looked up after the assignment: whatever is sent from then on must come.
    later: set[str] = set()
    while not later & group.crew.values():
        later |= set(group.send(topic, 1, 1))
        group.crew.wait_briefly()
    assert group.crew.values() <= later


@every_kind
def test_without_a_commit_and_without_a_rule_it_is_an_error(group: Group, kind: Kind) -> None:
    topic = group.create_topic(1)
    reset = "error" if kind.library == "confluent-kafka" else "none"
    member = group.start(kind, "member", [topic], reset=reset)
    group.crew.wait(lambda: member.ended is not None, "an error")
    assert NO_OFFSET[kind.library] in (member.ended or "")
