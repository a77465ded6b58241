"""Members of different libraries and protocols in one group."""

from __future__ import annotations

import pytest

from compat_tests.groups.group import Group
from compat_tests.groups.kinds import (
    CONFLUENT,
    CONFLUENT_NEW,
    JAVA,
    JAVA_NEW,
    KAFKA_PYTHON,
    KCAT,
    Kind,
)


def test_all_classic_clients_share(group: Group) -> None:
    """They have the range assignor in common, and whoever leads assigns for all."""
    topic = group.create_topic(8)
    kinds = (CONFLUENT, KAFKA_PYTHON, JAVA, KCAT)
    members = [group.start(kind, kind.library, [topic]) for kind in kinds]
    group.wait_until_each_has(members, 2)
    group.wait_until_shared(members, topic, 8)
    group.crew.wait_until_polled(group.send(topic, 8, 5))
    while len(members) > 1:
        group.crew.stop(members.pop(0))
        group.wait_until_shared(members, topic, 8)
    group.crew.wait_until_polled(group.send(topic, 8, 5))


@pytest.mark.parametrize(
    ("old", "new"),
    [(CONFLUENT, CONFLUENT_NEW), (JAVA, JAVA_NEW), (KAFKA_PYTHON, JAVA_NEW)],
    ids=lambda kind: str(kind),
)
def test_a_group_moves_to_the_new_protocol_and_back(group: Group, old: Kind, new: Kind) -> None:
    """Members are replaced one by one, as in an upgrade of the application."""
    topic = group.create_topic(4)
    first = group.start(old, "old 1", [topic])
    group.wait_until_shared([first], topic, 4)
    second = group.start(new, "new 1", [topic])
    group.crew.wait(lambda: len(second.partitions or ()) == 2, "half for the new one")
    group.wait_until_shared([first, second], topic, 4)
    group.crew.wait_until_polled(group.send(topic, 4, 5))

    group.crew.stop(first)
    group.wait_until_shared([second], topic, 4)
    third = group.start(old, "old 2", [topic])
    group.crew.wait(lambda: len(third.partitions or ()) == 2, "half for the old one")
    group.wait_until_shared([second, third], topic, 4)
    group.crew.stop(second)
    group.wait_until_shared([third], topic, 4)
    group.crew.wait_until_polled(group.send(topic, 4, 5))
