"""ConsumerGroupDescribe: consumer groups in every state, and what is no consumer group."""

from __future__ import annotations

import pytest

from compat_tests.twin.codec import Plain
from compat_tests.twin.consumer_groups import ConsumerGroup
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.groups import Group
from compat_tests.twin.requests import offset_commit
from compat_tests.twin.topics import Twin


def describe(*groups: str, operations: bool = False) -> Plain:
    return {"group_ids": list(groups), "include_authorized_operations": operations}


@pytest.mark.every_version("consumer_group_describe")
def test_every_state(talk: Conversation, consumer_group: ConsumerGroup, version: int) -> None:
    def look() -> str:
        body = describe(consumer_group.id)
        pair = talk.ask("consumer_group_describe", version, body)
        return str(pair.kafka["groups"][0]["group_state"])

    topic = consumer_group.create_topic(partitions=3)
    seen = [look()]
    first, second = consumer_group.member("first"), consumer_group.member("second", instance="two")
    first.join([topic], rack_id="rack 1")
    seen.append(look())
    second.join([topic])
    seen.append(look())
    first.settle(2, second)
    seen.append(look())
    second.leave(epoch=-2)
    seen.append(look())
    second.leave()
    seen.append(look())
    first.settle(1)
    first.leave()
    seen.append(look())
    assert seen == ["", "Stable", "Reconciling", "Stable", "Reconciling", "Assigning", "Empty"]


@pytest.mark.every_version("consumer_group_describe")
def test_groups_that_are_not_there(
    talk: Conversation, consumer_group: ConsumerGroup, version: int
) -> None:
    for names in ([], [""], ["never heard of"], [consumer_group.id, consumer_group.id, ""]):
        for operations in (False, True):
            body = describe(*names, operations=operations)
            talk.ask("consumer_group_describe", version, body)


@pytest.mark.every_version("consumer_group_describe")
def test_several_groups(
    talk: Conversation, consumer_group: ConsumerGroup, group: Group, version: int
) -> None:
    """A classic group is none of them; authorized operations come with those that are."""
    topic = consumer_group.create_topic()
    consumer_group.member("only").join([topic])
    group.stable("classic")
    names = (consumer_group.id, group.id, "never heard of", consumer_group.id)
    for operations in (False, True):
        body = describe(*names, operations=operations)
        talk.ask("consumer_group_describe", version, body)


@pytest.mark.every_version("describe_groups")
def test_described_as_if_it_were_classic(
    talk: Conversation, consumer_group: ConsumerGroup, version: int
) -> None:
    topic = consumer_group.create_topic()
    consumer_group.member("only").join([topic])
    talk.ask("describe_groups", version, {"groups": [consumer_group.id]})


@pytest.mark.every_version("consumer_group_describe")
def test_a_group_of_offsets_alone(
    twin: Twin, talk: Conversation, group: Group, version: int
) -> None:
    topic = twin.create_topic()
    talk.ask("offset_commit", 9, offset_commit(group.id, (topic, {0: 1})))
    talk.ask("consumer_group_describe", version, describe(group.id))


def test_a_deleted_topic_is_no_longer_told(
    twin: Twin, talk: Conversation, consumer_group: ConsumerGroup
) -> None:
    stays, gone = consumer_group.create_topic(), consumer_group.create_topic()
    member = consumer_group.member("only")
    member.join([stays, gone])
    member.settle(1)
    talk.ask("delete_topics", 5, {"topic_names": [gone], "timeout": 10_000})
    twin.wait_until_gone(gone)
    member.beat_until({stays: [0]})
    for _ in range(2):
        member.own(compare=False)
    consumer_group.describe()
