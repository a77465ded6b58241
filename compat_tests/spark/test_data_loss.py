"""What a query says when the log no longer has what its checkpoint asks for.

With failOnDataLoss it must fail and say so; without it goes on with what there is.
"""

from __future__ import annotations

import re

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame

from compat_tests.clients.fixtures import MakeTopic, create_topic
from compat_tests.spark.connector import (
    AVAILABLE_NOW,
    EVERY_100_MS,
    FAILURES,
    Batches,
    Connector,
    failure,
    numbered,
    texts,
    wait_until,
)
from spark_examples.checkpoint import committed_offsets

LOST = "(?i)data (loss|may have been (lost|missed))"


def delete_before(kafka: Connector, topic: str, offset: int, partition: int = 0) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    place = TopicPartition(topic, partition, offset)
    admin.delete_records([place])[place].result(30)


def make_again(kafka: Connector, topic: str) -> None:
    """Another topic of the same name, with another id."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.delete_topics([topic])[topic].result(30)
    wait_until(lambda: topic not in admin.list_topics(timeout=30).topics, "the topic is gone")
    create_topic(kafka.bootstrap, topic)


def test_records_were_deleted_behind_the_checkpoint(
    kafka: Connector, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    kafka.produce(topic, texts("a", 10))
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    assert kafka.available_now(**options) == [numbered(texts("a", 10))]
    kafka.produce(topic, texts("b", 10))
    delete_before(kafka, topic, 15)
    query = kafka.collect(Batches(), trigger=AVAILABLE_NOW, **options)
    assert re.search(LOST, failure(query))
    assert kafka.available_now(**options, failOnDataLoss=False) == [
        numbered(texts("b", 10), start=10)[5:]
    ]


@pytest.mark.parametrize("count", [4, 12], ids=["shorter", "longer"])
def test_a_topic_was_made_again(kafka: Connector, make_topic: MakeTopic, count: int) -> None:
    """Shorter than the checkpoint it is data loss; longer, nobody can tell by offsets."""
    topic = make_topic()
    kafka.produce(topic, texts("a", 10))
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    assert kafka.available_now(**options) == [numbered(texts("a", 10))]
    make_again(kafka, topic)
    kafka.produce(topic, texts("new", count))
    if count < 10:
        query = kafka.collect(Batches(), trigger=AVAILABLE_NOW, **options)
        assert re.search(LOST, failure(query))
        assert kafka.available_now(**options, failOnDataLoss=False) == []
    else:
        assert kafka.available_now(**options) == [numbered(texts("new", count))[10:]]


@pytest.mark.parametrize("fails", [True, False], ids=["fails", "goes on"])
def test_records_are_deleted_before_a_running_query(
    kafka: Connector, make_topic: MakeTopic, fails: bool
) -> None:
    """Between two batches, in a partition of which the query has read nothing yet."""
    topic = make_topic(2)
    kafka.produce(topic, texts("a", 10), 0)
    batches = Batches()

    def take(frame: DataFrame, batch_id: int) -> None:
        batches.take(frame, batch_id)
        if batch_id == 0:
            kafka.produce(topic, texts("b", 10), 1)
            delete_before(kafka, topic, 5, partition=1)

    stream = kafka.stream(subscribe=topic, startingOffsets="earliest", failOnDataLoss=fails)
    query = kafka.start(stream.writeStream.foreachBatch(take), EVERY_100_MS)
    if fails:
        assert re.search(LOST, failure(query))
        assert batches.all() == numbered(texts("a", 10))
    else:
        wait_until(lambda: len(batches.all()) == 15, "what is left", query)
        assert batches.filled()[1] == numbered(texts("b", 10), 1)[5:]


@pytest.mark.parametrize("fails", [True, False], ids=["fails", "goes on"])
def test_a_topic_is_made_again_under_a_running_query(
    kafka: Connector, make_topic: MakeTopic, fails: bool
) -> None:
    """Its tasks know the topic by an id that is gone; still they read what comes next."""
    topic = make_topic()
    kafka.produce(topic, texts("a", 10))
    batches = Batches()

    def take(frame: DataFrame, batch_id: int) -> None:
        batches.take(frame, batch_id)
        if batch_id == 0:
            make_again(kafka, topic)
            kafka.produce(topic, texts("new", 4))

    stream = kafka.stream(
        subscribe=topic,
        startingOffsets="earliest",
        failOnDataLoss=fails,
        # An end that goes back is asked for again, so soon.
        fetchOffset__retryIntervalMs=50,
    )
    query = kafka.start(stream.writeStream.foreachBatch(take), EVERY_100_MS)
    if fails:
        assert re.search(LOST, failure(query))
    else:
        now = {topic: {0: 4}}
        wait_until(lambda: committed_offsets(kafka.checkpoint) == now, "the new end", query)
        kafka.produce(topic, texts("b", 2))
        wait_until(lambda: len(batches.all()) == 12, "what came next", query)
        assert batches.filled()[1] == numbered(texts("b", 2), start=4)


def test_a_batch_query_over_deleted_records(kafka: Connector, make_topic: MakeTopic) -> None:
    topic = make_topic()
    kafka.produce(topic, texts("a", 10))
    delete_before(kafka, topic, 4)
    left = numbered(texts("a", 10))[4:]
    assert kafka.values(subscribe=topic) == left
    named = {"subscribe": topic, "startingOffsets": {topic: {"0": 0}}}
    assert kafka.values(**named, failOnDataLoss=False) == left
    with pytest.raises(FAILURES, match=LOST):
        kafka.values(**named)
