"""A topic that a client merely uses is made for it, where the broker allows that."""

from __future__ import annotations

import json
from collections.abc import Iterator

from compat_tests.clients.fixtures import Broker, ClientNamed, OwnBroker
from compat_tests.clients.kcat import kcat
from compat_tests.clients.model import Client, Record


def test_the_first_record_makes_the_topic(
    broker: Broker, topic_names: Iterator[str], client: Client
) -> None:
    topic = next(topic_names)
    records = [Record(f"{number}".encode()) for number in range(10)]
    client.produce(broker.bootstrap, topic, records, partition=None)
    read = client.consume(broker.bootstrap, topic, 10)
    assert [one.value for one in read] == [one.value for one in records]


def test_num_partitions_holds_for_topics_made_by_use(
    own_broker: OwnBroker, client_named: ClientNamed
) -> None:
    with own_broker({"num.partitions": "5"}) as broker:
        client = client_named("kafka-python")
        deliveries = client.produce(broker.bootstrap, "spread", [Record(b"last")], partition=4)
        assert [one.partition for one in deliveries] == [4]


def test_without_auto_creation_the_topic_stays_unknown(own_broker: OwnBroker) -> None:
    with own_broker({"auto.create.topics.enable": "false"}) as broker:
        sending = ("-P", "-b", broker.bootstrap, "-t", "nowhere", "-p", "0")
        done = kcat(*sending, "-X", "topic.metadata.propagation.max.ms=500", stdin=b"lost\n")
        assert b"Unknown topic" in done.stderr
        listed = json.loads(kcat("-L", "-J", "-b", broker.bootstrap).stdout)
        assert listed["topics"] == []
