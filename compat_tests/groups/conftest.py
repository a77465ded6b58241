"""A broker with short sessions for all these tests, and a group for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from compat_tests.apache_kafka import small_kafka
from compat_tests.clients.fixtures import (
    Broker,
    client_named,
    java_process,
    on_apache_kafka,
    own_broker,
    topic_names,
)
from compat_tests.groups.group import Group, Hosts
from compat_tests.klamm_process import KlammProcess

__all__ = ["client_named", "java_process", "own_broker", "topic_names"]

# A member that is killed is missed after a session; nobody waits 45 s for that here.
SHORT_SESSIONS: Mapping[str, str] = {
    "group.consumer.assignment.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
}


@pytest.fixture(scope="session")
def short_sessions(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """The broker under test, with settings under which a killed member is soon missed."""
    data_dir = tmp_path_factory.mktemp("groups") / "data"
    broker: Broker
    if on_apache_kafka():
        request.getfixturevalue("kafka_jars")
        broker = small_kafka(data_dir, properties=SHORT_SESSIONS)
    else:
        broker = KlammProcess(data_dir, properties=SHORT_SESSIONS)
    with broker:
        yield broker


@pytest.fixture(scope="session")
def hosts(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Hosts]:
    """The processes in which members run."""

    def java() -> Any:
        return request.getfixturevalue("java_process")

    made = Hosts(java, tmp_path_factory.mktemp("members") / "stderr.txt")
    yield made
    made.end()


@pytest.fixture
def new_group(hosts: Hosts, topic_names: Iterator[str]) -> Iterator[Callable[[Broker], Group]]:
    """Makes groups; their members are gone when the test ends."""
    made: list[Group] = []

    def make(broker: Broker) -> Group:
        made.append(Group(broker, topic_names, hosts))
        return made[-1]

    yield make
    for one in made:
        one.end()


@pytest.fixture
def group(short_sessions: Broker, new_group: Callable[[Broker], Group]) -> Group:
    """A group that no other test has, on the broker with short sessions."""
    return new_group(short_sessions)
