"""FindCoordinator: of groups and transactions, one or many at once, and of other kinds."""

from __future__ import annotations

import pytest

from compat_tests.twin.cases import all_cases
from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.topics import Twin

GROUP, TRANSACTION, SHARE = 0, 1, 2

pytestmark = pytest.mark.usefixtures("coordinated")


def find(*keys: str, kind: int = GROUP) -> Plain:
    """In the form of every version: one key, from 4 on a list of them."""
    return {"key": keys[0] if keys else "", "key_type": kind, "coordinator_keys": list(keys)}


@pytest.mark.every_version("find_coordinator")
def test_one_group(talk: Conversation, version: int) -> None:
    for name in ("group", "a b/ä", "x" * 10_000):
        talk.ask("find_coordinator", version, find(name))


@pytest.mark.every_version("find_coordinator", since=4)
def test_several_groups(talk: Conversation, version: int) -> None:
    """One answer for each, in the order of the question."""
    for names in ([], ["a", "b", "c"], ["a", "a"], ["a", "", "b"], [str(one) for one in range(99)]):
        talk.ask("find_coordinator", version, find(*names))


@pytest.mark.every_version("find_coordinator")
def test_an_empty_name(talk: Conversation, version: int) -> None:
    talk.ask("find_coordinator", version, find(""))


@pytest.mark.every_version("find_coordinator", since=1)
@pytest.mark.parametrize("kind", [3, 4, 127, -1, -128])
def test_kinds_that_are_not_there(twin: Twin, version: int, kind: int) -> None:
    with all_cases() as cases:
        for names in (["a"], ["a", "b"], [""]):
            with cases.case(str(names)), twin.conversation() as talk:
                talk.ask("find_coordinator", version, find(*names, kind=kind), patience_s=2)


@pytest.mark.every_version("find_coordinator", since=1)
def test_shares(twin: Twin, version: int) -> None:
    """Keys of share groups have a form of their own: group, topic id, partition.

    What could be one is in test_group_settings.py: Kafka makes a topic for it.
    """
    with all_cases() as cases:
        for name in ("group", "", "a:b:c", "g:AAAAAAAAAAAAAAAAAAAAAA:x"):
            with cases.case(name), twin.conversation() as talk:
                talk.ask("find_coordinator", version, find(name, kind=SHARE), patience_s=2)


@pytest.mark.every_version("find_coordinator", since=1)
def test_transactional_ids(transactional: Twin, talk: Conversation, version: int) -> None:
    for name in ("id", "", "a b/ä", "x" * 10_000):
        talk.ask("find_coordinator", version, find(name, kind=TRANSACTION))
    if version >= 4:
        talk.ask("find_coordinator", version, find("a", "a", "", "b", kind=TRANSACTION))


def test_the_topic_of_transactions(transactional: Twin, talk: Conversation) -> None:
    """It is internal, has 50 partitions, and Kafka's settings."""
    body = {"topics": [{"name": "__transaction_state"}], "allow_auto_topic_creation": False}
    talk.ask("metadata", 12, body)
    resource = {"resource_type": 2, "resource_name": "__transaction_state"}
    names = ["cleanup.policy", "compression.type", "segment.bytes", "min.insync.replicas"]
    names.append("unclean.leader.election.enable")
    body = {"resources": [{**resource, "configuration_keys": names}]}
    talk.ask("describe_configs", 4, body)


def test_the_topic_of_offsets(talk: Conversation) -> None:
    """It is internal and has 50 partitions."""
    body = {"topics": [{"name": "__consumer_offsets"}], "allow_auto_topic_creation": False}
    talk.ask("metadata", 12, body)
