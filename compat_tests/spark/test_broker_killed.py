"""The broker dies by SIGKILL in the middle of a micro-batch, and comes back on its directory."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from compat_tests.clients.fixtures import OwnBroker, create_topic
from compat_tests.spark.connector import Connector, texts, wait_until
from spark_examples.checkpoint import committed_offsets

COUNT = 200


def test_a_query_goes_on_when_the_broker_comes_back(
    spark: SparkSession, own_broker: OwnBroker, tmp_path: Path
) -> None:
    """It is killed after a batch was read and before it is written; nothing is lost.

    Spark's sink writes at least once, so that a record may be there twice.
    """
    broker = own_broker()
    killed = False

    with broker, closing(Connector(spark, broker.bootstrap, tmp_path / "checkpoint")) as kafka:
        create_topic(broker.bootstrap, "source")
        create_topic(broker.bootstrap, "target")
        kafka.produce("source", texts("a", COUNT))

        def copy(frame: DataFrame, batch_id: int) -> None:
            nonlocal killed
            read = frame.select("value").collect()
            if batch_id == 1 and not killed:
                killed = True
                broker.kill()
                broker.start()
            kafka.save(spark.createDataFrame(read, "value binary"), topic="target")

        query = kafka.start(
            kafka.stream(
                subscribe="source", startingOffsets="earliest", maxOffsetsPerTrigger=COUNT // 4
            ).writeStream.foreachBatch(copy),
            {"processingTime": "100 milliseconds"},
        )
        everything = {"source": {0: COUNT}}
        wait_until(lambda: committed_offsets(kafka.checkpoint) == everything, "all", query)
        query.stop()
        assert killed
        copied = [value for _, _, value in kafka.values(subscribe="target")]
        assert set(copied) == set(texts("a", COUNT))
        # A new query reads the same from the broker that was killed.
        assert len(kafka.values(subscribe="source")) == COUNT


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
