"""What becomes of a transaction: committed, aborted, open, fenced or timed out; and what
consumers of all libraries see of it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from compat_tests.clients.fixtures import (
    CLIENT_NAMES,
    Broker,
    ClientNamed,
    MakeTopic,
    OwnBroker,
    create_topic,
)
from compat_tests.clients.model import READ_UNCOMMITTED
from compat_tests.transactions.libraries import (
    FencedError,
    Library,
    TransactionError,
    Transform,
)
from compat_tests.transactions.steps import committed_end, values, write

READY_TIMEOUT_S = 60


def test_committed_and_aborted(
    broker: Broker,
    make_topic: MakeTopic,
    library: Library,
    client_named: ClientNamed,
    transactional_ids: Iterator[str],
) -> None:
    topic, other = make_topic(), make_topic()
    producer = library.open(broker.bootstrap, next(transactional_ids))
    write(producer, topic, "a", "b")
    producer.send(other, "x")
    producer.commit()
    write(producer, topic, "c", "d")
    producer.send(other, "y")
    producer.flush()
    producer.abort()
    write(producer, topic, "e")
    producer.send(other, "z")
    producer.commit()
    producer.close()
    for name in CLIENT_NAMES:
        client = client_named(name)
        assert values(client, broker.bootstrap, topic, 3) == ["a", "b", "e"], name
        assert values(client, broker.bootstrap, other, 2) == ["x", "z"], name
        everything = values(client, broker.bootstrap, topic, 5, READ_UNCOMMITTED)
        assert everything == ["a", "b", "c", "d", "e"], name


def test_nothing_behind_an_open_transaction_is_seen(
    broker: Broker,
    make_topic: MakeTopic,
    library: Library,
    client_named: ClientNamed,
    transactional_ids: Iterator[str],
) -> None:
    topic = make_topic()
    first = library.open(broker.bootstrap, next(transactional_ids))
    second = library.open(broker.bootstrap, next(transactional_ids))
    write(first, topic, "a")
    first.flush()
    write(second, topic, "b")
    second.commit()
    reader = client_named("kafka-python")
    assert values(reader, broker.bootstrap, topic, 2, READ_UNCOMMITTED) == ["a", "b"]
    # What is stable ends where the first transaction begins.
    assert committed_end(broker, topic) == 0
    first.commit()
    assert values(reader, broker.bootstrap, topic, 2) == ["a", "b"]
    assert committed_end(broker, topic) == 4
    first.close()
    second.close()


def test_consume_transform_produce(
    broker: Broker,
    make_topic: MakeTopic,
    library: Library,
    client_named: ClientNamed,
    transactional_ids: Iterator[str],
) -> None:
    source, target = make_topic(), make_topic()
    group = next(transactional_ids)
    producer = library.open(broker.bootstrap, next(transactional_ids))
    write(producer, source, *"abcdef")
    producer.commit()
    producer.close()

    def transform(count: int, *, commits: bool) -> None:
        job = Transform(source, target, group, next(transactional_ids), count, commits)
        library.transform(broker.bootstrap, job)

    transform(2, commits=True)
    transform(3, commits=False)
    transform(4, commits=True)
    reader = client_named("confluent-kafka")
    assert values(reader, broker.bootstrap, target, 6) == ["A", "B", "C", "D", "E", "F"]
    everything = values(reader, broker.bootstrap, target, 9, READ_UNCOMMITTED)
    assert everything == ["A", "B", "C", "D", "E", "C", "D", "E", "F"]


def test_two_producers_with_one_id(
    broker: Broker,
    make_topic: MakeTopic,
    library: Library,
    client_named: ClientNamed,
    transactional_ids: Iterator[str],
) -> None:
    topic, transactional_id = make_topic(), next(transactional_ids)
    old = library.open(broker.bootstrap, transactional_id)
    write(old, topic, "old 1")
    old.flush()
    new = library.open(broker.bootstrap, transactional_id)
    write(new, topic, "new 1")
    new.flush()
    with pytest.raises(FencedError):
        old.commit()
    new.commit()
    old.close()
    write(new, topic, "new 2")
    new.commit()
    new.close()
    reader = client_named("confluent-kafka")
    assert values(reader, broker.bootstrap, topic, 2) == ["new 1", "new 2"]
    # No record of the old one stands behind one of the new one.
    everything = values(reader, broker.bootstrap, topic, 3, READ_UNCOMMITTED)
    assert everything == ["old 1", "new 1", "new 2"]


def test_a_transaction_that_takes_too_long_is_aborted(
    own_broker: OwnBroker, library: Library, client_named: ClientNamed
) -> None:
    broker = own_broker({"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"})
    with broker:
        create_topic(broker.bootstrap, "t")
        slow = library.open(broker.bootstrap, "slow", timeout_ms=1000)
        write(slow, "t", "too late")
        slow.flush()
        deadline = time.monotonic() + READY_TIMEOUT_S
        while committed_end(broker, "t") < 2:
            assert time.monotonic() < deadline, "nobody has aborted it"
            time.sleep(0.2)
        with pytest.raises((FencedError, TransactionError)):
            slow.commit()
        slow.close()
        other = library.open(broker.bootstrap, "slow")
        write(other, "t", "in time")
        other.commit()
        other.close()
        assert values(client_named("kcat"), broker.bootstrap, "t", 1) == ["in time"]
