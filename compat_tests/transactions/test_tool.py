"""kafka-transactions: list, describe, describe-producers, abort; and the transactions of
kafka-producer-perf-test."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Protocol

import pytest

from compat_tests.apache_kafka import tool
from compat_tests.clients.fixtures import Broker, ClientNamed, MakeTopic
from compat_tests.clients.java_client import JavaProcess
from compat_tests.clients.model import READ_COMMITTED, READ_UNCOMMITTED
from compat_tests.transactions.libraries import Confluent
from compat_tests.transactions.tool import kafka_transactions


class Run(Protocol):
    def __call__(self, *arguments: str) -> list[dict[str, str]]: ...


@pytest.fixture
def transactions(java_process: JavaProcess, broker: Broker) -> Run:
    """Runs kafka-transactions with the broker under test."""
    return partial(kafka_transactions, java_process, broker.bootstrap)


def test_an_administrator_looks_at_a_transaction_and_aborts_it(
    broker: Broker,
    make_topic: MakeTopic,
    transactions: Run,
    transactional_ids: Iterator[str],
    client_named: ClientNamed,
) -> None:
    topic, name = make_topic(), next(transactional_ids)
    producer = Confluent().open(broker.bootstrap, name)
    producer.begin()
    producer.send(topic, "before")
    producer.commit()
    producer.begin()
    producer.send(topic, "hanging")
    producer.flush()

    (listed,) = [one for one in transactions("list") if one["TransactionalId"] == name]
    assert listed["TransactionState"] == "Ongoing"
    (described,) = transactions("describe", "--transactional-id", name)
    assert described["TransactionState"] == "Ongoing"
    assert described["TopicPartitions"] == f"{topic}-0"
    assert described["ProducerId"] == listed["ProducerId"]
    (written,) = transactions("describe-producers", "--topic", topic, "--partition", "0")
    assert written["ProducerId"] == listed["ProducerId"]
    assert written["CurrentTransactionStartOffset"] == "2"
    # It has just begun, so nobody takes it for one that hangs.
    assert transactions("find-hanging", "--broker-id", "1") == []

    transactions("abort", "--topic", topic, "--partition", "0", "--start-offset", "2")
    (written,) = transactions("describe-producers", "--topic", topic, "--partition", "0")
    assert written["CurrentTransactionStartOffset"] == "None"
    reader = client_named("confluent-kafka")
    read = reader.consume(broker.bootstrap, topic, 1, isolation=READ_COMMITTED)
    assert [one.value for one in read] == [b"before"]
    read = reader.consume(broker.bootstrap, topic, 2, isolation=READ_UNCOMMITTED)
    assert [one.value for one in read] == [b"before", b"hanging"]
    producer.close()


def test_the_producer_perf_test_in_transactions(
    broker: Broker,
    make_topic: MakeTopic,
    transactional_ids: Iterator[str],
    client_named: ClientNamed,
) -> None:
    topic = make_topic(3)
    done = tool(
        *("kafka-producer-perf-test", "--bootstrap-server", broker.bootstrap, "--topic", topic),
        *("--num-records", "5000", "--record-size", "100", "--throughput", "-1"),
        *("--transactional-id", next(transactional_ids), "--transaction-duration-ms", "100"),
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "5000 records sent" in done.stdout
    read = client_named("java").consume(
        broker.bootstrap, topic, 5000, partitions=(0, 1, 2), isolation=READ_COMMITTED
    )
    assert len(read) == 5000
