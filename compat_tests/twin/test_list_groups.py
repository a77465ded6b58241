"""ListGroups: all, or those in some states, or of some types."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.twin.cases import all_cases
from compat_tests.twin.codec import Plain
from compat_tests.twin.consumer_groups import ConsumerGroup
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.groups import Group
from compat_tests.twin.requests import offset_commit
from compat_tests.twin.topics import Twin

STATES = [
    *("Stable", "stable", "STABLE", "Empty", "Dead", "PreparingRebalance", "preparingrebalance"),
    *("CompletingRebalance", "Assigning", "Reconciling", "assigning", "NotReady", "Unknown"),
    *("", " ", " stable ", "never heard of"),
]
TYPES = [
    *("classic", "Classic", " classic ", "CONSUMER", "consumer", "share", "streams", "unknown"),
    *("", "bogus"),
]


@pytest.fixture(scope="module")
def names(coordinated: Twin) -> Iterator[set[str]]:
    """The ids of groups in all states that last."""
    groups = [Group(coordinated) for _ in range(5)]
    stable, empty, preparing, completing, offsets = groups
    stable.stable("member")
    empty.stable("member")[0].leave()
    preparing.stable("leader")
    preparing.gather(preparing.member("follower"))
    completing.member().enter(rebalance_timeout=600_000, session_timeout=600_000)
    connect = Group(coordinated)
    connect.member().enter(protocol_type="connect", protocols=(("default", b""),))
    topic = coordinated.create_topic()
    commit = offset_commit(offsets.id, (topic, {0: 1}))
    coordinated.control.ask("offset_commit", 9, commit)
    modern, left = ConsumerGroup(coordinated), ConsumerGroup(coordinated)
    for other in (modern, left):
        other.wait_until_assignable(topic, 1)
    modern.member("a").join([topic])
    once = left.member("b")
    once.join([topic])
    once.leave()
    yield {one.id for one in (*groups, connect)} | {modern.id, left.id}
    for one in (*groups, connect):
        one.close()
    for other in (modern, left):
        other.close()


def ask(
    talk: Conversation, names: set[str], version: int, states: list[str], types: list[str]
) -> None:
    def of_this_test(reply: Plain) -> Plain:
        return {**reply, "groups": [one for one in reply["groups"] if one["group_id"] in names]}

    body = {"states_filter": states, "types_filter": types}
    talk.ask("list_groups", version, body, prepare=of_this_test)


@pytest.mark.every_version("list_groups")
def test_all_groups(talk: Conversation, names: set[str], version: int) -> None:
    ask(talk, names, version, [], [])


@pytest.mark.every_version("list_groups", since=4)
def test_states(talk: Conversation, names: set[str], version: int) -> None:
    with all_cases() as cases:
        for states in [*([one] for one in STATES), ["Stable", "Empty"], ["Empty", "bogus"]]:
            with cases.case(str(states)):
                ask(talk, names, version, states, [])


@pytest.mark.every_version("list_groups", since=5)
def test_types(talk: Conversation, names: set[str], version: int) -> None:
    with all_cases() as cases:
        for types in [*([one] for one in TYPES), ["classic", "consumer"], ["classic", "bogus"]]:
            with cases.case(str(types)):
                ask(talk, names, version, [], types)


@pytest.mark.every_version("list_groups", since=5)
def test_states_and_types(talk: Conversation, names: set[str], version: int) -> None:
    with all_cases() as cases:
        for state in STATES:
            for group_type in ("classic", "consumer"):
                with cases.case(f"{state} {group_type}"):
                    ask(talk, names, version, [state], [group_type])
