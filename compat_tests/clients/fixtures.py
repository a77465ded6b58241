"""Fixtures for tests with real clients: the clients, topics with unique names, own brokers.

They are plain functions here and become fixtures of a folder by being imported in its conftest.py.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from compat_tests.apache_kafka import ApacheKafka, small_kafka
from compat_tests.clients import raw
from compat_tests.clients.aio import AioKafka
from compat_tests.clients.java_client import JavaClient, JavaProcess
from compat_tests.clients.kafka_python import KafkaPython
from compat_tests.clients.kcat import Kcat
from compat_tests.clients.librdkafka import ConfluentKafka
from compat_tests.clients.model import Client
from compat_tests.klamm_process import KlammProcess

__all__ = [
    "CLIENT_NAMES",
    "Broker",
    "ClientNamed",
    "MakeTopic",
    "OwnBroker",
    "client",
    "client_named",
    "create_topic",
    "java_process",
    "make_topic",
    "on_apache_kafka",
    "own_broker",
    "topic_names",
    "unique_names",
]

# Many tests choose timestamps of years ago, and retention by time goes by them: a broker that has
# run for some minutes would delete such records under the test.
KEPT_FOR_EVER = {"retention.ms": "-1"}

CLIENT_NAMES = ("confluent-kafka", "kafka-python", "aiokafka", "kcat", "java")

Broker = ApacheKafka | KlammProcess
ClientNamed = Callable[[str], Client]


class MakeTopic(Protocol):
    """Creates a topic with a name of its own and returns the name."""

    def __call__(self, partitions: int = 1, config: Mapping[str, str] | None = None) -> str: ...


class OwnBroker(Protocol):
    """Makes a broker for one test alone, not yet started."""

    def __call__(self, properties: Mapping[str, str] | None = None) -> Broker: ...


def on_apache_kafka() -> bool:
    """Whether the tests run against Apache Kafka, to prove the tests themselves."""
    return os.environ.get("KLAMM_COMPAT_BROKER", "klamm") == "kafka"


@pytest.fixture(scope="session")
def java_process(kafka_jars: Path) -> Iterator[JavaProcess]:
    """One Java process for all tests."""
    with JavaProcess() as process:
        yield process


@pytest.fixture(scope="session")
def client_named(request: pytest.FixtureRequest) -> ClientNamed:
    """Finds a client by name; Java is started only when a test asks for it."""

    def find(name: str) -> Client:
        if name == "java":
            return JavaClient(request.getfixturevalue("java_process"))
        clients: tuple[Client, ...] = (ConfluentKafka(), KafkaPython(), AioKafka(), Kcat())
        return next(client for client in clients if client.name == name)

    return find


@pytest.fixture(params=CLIENT_NAMES)
def client(request: pytest.FixtureRequest, client_named: ClientNamed) -> Client:
    """Every client in turn."""
    return client_named(request.param)


def create_topic(
    bootstrap: str, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
) -> None:
    """Create a topic that is ready for use when this returns."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = NewTopic(name, partitions, 1, config=KEPT_FOR_EVER | dict(config or {}))
    admin.create_topics([new])[name].result(30)
    if on_apache_kafka():
        raw.wait_until_led(bootstrap, name, partitions)


@pytest.fixture
def topic_names(request: pytest.FixtureRequest) -> Iterator[str]:
    """Names that no other test uses, and that say which test made the topic."""
    return unique_names(request.node.nodeid)


def unique_names(test: str) -> Iterator[str]:
    """Topic names made of the test's name and a number that no other process has."""
    stem = re.sub(r"[^A-Za-z0-9]+", "-", test.rsplit("/", 1)[-1])[-80:].strip("-")
    return (f"{stem}-{os.getpid()}-{number}" for number in itertools.count())


@pytest.fixture
def make_topic(broker: Broker, topic_names: Iterator[str]) -> MakeTopic:
    """Creates topics on the shared broker."""

    def make(partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        name = next(topic_names)
        create_topic(broker.bootstrap, name, partitions, config)
        return name

    return make


@pytest.fixture
def own_broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OwnBroker]:
    """Makes brokers that only this test knows; they are killed when it ends."""
    made: list[Broker] = []

    def make(properties: Mapping[str, str] | None = None) -> Broker:
        data_dir = tmp_path / f"broker-{len(made)}"
        if on_apache_kafka():
            request.getfixturevalue("kafka_jars")
            made.append(small_kafka(data_dir, properties=properties))
        else:
            made.append(KlammProcess(data_dir, properties=properties))
        return made[-1]

    yield make
    for one in made:
        one.kill()
