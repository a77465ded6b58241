"""The broker is killed or stopped under running groups: members go on, no commit is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.clients.fixtures import Broker, OwnBroker
from compat_tests.groups.conftest import SHORT_SESSIONS
from compat_tests.groups.group import Group
from compat_tests.groups.history import owners, violations
from compat_tests.groups.kinds import CONFLUENT, CONFLUENT_NEW, JAVA, JAVA_NEW, KAFKA_PYTHON
from compat_tests.groups.stream import committed_offsets, read_all, writing
from compat_tests.history.feed import fed

PARTITIONS = 6
RECORDS_PER_ROUND = 100
CATCH_UP_S = 60

GROUPS = (
    (CONFLUENT, CONFLUENT, KAFKA_PYTHON),
    (CONFLUENT_NEW, CONFLUENT_NEW, JAVA_NEW),
    (JAVA, CONFLUENT),
)


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("how", "rounds"), [("killed", 3), ("stopped", 1)])
def test_members_go_on_and_commits_stay(
    own_broker: OwnBroker, new_group: Callable[[Broker], Group], how: str, rounds: int
) -> None:
    broker = own_broker(SHORT_SESSIONS)
    broker.start()
    groups = [new_group(broker) for _ in GROUPS]
    topic = groups[0].create_topic(PARTITIONS)
    members = [
        [
            group.start(kind, f"{kind} {number}", [topic], pause_s=0.01)
            for number, kind in enumerate(kinds)
        ]
        for group, kinds in zip(groups, GROUPS, strict=True)
    ]
    with writing(broker.bootstrap, topic, PARTITIONS, per_second=200) as stream:
        for group, crew in zip(groups, members, strict=True):
            group.wait_until_shared(crew, topic, PARTITIONS)
        for _ in range(rounds):
            for group in groups:
                group.wait_for_more_commits(RECORDS_PER_ROUND)
            if how == "killed":
                broker.kill()
            else:
                broker.stop()
            broker.start()
        for group in groups:
            group.wait_for_more_commits(RECORDS_PER_ROUND)
    stored = read_all(broker.bootstrap, topic, PARTITIONS)
    for group, crew in zip(groups, members, strict=True):
        group.crew.wait_until_polled(stream.acknowledged, CATCH_UP_S)
        group.wait_until_shared(crew, topic, PARTITIONS)
        group.crew.stop(*crew)
        committed = committed_offsets(broker.bootstrap, group.id, list(stored))
        history = group.crew.history()
        assert violations(history, stored, committed) == []
        assert fed(owners(history))["I7 two owners"] >= PARTITIONS
