"""The brokers that the tests talk to: one Apache Kafka and one klamm for the whole session.

KLAMM_COMPAT_BROKER=kafka turns the `broker` fixture to Apache Kafka, which proves a client test
itself: what fails there says nothing about klamm.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.apache_kafka import ApacheKafka, MissingRequirementError, jars, small_kafka
from compat_tests.clients.kafka_python_sockets import name_sockets
from compat_tests.klamm_process import KlammProcess

name_sockets()

# `kafka_jars` is seen behind every fixture that names it; the others ask for it when they run.
_FIXTURES_WITH_JARS = {"kafka_jars", "broker", "client_named", "own_broker"}


# The settings of the brokers that are compared. Without those of groups Kafka gathers members for
# three seconds and assigns once in a second; the bound allows short sessions.
COMPARED_PROPERTIES = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.min.session.timeout.ms": "500",
    # Other tests may come in between for longer than the ten minutes that Kafka allows.
    "connections.max.idle.ms": "3600000",
}
# Kafka's alone, and hidden: it assigns in the background, so that nobody can say with which of two
# heartbeats an assignment comes.
KAFKA_COMPARED_PROPERTIES = {
    **COMPARED_PROPERTIES,
    "group.consumer.assignor.offload.enable": "false",
}


def pytest_collection_finish(session: pytest.Session) -> None:
    """Download Apache Kafka before the first test, where no test's time limit runs.

    A missing requirement is not raised here: each test that needs Apache Kafka then fails with
    the message, and the others still run.
    """
    if session.config.option.collectonly:
        return
    wanted = (getattr(item, "fixturenames", ()) for item in session.items)
    if any(_FIXTURES_WITH_JARS.intersection(names) for names in wanted):
        try:
            jars()
        except MissingRequirementError as problem:
            session.config.stash[_PROBLEM] = problem


_PROBLEM = pytest.StashKey[MissingRequirementError]()


@pytest.fixture(scope="session")
def kafka_jars(request: pytest.FixtureRequest) -> Path:
    """The folder of Apache Kafka's jars; fails with a clear message when it cannot be there."""
    problem = request.config.stash.get(_PROBLEM, None)
    if problem is not None:
        raise problem
    return jars()


@pytest.fixture(scope="session")
def apache_kafka(
    kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ApacheKafka]:
    """Apache Kafka with its stock settings, except that groups wait for nothing."""
    data_dir = tmp_path_factory.mktemp("apache-kafka") / "data"
    with small_kafka(data_dir, properties=KAFKA_COMPARED_PROPERTIES) as kafka:
        yield kafka
        # Its thousands of partitions take it a minute to close, and nobody looks at them again.
        kafka.kill()


@pytest.fixture(scope="session")
def klamm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KlammProcess]:
    """klamm with its default settings."""
    with KlammProcess(tmp_path_factory.mktemp("klamm") / "data") as process:
        yield process


@pytest.fixture(scope="session")
def broker(request: pytest.FixtureRequest) -> ApacheKafka | KlammProcess:
    """The broker under test: klamm, or Apache Kafka when KLAMM_COMPAT_BROKER=kafka."""
    choice = os.environ.get("KLAMM_COMPAT_BROKER", "klamm")
    if choice not in ("klamm", "kafka"):
        raise ValueError(f"KLAMM_COMPAT_BROKER is {choice!r}: it must be klamm or kafka")
    name = "klamm" if choice == "klamm" else "apache_kafka"
    chosen: ApacheKafka | KlammProcess = request.getfixturevalue(name)
    return chosen
