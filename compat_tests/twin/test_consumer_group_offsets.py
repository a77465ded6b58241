"""Offsets of consumer groups: commits and fetches say the member epoch, and it is checked."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.twin.cases import all_cases
from compat_tests.twin.codec import Plain
from compat_tests.twin.consumer_groups import ConsumerGroup
from compat_tests.twin.conversation import Conversation, Side
from compat_tests.twin.requests import commit_topics, offset_commit, offset_fetch
from compat_tests.twin.test_offset_delete import delete

NOBODY_WITH_AN_EPOCH = {"member_id": None, "member_epoch": 2}


@pytest.mark.every_version("offset_commit")
def test_commits_of_members(
    talk: Conversation, consumer_group: ConsumerGroup, version: int
) -> None:
    """Versions before 9 do not know that an epoch can be stale."""
    topic = consumer_group.create_topic(partitions=2)
    member = consumer_group.member("only")
    member.join([topic])
    member.settle(1)
    epoch = member.epoch
    cases_of_epochs: list[dict[str, Any]] = [
        {},
        {"generation_id_or_member_epoch": epoch - 1},
        {"generation_id_or_member_epoch": epoch + 1},
        {"generation_id_or_member_epoch": 0},
        {"generation_id_or_member_epoch": -1},
        {"generation_id_or_member_epoch": -1, "member_id": ""},
        {"member_id": ""},
        {"member_id": "a stranger"},
        {"group_id": ""},
        {"group_instance_id": "an instance"},
    ]
    with all_cases() as cases:
        for number, fields in enumerate(cases_of_epochs):
            if version >= 7 or "group_instance_id" not in fields:
                with cases.case(str(fields)):
                    member.commit(commit_topics((topic, {0: number})), version, **fields)
                    talk.ask("offset_fetch", 9, offset_fetch((consumer_group.id, None)))
    member.leave()
    talk.ask("offset_commit", version, offset_commit(consumer_group.id, (topic, {1: 7})))
    member.commit(commit_topics((topic, {1: 8})), version)
    talk.ask("offset_fetch", 9, offset_fetch((consumer_group.id, None)))


@pytest.mark.every_version("offset_commit", since=9)
def test_commits_while_partitions_move(
    talk: Conversation, consumer_group: ConsumerGroup, version: int
) -> None:
    topic = consumer_group.create_topic(partitions=2)
    first, second = consumer_group.member("first"), consumer_group.member("second")
    first.join([topic])
    first.own()
    second.join([topic])
    first.beat()
    first.commit(commit_topics((topic, {0: 1, 1: 1})), version)
    second.commit(commit_topics((topic, {0: 2, 1: 2})), version)
    first.own()
    first.commit(commit_topics((topic, {0: 3, 1: 3})), version)
    stale = {"generation_id_or_member_epoch": first.epoch - 1}
    first.commit(commit_topics((topic, {0: 4, 1: 4})), version, **stale)
    talk.ask("offset_fetch", 9, offset_fetch((consumer_group.id, None)))


@pytest.mark.every_version("offset_fetch")
def test_fetches_of_members(
    talk: Conversation, consumer_group: ConsumerGroup, version: int
) -> None:
    topic = consumer_group.create_topic()
    member = consumer_group.member("only")
    member.join([topic])
    member.commit(commit_topics((topic, {0: 5})))
    epoch = member.epoch
    asked: list[dict[str, Any]] = [
        {},
        {"member_id": "only", "member_epoch": epoch},
        {"member_id": "only", "member_epoch": epoch + 1},
        {"member_id": "only", "member_epoch": epoch - 1},
        {"member_id": "only", "member_epoch": -1},
        {"member_id": "a stranger", "member_epoch": epoch},
        {"member_id": "a stranger", "member_epoch": -1},
        {"member_id": "", "member_epoch": epoch},
        NOBODY_WITH_AN_EPOCH,
        {"member_id": None, "member_epoch": -1},
    ]
    with all_cases() as cases:
        for fields in asked if version >= 9 else asked[:1]:
            with cases.case(str(fields)):
                # Kafka does not expect an epoch without a member.
                deviation = "D-017" if fields == NOBODY_WITH_AN_EPOCH else None
                for topics in ({topic: [0]}, None) if version >= 2 else ({topic: [0]},):
                    body = offset_fetch((consumer_group.id, topics), **fields)
                    talk.ask("offset_fetch", version, body, deviation=deviation)


def test_several_groups_with_members(talk: Conversation, consumer_group: ConsumerGroup) -> None:
    """Each group is judged by itself."""
    topic = consumer_group.create_topic()
    member = consumer_group.member("only")
    member.join([topic])

    def body(side: Side) -> Plain:
        topics = [{"name": topic, "topic_id": side.topic_id(topic), "partition_indexes": [0]}]
        right = {"member_id": "only", "member_epoch": member.epoch}
        wrong = {"member_id": "only", "member_epoch": member.epoch + 5}
        groups = [
            {"group_id": consumer_group.id, "topics": topics, **wrong},
            {"group_id": "never heard of", "topics": topics, **right},
            {"group_id": consumer_group.id, "topics": topics, **right},
        ]
        return {"groups": groups}

    for version in (9, 10):
        talk.ask("offset_fetch", version, body)


def test_deleting_offsets_and_the_group(talk: Conversation, consumer_group: ConsumerGroup) -> None:
    subscribed, other = consumer_group.create_topic(), consumer_group.create_topic()
    member = consumer_group.member("only")
    member.join([subscribed])
    member.commit(commit_topics((subscribed, {0: 1}), (other, {0: 2})))
    talk.ask("offset_delete", 0, delete(consumer_group.id, (subscribed, [0]), (other, [0])))
    talk.ask("offset_fetch", 9, offset_fetch((consumer_group.id, None)))
    names = {"groups_names": [consumer_group.id]}
    talk.ask("delete_groups", 2, names)
    member.leave()
    talk.ask("delete_groups", 2, names)
    talk.ask("offset_fetch", 9, offset_fetch((consumer_group.id, None)))
    consumer_group.describe()
    talk.ask("delete_groups", 2, names)
