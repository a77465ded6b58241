"""What becomes of a transaction when its producer is killed, or its broker."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from compat_tests.clients.fixtures import Broker, ClientNamed, MakeTopic, OwnBroker, create_topic
from compat_tests.clients.java_client import JavaProcess
from compat_tests.clients.model import READ_UNCOMMITTED
from compat_tests.transactions.libraries import Java, Library
from compat_tests.transactions.steps import committed_end, stop_and_check, values, write


def test_a_producer_killed_in_mid_transaction_comes_back(
    broker: Broker,
    make_topic: MakeTopic,
    library: Library,
    client_named: ClientNamed,
    transactional_ids: Iterator[str],
) -> None:
    topic, transactional_id = make_topic(), next(transactional_ids)
    begin_and_die(library, broker.bootstrap, transactional_id, topic, ["lost 1", "lost 2"])
    assert committed_end(broker, topic) == 0
    resumed = library.open(broker.bootstrap, transactional_id)
    # Whoever resumes has ended what was left, whether it writes anything or not.
    assert committed_end(broker, topic) == 3
    for value in ("kept 1", "kept 2"):
        write(resumed, topic, value)
        resumed.commit()
    resumed.close()
    reader = client_named("java")
    assert values(reader, broker.bootstrap, topic, 2) == ["kept 1", "kept 2"]
    everything = values(reader, broker.bootstrap, topic, 4, READ_UNCOMMITTED)
    assert everything == ["lost 1", "lost 2", "kept 1", "kept 2"]


def begin_and_die(
    library: Library, bootstrap: str, transactional_id: str, topic: str, sent: Sequence[str]
) -> None:
    """A process of its own writes in a transaction, and is killed when all is in the log."""
    if isinstance(library, Java):
        with JavaProcess() as process:
            producer = Java(process).open(bootstrap, transactional_id)
            write(producer, topic, *sent)
            producer.flush()
            process.kill()
        return
    command = (sys.executable, "-m", "compat_tests.transactions.hold", library.name)
    killed = subprocess.Popen(
        [*command, bootstrap, transactional_id, topic, *sent], stdout=subprocess.PIPE, text=True
    )
    assert killed.stdout is not None
    try:
        assert killed.stdout.readline() == "written\n"
    finally:
        killed.kill()
        killed.wait()
        killed.stdout.close()


def test_a_broker_killed_in_mid_transaction_comes_back(
    own_broker: OwnBroker, library: Library, client_named: ClientNamed
) -> None:
    broker = own_broker()
    broker.start()
    create_topic(broker.bootstrap, "t")
    producer = library.open(broker.bootstrap, "one")
    # The transaction is as open as it was: it can go on, and end either way.
    write(producer, "t", "a 1")
    producer.flush()
    crash(broker)
    assert committed_end(broker, "t") == 0
    producer.send("t", "a 2")
    producer.commit()
    write(producer, "t", "b 1")
    producer.flush()
    crash(broker)
    producer.abort()
    write(producer, "t", "c 1")
    producer.commit()
    producer.close()
    reader = client_named("confluent-kafka")
    assert values(reader, broker.bootstrap, "t", 3) == ["a 1", "a 2", "c 1"]
    everything = values(reader, broker.bootstrap, "t", 4, READ_UNCOMMITTED)
    assert everything == ["a 1", "a 2", "b 1", "c 1"]
    # Three ends, and nothing else: no record is there twice.
    assert committed_end(broker, "t") == 4 + 3
    stop_and_check(broker)


# Without kafka-python: version 3.0 forgets to end the transaction when nobody listens, and waits
# for ever; so it does with Apache Kafka 4.3.1.
@pytest.mark.parametrize("library", ["confluent-kafka", "aiokafka", "java"], indirect=True)
def test_a_broker_comes_back_while_a_producer_commits(
    own_broker: OwnBroker, library: Library, client_named: ClientNamed
) -> None:
    broker = own_broker()
    broker.start()
    create_topic(broker.bootstrap, "t")
    producer = library.open(broker.bootstrap, "one")
    write(producer, "t", "a")
    producer.flush()
    broker.kill()
    with ThreadPoolExecutor(1) as others:
        starting = others.submit(broker.start)
        producer.commit()
        starting.result()
    write(producer, "t", "b")
    producer.commit()
    producer.close()
    assert values(client_named("confluent-kafka"), broker.bootstrap, "t", 2) == ["a", "b"]
    assert committed_end(broker, "t") == 2 + 2
    stop_and_check(broker)


def crash(broker: Broker) -> None:
    broker.kill()
    broker.start()
