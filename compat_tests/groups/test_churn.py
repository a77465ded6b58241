"""Twenty members of three groups come and go at random while a producer writes.

KLAMM_CHURN_S is how long; without it two minutes. At the end every record has been handed to some
member of each group, no commit was forgotten, no partition had two owners in a generation, and
every member is stable or gone.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from typing import NamedTuple

import pytest

from compat_tests.clients.fixtures import Broker, OwnBroker
from compat_tests.groups.conftest import SHORT_SESSIONS
from compat_tests.groups.crew import Member
from compat_tests.groups.group import Group
from compat_tests.groups.history import beginnings, owners, violations
from compat_tests.groups.kinds import CONFLUENT, CONFLUENT_NEW, KAFKA_PYTHON, Kind
from compat_tests.groups.stream import read_all, writing
from compat_tests.history.feed import fed

DURATION_S = float(os.environ.get("KLAMM_CHURN_S", "120"))
SEED = int(os.environ.get("KLAMM_CHURN_SEED", "1"))

PARTITIONS = 12
RECORDS_PER_SECOND = 150
SECONDS_BETWEEN_RESTARTS = 0.8
CATCH_UP_S = 60

# The third group has members of both protocols.
GROUPS = (
    (CONFLUENT,) * 4 + (KAFKA_PYTHON,) * 4,
    (CONFLUENT_NEW,) * 8,
    (CONFLUENT,) * 2 + (CONFLUENT_NEW,) * 2,
)


class Place(NamedTuple):
    """A member is there, or will be soon; it is always of the same kind."""

    group: int
    number: int
    kind: Kind


@pytest.mark.timeout(DURATION_S + 240)
def test_members_come_and_go(own_broker: OwnBroker, new_group: Callable[[Broker], Group]) -> None:
    broker = own_broker(SHORT_SESSIONS)
    broker.start()
    groups = [new_group(broker) for _ in GROUPS]
    topic = groups[0].create_topic(PARTITIONS)
    chance = random.Random(SEED)
    members = {
        Place(index, number, kind): start(groups[index], number, kind, topic)
        for index, kinds in enumerate(GROUPS)
        for number, kind in enumerate(kinds)
    }
    with writing(broker.bootstrap, topic, PARTITIONS, per_second=RECORDS_PER_SECOND) as stream:
        restarts = 0
        deadline = time.monotonic() + DURATION_S
        while time.monotonic() < deadline:
            time.sleep(SECONDS_BETWEEN_RESTARTS)
            place = chance.choice(list(members))
            group = groups[place.group]
            if chance.random() < 0.5:
                group.kill(members[place])
            else:
                group.stop_alone(members[place])
            members[place] = start(group, place.number, place.kind, topic)
            restarts += 1
    assert stream.failed == []
    stored = read_all(broker.bootstrap, topic, PARTITIONS)
    assert sorted(one for values in stored.values() for one in values) == sorted(
        stream.acknowledged
    )
    for index, group in enumerate(groups):
        left = [member for place, member in members.items() if place.group == index]
        group.crew.wait_until_polled(stream.acknowledged, CATCH_UP_S)
        group.wait_until_shared(left, topic, PARTITIONS)
        committed = group.wait_until_committed(stored)
        history = group.crew.history()
        assert violations(history, stored, committed) == []
        group.crew.check_alive(left)
        # Each generation has given the partitions out anew.
        owned = fed(owners(history))["I7 two owners"]
        assert owned > restarts / len(GROUPS) + PARTITIONS, (owned, restarts)
        # Partitions have really changed hands.
        moves = sum(1 for _ in beginnings(history))
        assert moves > restarts / len(GROUPS) + PARTITIONS, (moves, restarts)


def start(group: Group, number: int, kind: Kind, topic: str) -> Member:
    return group.start(kind, f"{kind} {number}", [topic], alone=True)
