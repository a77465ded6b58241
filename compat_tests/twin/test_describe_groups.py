"""DescribeGroups: classic groups in every state, and what is no classic group."""

from __future__ import annotations

import pytest

from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.groups import Group, subscription
from compat_tests.twin.requests import offset_commit
from compat_tests.twin.topics import Twin


def describe(*groups: str, operations: bool = False) -> Plain:
    return {"groups": list(groups), "include_authorized_operations": operations}


@pytest.mark.every_version("describe_groups")
def test_every_state(talk: Conversation, group: Group, version: int) -> None:
    def look() -> str:
        pair = talk.ask("describe_groups", version, describe(group.id))
        return str(pair.kafka["groups"][0]["group_state"])

    seen = [look()]
    leader, follower = group.member("leader"), group.member("follower")
    leader.enter()
    seen.append(look())
    group.gather(follower)
    seen.append(look())
    group.rejoin(leader, follower)
    group.sync(leader, follower)
    seen.append(look())
    follower.leave()
    leader.leave()
    seen.append(look())
    assert seen == ["Dead", "CompletingRebalance", "PreparingRebalance", "Stable", "Empty"]


@pytest.mark.every_version("describe_groups")
def test_a_static_member(talk: Conversation, group: Group, version: int) -> None:
    member = group.member(instance="one")
    member.enter()
    talk.ask("describe_groups", version, describe(group.id))
    member.sync({member: b"all"})
    talk.ask("describe_groups", version, describe(group.id))


@pytest.mark.every_version("describe_groups")
def test_groups_that_are_not_there(talk: Conversation, group: Group, version: int) -> None:
    for names in ([], [""], ["never heard of"], [group.id, group.id, "", "never heard of"]):
        talk.ask("describe_groups", version, describe(*names))


@pytest.mark.every_version("describe_groups")
def test_several_groups(twin: Twin, talk: Conversation, group: Group, version: int) -> None:
    second = Group(twin)
    group.stable("a", "b")
    second.stable("c")
    names = (second.id, "never heard of", group.id, second.id)
    talk.ask("describe_groups", version, describe(*names))
    second.close()


@pytest.mark.every_version("describe_groups", since=3)
def test_authorized_operations(talk: Conversation, group: Group, version: int) -> None:
    group.stable("member")
    for names in ([group.id], ["never heard of", group.id], [""]):
        talk.ask("describe_groups", version, describe(*names, operations=True))


@pytest.mark.every_version("describe_groups")
def test_a_group_of_offsets_alone(
    twin: Twin, talk: Conversation, group: Group, version: int
) -> None:
    topic = twin.create_topic()
    talk.ask("offset_commit", 9, offset_commit(group.id, (topic, {0: 1})))
    talk.ask("describe_groups", version, describe(group.id))


@pytest.mark.every_version("describe_groups")
def test_other_protocols(talk: Conversation, group: Group, version: int) -> None:
    """Of several protocols only the metadata of the chosen one is told."""
    member = group.member()
    member.enter(protocol_type="connect", protocols=(("one", b"1"), ("two", b"2")))
    member.sync({member: bytes(range(256))}, protocol_type="connect")
    talk.ask("describe_groups", version, describe(group.id))


@pytest.mark.every_version("describe_groups")
def test_an_id_that_was_not_used(talk: Conversation, group: Group, version: int) -> None:
    group.stable("member")
    group.member("pending").join(protocols=(("range", subscription("a")),))
    talk.ask("describe_groups", version, describe(group.id))
