"""DeleteGroups: only of groups without members, and then nothing is left of them."""

from __future__ import annotations

import pytest

from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.groups import Group
from compat_tests.twin.requests import offset_commit, offset_fetch
from compat_tests.twin.topics import Twin


def delete(*groups: str) -> Plain:
    return {"groups_names": list(groups)}


@pytest.mark.every_version("delete_groups")
def test_an_empty_group(twin: Twin, talk: Conversation, group: Group, version: int) -> None:
    topic = twin.create_topic()
    (member,) = group.stable("member")
    talk.ask("delete_groups", version, delete(group.id))
    member.leave()
    talk.ask("offset_commit", 9, offset_commit(group.id, (topic, {0: 1})))
    talk.ask("delete_groups", version, delete(group.id))
    talk.ask("offset_fetch", 9, offset_fetch((group.id, None)))
    group.describe()
    talk.ask("delete_groups", version, delete(group.id))
    member.heartbeat()
    member.join()
    group.stable("another")


@pytest.mark.every_version("delete_groups")
def test_a_group_of_offsets_alone(
    twin: Twin, talk: Conversation, group: Group, version: int
) -> None:
    topic = twin.create_topic(partitions=3)
    talk.ask("offset_commit", 9, offset_commit(group.id, (topic, {0: 1, 1: 2, 2: 3})))
    talk.ask("delete_groups", version, delete(group.id))
    talk.ask("offset_fetch", 9, offset_fetch((group.id, None)))
    group.describe()


@pytest.mark.every_version("delete_groups")
def test_groups_that_are_not_there(twin: Twin, group: Group, version: int) -> None:
    for names in ([], [""], ["never heard of"], ["never heard of", "never heard of"]):
        with twin.conversation() as talk:
            talk.ask("delete_groups", version, delete(*names), patience_s=2)


@pytest.mark.every_version("delete_groups")
def test_several_groups(twin: Twin, talk: Conversation, group: Group, version: int) -> None:
    topic = twin.create_topic()
    empty = [twin.unused_name("group") for _ in range(3)]
    for name in empty:
        talk.ask("offset_commit", 9, offset_commit(name, (topic, {0: 1})))
    group.stable("member")
    talk.ask("delete_groups", version, delete(group.id, *empty, "", "never heard of", empty[0]))
    for name in empty:
        talk.ask("offset_fetch", 9, offset_fetch((name, None)))
    assert group.describe()["group_state"] == "Stable"


@pytest.mark.every_version("delete_groups")
def test_groups_that_are_about_to_have_members(
    talk: Conversation, group: Group, version: int
) -> None:
    pending = group.member("pending")
    pending.join()
    talk.ask("delete_groups", version, delete(group.id))
    pending.join()
    talk.ask("delete_groups", version, delete(group.id))
    group.gather(group.member("second"))
    talk.ask("delete_groups", version, delete(group.id))
