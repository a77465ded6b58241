"""OffsetCommit and what OffsetFetch then says, in every version of either."""

from __future__ import annotations

import time
from typing import Any

import pytest

from compat_tests.twin.cases import all_cases
from compat_tests.twin.codec import ZERO_UUID, Plain
from compat_tests.twin.conversation import Conversation, Pair, Side
from compat_tests.twin.groups import Group, subscription
from compat_tests.twin.requests import Committed, commit_topics, offset_commit, offset_fetch
from compat_tests.twin.topics import Twin

INT64_MAX = (1 << 63) - 1
METADATA_BYTES_MAX = 4096


def fetch_all(talk: Conversation, group: str) -> Pair:
    return talk.ask("offset_fetch", 9, offset_fetch((group, None)))


@pytest.mark.every_version("offset_commit")
def test_what_is_committed_is_read_again(
    twin: Twin, talk: Conversation, group: Group, version: int
) -> None:
    """Offset, leader epoch and metadata; version 2 has no epoch, others have all three."""
    topic, other = twin.create_topic(partitions=3), twin.create_topic()
    body = offset_commit(
        group.id,
        (topic, {0: Committed(5, "checkpoint", 0), 2: Committed(0, None), 1: Committed(7, "ä€")}),
        (other, {0: Committed(INT64_MAX, "x" * METADATA_BYTES_MAX, 12)}),
    )
    talk.ask("offset_commit", version, body)
    for fetch_version in range(1, 11):
        asked = {topic: [0, 1, 2], other: [0]}
        talk.ask("offset_fetch", fetch_version, offset_fetch((group.id, asked)))
    talk.ask("offset_commit", version, offset_commit(group.id, (topic, {0: 4})))
    fetch_all(talk, group.id)
    group.describe()


@pytest.mark.every_version("offset_commit")
def test_offsets_and_metadata_at_the_edge(
    twin: Twin, talk: Conversation, group: Group, version: int
) -> None:
    topic = twin.create_topic()
    edges = (
        *(Committed(0), Committed(-1), Committed(-2), Committed(-(1 << 63)), Committed(INT64_MAX)),
        *(Committed(1, leader_epoch=-1), Committed(1, leader_epoch=(1 << 31) - 1)),
        *(Committed(1, leader_epoch=-5), Committed(2, None), Committed(2, "")),
        *(Committed(3, "x" * METADATA_BYTES_MAX), Committed(4, "x" * (METADATA_BYTES_MAX + 1))),
        # The limit counts letters of Java, not bytes.
        *(Committed(5, "ä" * METADATA_BYTES_MAX), Committed(6, "ä" * (METADATA_BYTES_MAX + 1))),
        *(Committed(7, "\N{GRINNING FACE}" * 2048), Committed(8, "\N{GRINNING FACE}" * 2049)),
        Committed(9, "x" * 32_767),
    )
    with all_cases() as cases:
        for committed in edges:
            shown = f"{committed.offset} {len(committed.metadata or '')} {committed.leader_epoch}"
            with cases.case(shown):
                talk.ask("offset_commit", version, offset_commit(group.id, (topic, {0: committed})))
                fetch_all(talk, group.id)


@pytest.mark.every_version("offset_commit")
def test_partitions_that_are_not_there(
    twin: Twin, talk: Conversation, group: Group, version: int
) -> None:
    """Each is refused for itself; the others are committed."""
    topic, unknown = twin.create_topic(partitions=2), twin.unused_name("unknown")
    requests: list[list[tuple[str, dict[int, Committed | int]]]] = [
        [(unknown, {0: 1})],
        [(topic, {2: 1})],
        [(topic, {-1: 1, 1: 1})],
        [(unknown, {0: 1, 1: 1}), (topic, {0: 3, 7: 1})],
        [(topic, {0: Committed(8, "x" * 5000), 1: Committed(9)}), (unknown, {0: 1})],
        [("", {0: 1})],
        [("a b", {0: 1}), (topic, {1: 4})],
        [(topic, {})],
        [],
    ]
    with all_cases() as cases:
        for topics in requests:
            with cases.case(str(topics)[:100]):
                talk.ask("offset_commit", version, offset_commit(group.id, *topics))
                fetch_all(talk, group.id)


@pytest.mark.every_version("offset_commit")
def test_the_same_partition_twice(
    twin: Twin, talk: Conversation, group: Group, version: int
) -> None:
    """The last word counts."""
    topic = twin.create_topic(partitions=2)
    talk.ask("offset_commit", version, offset_commit(group.id, (topic, {0: 1}), (topic, {0: 2})))
    fetch_all(talk, group.id)


@pytest.mark.every_version("offset_commit", since=10)
def test_ids_that_are_not_there(twin: Twin, talk: Conversation, group: Group, version: int) -> None:
    topic = twin.create_topic()

    def with_ids(*ids: Any) -> Any:
        def body(side: Side) -> Plain:
            chosen = [one(side) if callable(one) else one for one in ids]
            partitions = commit_topics((topic, {0: 1}))(side)[0]["partitions"]
            topics = [{"topic_id": one, "partitions": partitions} for one in chosen]
            return {"group_id": group.id, "member_id": "", "topics": topics}

        return body

    def right(side: Side) -> Any:
        return side.topic_id(topic)

    def wrong(side: Side) -> Any:
        return side.topic_id("never created")

    for ids in ([ZERO_UUID], [wrong], [wrong, right, ZERO_UUID], [right, right]):
        talk.ask("offset_commit", version, with_ids(*ids))
        fetch_all(talk, group.id)


@pytest.mark.every_version("offset_commit")
def test_bad_groups(twin: Twin, talk: Conversation, group: Group, version: int) -> None:
    """Somebody who says that he is a member must be one."""
    topic = twin.create_topic()
    bad: list[dict[str, Any]] = [
        {"group_id": ""},
        {"generation_id_or_member_epoch": 0},
        {"generation_id_or_member_epoch": 5},
        {"generation_id_or_member_epoch": -2},
        {"member_id": "a stranger"},
        {"member_id": "a stranger", "generation_id_or_member_epoch": 1},
        {"group_instance_id": "an instance"},
        {"group_instance_id": "an instance", "member_id": "a stranger"},
    ]
    with all_cases() as cases:
        for fields in bad:
            if version >= 7 or "group_instance_id" not in fields:
                with cases.case(str(fields)):
                    talk.ask(
                        *("offset_commit", version),
                        offset_commit(group.id, (topic, {0: 1}), **fields),
                    )
                    fetch_all(talk, group.id)
                    group.describe()


@pytest.mark.every_version("offset_commit")
def test_a_simple_group_is_not_empty_for_long(
    twin: Twin, talk: Conversation, group: Group, version: int
) -> None:
    """A group that began with a commit takes the first member as any other does."""
    topic = twin.create_topic()
    talk.ask("offset_commit", version, offset_commit(group.id, (topic, {0: 1})))
    group.describe()
    talk.ask(
        *("offset_commit", version),
        offset_commit(group.id, (topic, {0: 2}), generation_id_or_member_epoch=1),
    )
    (member,) = group.stable("member")
    talk.ask("offset_commit", version, offset_commit(group.id, (topic, {0: 3})))
    member.commit(commit_topics((topic, {0: 4})), version)
    fetch_all(talk, group.id)
    member.leave()
    talk.ask("offset_commit", version, offset_commit(group.id, (topic, {0: 5})))
    member.commit(commit_topics((topic, {0: 6})), version)
    fetch_all(talk, group.id)


WRONG_MEMBERS: list[dict[str, Any]] = [
    {},
    {"member_id": ""},
    {"member_id": "a stranger"},
    {"generation_id_or_member_epoch": 1},
    {"generation_id_or_member_epoch": 3},
    {"generation_id_or_member_epoch": -1},
    {"generation_id_or_member_epoch": -1, "member_id": ""},
    {"generation_id_or_member_epoch": 3, "member_id": "a stranger"},
    {"group_instance_id": "an instance"},
    {"group_id": ""},
]


@pytest.mark.every_version("offset_commit")
@pytest.mark.parametrize("state", ["PreparingRebalance", "CompletingRebalance", "Stable", "Empty"])
def test_members_in_every_state(
    twin: Twin, talk: Conversation, group: Group, version: int, state: str
) -> None:
    topic = twin.create_topic()
    leader, second = group.stable("leader", "second")
    if state in ("PreparingRebalance", "CompletingRebalance"):
        leader.send("join_group", leader.joining())
        group.wait_for_state("PreparingRebalance")
    if state == "CompletingRebalance":
        second.send("join_group", second.joining())
        group.receive_joins(leader, second)
    if state == "Empty":
        leader.leave()
        second.leave()
    with all_cases() as cases:
        for number, fields in enumerate(WRONG_MEMBERS):
            if version >= 7 or "group_instance_id" not in fields:
                with cases.case(str(fields)):
                    second.commit(commit_topics((topic, {0: number})), version, **fields)
    fetch_all(talk, group.id)
    assert group.describe()["group_state"] == state


@pytest.mark.every_version("offset_commit", since=7)
def test_a_fenced_instance(twin: Twin, talk: Conversation, group: Group, version: int) -> None:
    topic = twin.create_topic()
    before, after = (group.member(name, instance="one") for name in ("before", "after"))
    before.enter()
    before.sync({before: b"all"})
    before.commit(commit_topics((topic, {0: 1})), version)
    after.enter()
    after.sync({after: b"all"})
    before.commit(commit_topics((topic, {0: 2})), version)
    after.commit(commit_topics((topic, {0: 3})), version)
    after.commit(commit_topics((topic, {0: 4})), version, group_instance_id="two")
    fetch_all(talk, group.id)


@pytest.mark.every_version("offset_commit", until=4)
def test_a_retention_of_its_own(twin: Twin, talk: Conversation, group: Group, version: int) -> None:
    """Old clients may say for how long their offsets are kept."""
    topic = twin.create_topic()
    for retention_ms in (-1, 0, 1, -5, 86_400_000, INT64_MAX // 1_000_000_000):
        fields = {"retention_time": retention_ms}
        talk.ask("offset_commit", version, offset_commit(group.id, (topic, {0: 1}), **fields))
        fetch_all(talk, group.id)


def test_commits_keep_a_session_alive(twin: Twin, group: Group) -> None:
    topic = twin.create_topic()
    member = group.member()
    member.enter(session_timeout=600)
    member.sync({member: b"all"})
    for offset in range(6):
        time.sleep(0.15)
        member.commit(commit_topics((topic, {0: offset})))
    assert group.describe()["group_state"] == "Stable"


def test_many_partitions_at_once(twin: Twin, talk: Conversation, group: Group) -> None:
    topic = twin.create_topic("wide", partitions=100)
    every = {index: Committed(index, f"metadata {index}", index) for index in range(100)}
    talk.ask("offset_commit", 10, offset_commit(group.id, (topic, every)))
    talk.ask("offset_fetch", 10, offset_fetch((group.id, None)))


def test_more_than_fits_into_a_batch(twin: Twin, talk: Conversation, group: Group) -> None:
    """A commit is one batch, and klamm's batches of groups may be larger."""
    topic, other = twin.create_topic(), twin.create_topic()
    large = [(topic, {0: Committed(number, "x" * 4000)}) for number in range(300)]
    too_large = offset_commit(group.id, (other, {0: 1}), *large)
    talk.ask("offset_commit", 10, too_large, deviation="D-019")
    talk.ask("offset_commit", 10, offset_commit(group.id, (other, {0: 1}), *large[:3]))
    talk.ask("offset_fetch", 10, offset_fetch((group.id, None)))


def test_a_topic_that_is_deleted_takes_its_offsets_along(
    twin: Twin, talk: Conversation, group: Group
) -> None:
    gone, stays = twin.create_topic(), twin.create_topic()
    talk.ask("offset_commit", 9, offset_commit(group.id, (gone, {0: 1}), (stays, {0: 2})))
    talk.ask("delete_topics", 5, {"topic_names": [gone], "timeout": 10_000})
    twin.wait_until_gone(gone)
    asked = offset_fetch((group.id, {gone: [0], stays: [0]}))
    twin.wait(
        *("offset_fetch", 9, asked),
        lambda reply: reply["groups"][0]["topics"][0]["partitions"][0]["committed_offset"] == -1,
    )
    talk.ask("offset_fetch", 9, asked)
    fetch_all(talk, group.id)


def test_a_subscription_does_not_limit_commits(
    twin: Twin, talk: Conversation, group: Group
) -> None:
    topic = twin.create_topic()
    (member,) = group.stable("member", protocols=(("range", subscription("another")),))
    member.commit(commit_topics((topic, {0: 1})))
    fetch_all(talk, group.id)
