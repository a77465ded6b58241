"""A topic is deleted and made again under clients that use it: they go on with the new one."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from compat_tests.clients import raw
from compat_tests.clients.fixtures import Broker, OwnBroker, create_topic, on_apache_kafka
from compat_tests.clients.java_client import JavaProcess
from compat_tests.clients.librdkafka import ConfluentKafka
from compat_tests.clients.model import Client, ProducerMode, Record
from compat_tests.clients.streaming import following, producing
from compat_tests.clients.test_restart import read_all
from compat_tests.history.recorder import History

LATEST = -1
PATIENCE_S = 0.5

# Each library has its own name for "begin again at the start". kcat is librdkafka again, and does
# not say which of its records was refused by the old topic.
RESET_TO_EARLIEST = {
    "confluent-kafka": {"auto.offset.reset": "earliest"},
    "kafka-python": {"auto_offset_reset": "earliest"},
    "java": {"auto.offset.reset": "earliest"},
}


@pytest.fixture
def broker_without_auto_creation(own_broker: OwnBroker) -> Iterator[Broker]:
    """Clients ask for metadata all the time, and would make the topic again themselves."""
    broker = own_broker({"auto.create.topics.enable": "false"})
    with broker:
        yield broker


def recreate(bootstrap: str, topic: str) -> None:
    """Delete a topic and make it again; Apache Kafka needs a moment to forget the old one."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic])[topic].result(30)
    deadline = time.monotonic() + 30
    while True:
        try:
            create_topic(bootstrap, topic)
        except KafkaException as error:
            exists = error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
            if not exists or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


def wait_until_empty(bootstrap: str, topic: str) -> None:
    """klamm is done when DeleteTopics answers; Apache Kafka serves the old log for a moment."""
    deadline = time.monotonic() + (30 if on_apache_kafka() else 0)
    while raw.list_offset(bootstrap, topic, 0, LATEST) != (0, 0):
        assert time.monotonic() < deadline, "the new topic is not empty"
        time.sleep(0.02)


def java_of(request: pytest.FixtureRequest) -> JavaProcess:
    process: JavaProcess = request.getfixturevalue("java_process")
    return process


def test_the_new_topic_is_empty(broker: Broker, topic_names: Iterator[str], client: Client) -> None:
    topic = next(topic_names)
    create_topic(broker.bootstrap, topic)
    client.produce(broker.bootstrap, topic, [Record(b"old")] * 5)
    recreate(broker.bootstrap, topic)
    wait_until_empty(broker.bootstrap, topic)
    assert client.positions(broker.bootstrap, topic).latest == 0
    client.produce(broker.bootstrap, topic, [Record(b"new")] * 3)
    read = client.consume(broker.bootstrap, topic, 3)
    assert [(one.offset, one.value) for one in read] == [(0, b"new"), (1, b"new"), (2, b"new")]


@pytest.mark.parametrize("idempotence", [True, False], ids=["idempotent", "plain"])
@pytest.mark.parametrize("client", RESET_TO_EARLIEST)
def test_producers_go_on_with_the_new_topic(
    broker_without_auto_creation: Broker,
    request: pytest.FixtureRequest,
    client: str,
    idempotence: bool,
) -> None:
    bootstrap, topic = broker_without_auto_creation.bootstrap, "recreated"
    create_topic(bootstrap, topic)
    history = History()
    java = functools.partial(java_of, request)
    mode = ProducerMode(idempotence=idempotence)
    with producing(client, bootstrap, topic, history, mode=mode, java=java):
        history.wait_for("ok", 50)
        recreate(bootstrap, topic)
        sent_before = history.count("invoke")
        history.wait_for("ok", sent_before + 50)
    stored = read_all(bootstrap, topic)
    acknowledged = [
        event for event in history.events() if (event.type, event.action) == ("ok", "send")
    ]
    later = [(event.offset, event.value) for event in acknowledged[sent_before:]]
    assert len(later) >= 50
    assert set(later) <= set(stored)
    if idempotence:
        values = [int(value) for _, value in stored]
        assert values == sorted(set(values))


@pytest.mark.parametrize("client", RESET_TO_EARLIEST)
def test_consumers_go_on_with_the_new_topic(
    broker_without_auto_creation: Broker, request: pytest.FixtureRequest, client: str
) -> None:
    bootstrap, topic = broker_without_auto_creation.bootstrap, "recreated"
    create_topic(bootstrap, topic)
    writer = ConfluentKafka()
    writer.produce(bootstrap, topic, [Record(f"old {number}".encode()) for number in range(50)])
    history = History()
    java = functools.partial(java_of, request)
    settings = RESET_TO_EARLIEST[client]
    with following(client, bootstrap, topic, history, java=java, settings=settings):
        history.wait_for("poll", 50)
        recreate(bootstrap, topic)
        wait_until_empty(bootstrap, topic)
        # Fewer than before: the position in the old topic is out of range in the new one.
        last = 0
        while not history.has_within("poll", 51, PATIENCE_S):
            assert last < 45, "the consumer does not go on"
            writer.produce(bootstrap, topic, [Record(f"new {last}".encode())])
            last += 1
        history.wait_for_value("poll", f"new {last - 1}")
    polled = [(event.offset, event.value) for event in history.events() if event.action == "poll"]
    assert polled[:50] == [(number, f"old {number}") for number in range(50)]
    # A consumer that looks while the new topic is empty begins at 0. One that looks later is told
    # by the leader epoch where its log ends now (KIP-320), and goes on from there.
    first = polled[50][0]
    assert polled[50:] == [(number, f"new {number}") for number in range(first, last)]
