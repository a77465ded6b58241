"""A static member restarts, and nobody else notices."""

from __future__ import annotations

import pytest

from compat_tests.groups.crew import Member
from compat_tests.groups.group import Group
from compat_tests.groups.kinds import CONFLUENT, CONFLUENT_NEW, JAVA, JAVA_NEW, KAFKA_PYTHON, Kind

LONG_MS = 20_000
STATIC = (CONFLUENT, CONFLUENT_NEW, KAFKA_PYTHON, JAVA, JAVA_NEW)


@pytest.mark.parametrize("kind", STATIC, ids=str)
def test_a_restart_is_no_rebalance(group: Group, kind: Kind) -> None:
    topic = group.create_topic(4)
    other = group.start(kind, "other", [topic], session_ms=LONG_MS)
    before = group.start(kind, "before", [topic], instance="one", session_ms=LONG_MS)
    group.crew.wait(lambda: len(before.partitions or ()) == 2, "half of the partitions")
    group.wait_until_shared([other, before], topic, 4)
    had, rebalances = before.partitions, other.rebalances
    group.crew.stop(before)

    after = group.start(kind, "after", [topic], instance="one", session_ms=LONG_MS)
    group.crew.wait(lambda: after.partitions == had, "the same partitions again")
    group.crew.wait_until_polled(group.send(topic, 4, 5))
    assert other.rebalances == rebalances


@pytest.mark.parametrize("kind", [CONFLUENT, KAFKA_PYTHON], ids=str)
def test_a_crash_and_a_quick_return_are_no_rebalance(group: Group, kind: Kind) -> None:
    """The new process has the name of the dead one, whose session has not ended."""
    topic, other, before = share_with_one_that_dies(group, kind)
    had, rebalances = before.seen[-1], other.rebalances
    after = group.start(kind, "after", [topic], instance="one", session_ms=LONG_MS)
    group.crew.wait(lambda: after.partitions == had, "the same partitions again")
    group.crew.wait_until_polled(group.send(topic, 4, 5))
    assert other.rebalances == rebalances


def test_a_name_is_taken_until_the_session_ends(group: Group) -> None:
    """In the new protocol nobody takes the place of a member that has not left."""
    topic, _, _ = share_with_one_that_dies(group, CONFLUENT_NEW)
    early = group.start(CONFLUENT_NEW, "early", [topic], instance="one")
    group.crew.wait(lambda: early.ended is not None, "a refusal")
    assert "The instance ID is still used by another member" in (early.ended or "")


def share_with_one_that_dies(group: Group, kind: Kind) -> tuple[str, Member, Member]:
    """A topic, a member that has half of it, and a static one that had the other half."""
    topic = group.create_topic(4)
    other = group.start(kind, "other", [topic], session_ms=LONG_MS)
    dies = group.start(kind, "dies", [topic], alone=True, instance="one", session_ms=LONG_MS)
    group.crew.wait(lambda: len(dies.partitions or ()) == 2, "half of the partitions")
    group.wait_until_shared([other, dies], topic, 4)
    group.kill(dies)
    return topic, other, dies
