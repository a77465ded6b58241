"""What a query says when the log no longer has what its checkpoint asks for.

With failOnDataLoss it must fail and say so; without it goes on with what there is.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from compat_tests.clients.fixtures import MakeTopic, create_topic
from compat_tests.spark.connector import (
    FAILURES,
    Batches,
    Connector,
    failure,
    numbered,
    texts,
    wait_until,
)

LOST = "(?i)data (loss|may have been lost)"


def test_records_were_deleted_behind_the_checkpoint(
    kafka: Connector, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    kafka.produce(topic, texts("a", 10))
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    assert kafka.available_now(**options) == [numbered(texts("a", 10))]
    kafka.produce(topic, texts("b", 10))
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    place = TopicPartition(topic, 0, 15)
    admin.delete_records([place])[place].result(30)
    query = kafka.collect(Batches(), trigger={"availableNow": True}, **options)
    assert "data" in failure(query)
    assert kafka.available_now(**options, failOnDataLoss=False) == [
        numbered(texts("b", 10), start=10)[5:]
    ]


@pytest.mark.parametrize("count", [4, 12], ids=["shorter", "longer"])
def test_a_topic_was_made_again(
    kafka: Connector, make_topic: MakeTopic, tmp_path: Path, count: int
) -> None:
    """Shorter than the checkpoint it is data loss; longer, nobody can tell by offsets."""
    topic = make_topic()
    kafka.produce(topic, texts("a", 10))
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    assert kafka.available_now(**options) == [numbered(texts("a", 10))]
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.delete_topics([topic])[topic].result(30)
    wait_until(lambda: topic not in admin.list_topics(timeout=30).topics, "the topic is gone")
    create_topic(kafka.bootstrap, topic)
    kafka.produce(topic, texts("new", count))
    if count < 10:
        query = kafka.collect(Batches(), trigger={"availableNow": True}, **options)
        assert "data" in failure(query)
        assert kafka.available_now(**options, failOnDataLoss=False) == []
    else:
        assert kafka.available_now(**options) == [numbered(texts("new", count))[10:]]


def test_a_batch_query_over_deleted_records(kafka: Connector, make_topic: MakeTopic) -> None:
    topic = make_topic()
    kafka.produce(topic, texts("a", 10))
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    place = TopicPartition(topic, 0, 4)
    admin.delete_records([place])[place].result(30)
    left = numbered(texts("a", 10))[4:]
    assert kafka.values(subscribe=topic) == left
    named = {"subscribe": topic, "startingOffsets": {topic: {"0": 0}}}
    assert kafka.values(**named, failOnDataLoss=False) == left
    with pytest.raises(FAILURES, match=LOST):
        kafka.values(**named)
