"""The source in streams: triggers, rate limits, starts, checkpoints, and topics that grow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from pyspark.sql import DataFrame

from compat_tests.clients.fixtures import MakeTopic, create_topic
from compat_tests.clients.model import Record
from compat_tests.spark.connector import Batches, Connector, numbered, texts, wait_until
from spark_examples.checkpoint import committed_offsets

EVERY_100_MS = {"processingTime": "100 milliseconds"}


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
    kafka.produce(topic, [Record(f"{n}".encode(), timestamp_ms=1000 + n) for n in range(10)])
    starts: list[tuple[dict[str, object], int]] = [
        ({"startingOffsets": "latest"}, 10),
        ({"startingOffsets": {topic: {"0": 7}}}, 7),
        ({"startingTimestamp": 1004}, 4),
        ({"startingOffsetsByTimestamp": {topic: {"0": 1009}}}, 9),
    ]
    everything = numbered([str(n) for n in range(10)])
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
    query = kafka.start(stream.writeStream.foreachBatch(count), {"availableNow": True})
    assert query.awaitTermination(60)
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


def test_the_old_way_to_fetch_offsets(kafka: Connector, make_topic: MakeTopic) -> None:
    """With this setting the driver is a consumer in a group of its own, not an admin client."""
    topic = make_topic(2)
    for partition in (0, 1):
        kafka.produce(topic, texts("a", 10), partition)
    setting = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
    kafka.spark.conf.set(setting, "true")
    try:
        (batch,) = kafka.available_now(subscribe=topic, startingOffsets="earliest")
    finally:
        kafka.spark.conf.unset(setting)
    assert batch == [cell for p in (0, 1) for cell in numbered(texts("a", 10), p)]


@pytest.mark.parametrize(
    ("trigger", "mode"),
    [
        (EVERY_100_MS, "append"),
        ({"continuous": "1 second"}, "append"),
        ({"realTime": "2 seconds"}, "update"),
    ],
    ids=["processing time", "continuous", "real time"],
)
def test_a_live_stream_from_topic_to_topic(
    kafka: Connector, make_topic: MakeTopic, trigger: dict[str, object], mode: str
) -> None:
    """Records that come while the query runs leave it again, and a restart repeats none."""
    source, target = make_topic(), make_topic()
    kafka.produce(source, texts("a", 10))

    def run(first: list[str], count: int) -> None:
        stream = kafka.stream(subscribe=source, startingOffsets="earliest")
        query = kafka.copy(
            stream.selectExpr("key", "value"), trigger=trigger, output_mode=mode, topic=target
        )
        kafka.produce(source, first)
        # A batch or epoch that is done but not committed would be repeated.
        read = {source: {0: count}}
        wait_until(lambda: committed_offsets(kafka.checkpoint) == read, f"{count} records", query)
        query.stop()

    run(texts("b", 10), 20)
    run(texts("c", 10), 30)
    values = texts("a", 10) + texts("b", 10) + texts("c", 10)
    assert kafka.values(subscribe=target) == numbered(values)
