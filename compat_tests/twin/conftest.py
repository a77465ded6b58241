"""The pair of brokers that the comparisons run against.

With KLAMM_COMPAT_BROKER=kafka both are Apache Kafka: then nothing may differ but what
`may_differ.py` lists, which proves that list and the tests themselves.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from compat_tests.apache_kafka import ApacheKafka, small_kafka
from compat_tests.conftest import COMPARED_PROPERTIES, KAFKA_COMPARED_PROPERTIES
from compat_tests.klamm_process import KlammProcess
from compat_tests.twin.brokers import klamm_like_kafka
from compat_tests.twin.consumer_groups import ConsumerGroup
from compat_tests.twin.conversation import ASKED, Conversation
from compat_tests.twin.groups import Group
from compat_tests.twin.marks import versions_of
from compat_tests.twin.topics import Twin
from compat_tests.twin.transactions import Producer


@pytest.fixture(scope="session")
def other_broker(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ApacheKafka | KlammProcess]:
    """The broker that is compared with Apache Kafka."""
    if os.environ.get("KLAMM_COMPAT_BROKER", "klamm") == "kafka":
        data_dir = tmp_path_factory.mktemp("second-apache-kafka") / "data"
        with small_kafka(data_dir, properties=KAFKA_COMPARED_PROPERTIES) as kafka:
            yield kafka
            kafka.kill()
    else:
        data_dir = tmp_path_factory.mktemp("klamm-twin") / "data"
        with klamm_like_kafka(data_dir, COMPARED_PROPERTIES) as klamm:
            yield klamm


@pytest.fixture(scope="session")
def twin(apache_kafka: ApacheKafka, other_broker: ApacheKafka | KlammProcess) -> Iterator[Twin]:
    same = isinstance(other_broker, ApacheKafka)
    pair = Twin(apache_kafka.port, other_broker.port, same_broker=same)
    yield pair
    pair.close()


@pytest.fixture
def talk(twin: Twin) -> Iterator[Conversation]:
    """A fresh connection to both brokers."""
    with twin.conversation() as conversation:
        yield conversation


@pytest.fixture(scope="session")
def coordinated(twin: Twin) -> Twin:
    """Both brokers, when they can serve groups: Kafka makes its topic of offsets on demand."""
    twin.wait_until_groups_are_served()
    return twin


@pytest.fixture(scope="session")
def transactional(twin: Twin) -> Twin:
    """Both brokers, when they can serve transactions."""
    twin.wait_until_transactions_are_served()
    return twin


@pytest.fixture
def producer(transactional: Twin) -> Producer:
    """A transactional id that no other test has, not yet known to anybody."""
    return Producer(transactional)


@pytest.fixture
def group(coordinated: Twin) -> Iterator[Group]:
    """A group that no other test has."""
    made = Group(coordinated)
    yield made
    made.close()


@pytest.fixture
def consumer_group(coordinated: Twin) -> Iterator[ConsumerGroup]:
    """A group for the consumer protocol that no other test has."""
    made = ConsumerGroup(coordinated)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def asked_as_marked(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that is run once per version asks both brokers in the version that it is run with.

    `test_every_version` believes the marks.
    """
    ASKED.clear()
    yield
    marker = request.node.get_closest_marker("every_version")
    if marker is not None:
        assert (marker.args[0], request.node.callspec.params["version"]) in ASKED


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`@pytest.mark.every_version("fetch", since=12)` runs a test once per version."""
    marker = metafunc.definition.get_closest_marker("every_version")
    if marker is None:
        return
    wanted = versions_of(marker)
    metafunc.parametrize("version", wanted, ids=[f"v{version}" for version in wanted])


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "every_version(api, since, until): run once per version of the API"
    )
