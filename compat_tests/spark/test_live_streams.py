"""Streams that run on, by every trigger that does: from topic to topic, while both grow.

Continuous processing and real time read and write without micro-batches: tasks stay, and a new
partition or a transaction reaches the connector by other ways.
"""

from __future__ import annotations

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from pyspark.sql.streaming.query import StreamingQuery

from compat_tests.clients.fixtures import MakeTopic
from compat_tests.spark.connector import (
    EVERY_100_MS,
    Connector,
    Trigger,
    numbered,
    texts,
    wait_until,
)
from compat_tests.spark.transactions import COMMITTED, write
from spark_examples.checkpoint import committed_offsets


@pytest.fixture(params=["processing time", "continuous", "real time"])
def live(request: pytest.FixtureRequest, kafka: Connector) -> Live:
    """Every trigger that runs on."""
    return Live(kafka, request.param)


class Live:
    """Copies topics by one of the triggers."""

    def __init__(self, kafka: Connector, kind: str) -> None:
        self.kafka = kafka
        self.trigger: Trigger = {
            "processing time": EVERY_100_MS,
            "continuous": {"continuous": "1 second"},
            "real time": {"realTime": "2 seconds"},
        }[kind]
        self.output_mode = "update" if kind == "real time" else "append"

    def copy(self, source: str, target: str, **options: object) -> StreamingQuery:
        stream = self.kafka.stream(subscribe=source, startingOffsets="earliest", **options)
        return self.kafka.copy(
            stream.selectExpr("key", "value"),
            trigger=self.trigger,
            output_mode=self.output_mode,
            topic=target,
        )

    def wait_until_committed(
        self, source: str, read: dict[int, int], query: StreamingQuery
    ) -> None:
        """A batch or epoch that is done but not committed would be repeated by the next query."""
        checkpoint = self.kafka.checkpoint
        wait_until(lambda: committed_offsets(checkpoint) == {source: read}, f"{read}", query)


def test_a_live_stream_from_topic_to_topic(
    kafka: Connector, make_topic: MakeTopic, live: Live
) -> None:
    """Records that come while the query runs leave it again, and a restart repeats none."""
    source, target = make_topic(), make_topic()
    kafka.produce(source, texts("a", 10))

    def run(first: list[str], count: int) -> None:
        query = live.copy(source, target)
        kafka.produce(source, first)
        live.wait_until_committed(source, {0: count}, query)
        query.stop()

    run(texts("b", 10), 20)
    run(texts("c", 10), 30)
    values = texts("a", 10) + texts("b", 10) + texts("c", 10)
    assert kafka.values(subscribe=target) == numbered(values)


def test_a_live_stream_finds_a_new_partition(
    kafka: Connector, make_topic: MakeTopic, live: Live
) -> None:
    source, target = make_topic(), make_topic()
    kafka.produce(source, ["a"])
    query = live.copy(source, target)
    live.wait_until_committed(source, {0: 1}, query)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_partitions([NewPartitions(source, 2)])[source].result(30)
    kafka.produce(source, ["b"], 1)
    live.wait_until_committed(source, {0: 1, 1: 1}, query)
    query.stop()
    assert kafka.values(subscribe=target) == numbered(["a", "b"])


def test_a_live_stream_leaves_out_what_was_aborted(
    kafka: Connector, make_topic: MakeTopic, transactional: Producer, live: Live
) -> None:
    """Also where the log ends in an abort marker for a while."""
    source, target = make_topic(), make_topic()
    query = live.copy(source, target, **COMMITTED)
    write(transactional, source, "a")
    transactional.commit_transaction(60)
    write(transactional, source, "never")
    transactional.abort_transaction(60)
    kafka.produce(source, ["b"])
    # Two records and two markers before it.
    live.wait_until_committed(source, {0: 5}, query)
    write(transactional, source, "never")
    transactional.abort_transaction(60)
    kafka.produce(source, ["c"])
    live.wait_until_committed(source, {0: 8}, query)
    query.stop()
    assert kafka.values(subscribe=target) == numbered(["a", "b", "c"])
