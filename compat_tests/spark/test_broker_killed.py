"""The broker dies by SIGKILL in the middle of a micro-batch, and comes back on its directory."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

from pyspark.sql import SparkSession

from compat_tests.clients.fixtures import OwnBroker, create_topic
from compat_tests.clients.librdkafka import ConfluentKafka
from compat_tests.clients.model import ProducerMode
from compat_tests.spark.connector import EVERY_100_MS, Connector, texts, wait_until
from spark_examples.checkpoint import committed_batch

COUNT = 400
RECORD_MS = 5
AWAY_S = 0.5

# Some ten records in a batch, and a batch in a fetch: the task fetches until it ends.
SMALL_BATCHES = ProducerMode(request_bytes_max=1000)
FETCH_LITTLE = {"kafka__max__partition__fetch__bytes": 500, "kafka__max__poll__records": 10}


def test_a_query_goes_on_when_the_broker_comes_back(
    spark: SparkSession, own_broker: OwnBroker, tmp_path: Path
) -> None:
    """It is killed while a task reads and writes, and the same task ends when it is back.

    The one micro-batch takes some seconds, in which records come in and go out a few at a time.
    Spark's sink would write a record again if a task were, and none is: its clients wait.
    """
    broker = own_broker()
    with broker, closing(Connector(spark, broker.bootstrap, tmp_path / "checkpoint")) as kafka:
        create_topic(broker.bootstrap, "source")
        create_topic(broker.bootstrap, "target")
        kafka.produce("source", texts("a", COUNT), mode=SMALL_BATCHES)
        slow = kafka.stream(subscribe="source", startingOffsets="earliest", **FETCH_LITTLE).where(
            f"length(reflect('java.lang.Thread', 'sleep', {RECORD_MS}L)) > 0"
        )
        query = kafka.copy(slow.select("value"), trigger=EVERY_100_MS, topic="target")
        wait_until(lambda: end_of(kafka, "target") > COUNT // 4, "a part of the batch", query)
        broker.kill()
        assert committed_batch(kafka.checkpoint) is None, "the batch was over before the kill"
        time.sleep(AWAY_S)
        broker.start()
        wait_until(lambda: committed_batch(kafka.checkpoint) == 0, "the end of the batch", query)
        kafka.produce("source", texts("b", 10))
        wait_until(lambda: committed_batch(kafka.checkpoint) == 1, "the next batch", query)
        query.stop()
        copied = [value for _, _, value in kafka.values(subscribe="target")]
        assert copied == [*texts("a", COUNT), *texts("b", 10)]


def end_of(kafka: Connector, topic: str) -> int:
    return ConfluentKafka().positions(kafka.bootstrap, topic).latest


def test_a_checkpoint_outlives_the_broker(
    spark: SparkSession, own_broker: OwnBroker, tmp_path: Path
) -> None:
    """Query and broker stop, the broker by SIGKILL; the next run reads only what is new."""
    broker = own_broker()
    with broker, closing(Connector(spark, broker.bootstrap, tmp_path / "checkpoint")) as kafka:
        create_topic(broker.bootstrap, "source")
        kafka.produce("source", texts("a", 10))
        options = {"subscribe": "source", "startingOffsets": "earliest"}
        (first,) = kafka.available_now(**options)
        assert len(first) == 10
        broker.kill()
        broker.start()
        assert kafka.available_now(**options) == []
        kafka.produce("source", ["new"])
        assert kafka.available_now(**options) == [[(0, 10, "new")]]
