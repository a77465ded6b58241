"""What only streams have: checkpoints, rate limits, and topics that grow under them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from pyspark.sql import DataFrame

from compat_tests.clients.fixtures import MakeTopic, create_topic
from compat_tests.spark.connector import (
    AVAILABLE_NOW,
    EVERY_100_MS,
    Batches,
    Connector,
    ended,
    numbered,
    texts,
    wait_until,
)


def test_available_now_goes_on_where_the_checkpoint_is(
    kafka: Connector, make_topic: MakeTopic
) -> None:
    """maxOffsetsPerTrigger is shared by the partitions, in proportion to what they hold."""
    topic = make_topic(2)
    for partition in (0, 1):
        kafka.produce(topic, texts("a", 30), partition)
    limited = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 20}
    batches = kafka.available_now(**limited)
    assert [len(batch) for batch in batches] == [20, 20, 20]
    both = [cell for p in (0, 1) for cell in numbered(texts("a", 30), p)]
    assert sorted(cell for batch in batches for cell in batch) == both
    kafka.produce(topic, ["new"], 1)
    assert kafka.available_now(**limited) == [[(1, 30, "new")]]
    assert kafka.available_now(**limited) == []


def test_where_a_new_stream_starts(kafka: Connector, make_topic: MakeTopic, tmp_path: Path) -> None:
    """startingOffsets hold for a new query only; then its checkpoint decides."""
    topic = make_topic()
    kafka.produce(topic, texts("a", 10))
    starts: list[tuple[dict[str, object], int]] = [
        ({"startingOffsets": "latest"}, 10),
        ({"startingOffsets": {topic: {"0": 7}}}, 7),
    ]
    everything = numbered(texts("a", 10))
    for number, (options, first) in enumerate(starts):
        checkpoint = tmp_path / f"checkpoint-{number}"
        (batch,) = kafka.available_now(subscribe=topic, checkpoint=checkpoint, **options) or [[]]
        assert batch == everything[first:], options
        # What the option says now is not asked again.
        again = kafka.available_now(
            subscribe=topic, checkpoint=checkpoint, startingOffsets="earliest"
        )
        assert again == [], options


@pytest.mark.parametrize("option", ["minPartitions=4", "maxRecordsPerPartition=10"])
def test_a_stream_is_split_into_more_tasks(
    kafka: Connector, make_topic: MakeTopic, option: str
) -> None:
    topic = make_topic()
    kafka.produce(topic, texts("a", 40))
    name, _, number = option.partition("=")
    tasks: list[int] = []

    def count(frame: DataFrame, batch_id: int) -> None:
        tasks.append(frame.rdd.getNumPartitions())

    stream = kafka.stream(subscribe=topic, startingOffsets="earliest", **{name: number})
    ended(kafka.start(stream.writeStream.foreachBatch(count), AVAILABLE_NOW))
    assert tasks == [4]


def test_min_offsets_hold_a_batch_back(kafka: Connector, make_topic: MakeTopic) -> None:
    topic = make_topic()
    kafka.produce(topic, texts("a", 5))
    batches = Batches()
    query = kafka.collect(
        batches,
        trigger=EVERY_100_MS,
        subscribe=topic,
        startingOffsets="earliest",
        minOffsetsPerTrigger=10,
        maxTriggerDelay="1h",
    )
    # The first batch does not wait.
    wait_until(lambda: len(batches.all()) == 5, "the first batch", query)
    kafka.produce(topic, texts("b", 9))
    seen = len(query.recentProgress)
    wait_until(lambda: idle_triggers(query.recentProgress[seen:]) >= 1, "an idle trigger", query)
    assert len(batches.all()) == 5
    kafka.produce(topic, ["c"])
    wait_until(lambda: len(batches.all()) == 15, "the batch of ten", query)
    assert [len(batch) for batch in batches.filled()] == [5, 10]


def idle_triggers(progress: object) -> int:
    assert isinstance(progress, list)
    return sum(1 for one in progress if one["numInputRows"] == 0)


def test_max_trigger_delay_ends_the_wait(kafka: Connector, make_topic: MakeTopic) -> None:
    topic = make_topic()
    kafka.produce(topic, ["a"])
    batches = Batches()
    query = kafka.collect(
        batches,
        trigger=EVERY_100_MS,
        subscribe=topic,
        startingOffsets="earliest",
        minOffsetsPerTrigger=1000,
        maxTriggerDelay="1s",
    )
    wait_until(lambda: len(batches.all()) == 1, "the first batch", query)
    kafka.produce(topic, ["b"])
    wait_until(lambda: len(batches.all()) == 2, "the batch that is too small", query)


def test_new_partitions_and_new_topics_are_found(
    kafka: Connector, topic_names: Iterator[str]
) -> None:
    """Both from their first offset, although the query started at the latest of the others."""
    first, second = next(topic_names), next(topic_names)
    create_topic(kafka.bootstrap, first)
    kafka.produce(first, ["before the query"])
    batches = Batches()
    query = kafka.collect(
        batches,
        trigger=EVERY_100_MS,
        subscribePattern=re.escape(first.rpartition("-")[0]) + "-.*",
        startingOffsets="latest",
    )
    wait_until(lambda: query.lastProgress is not None, "the first trigger", query)
    kafka.produce(first, ["known partition"])
    wait_until(lambda: len(batches.all()) == 1, "the first record", query)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_partitions([NewPartitions(first, 2)])[first].result(30)
    kafka.produce(first, ["new partition"], 1)
    wait_until(lambda: len(batches.all()) == 2, "a record of the new partition", query)
    create_topic(kafka.bootstrap, second)
    kafka.produce(second, ["new topic"])
    wait_until(lambda: len(batches.all()) == 3, "a record of the new topic", query)
    assert batches.all() == [
        (0, 0, "new topic"),
        (0, 1, "known partition"),
        (1, 0, "new partition"),
    ]
