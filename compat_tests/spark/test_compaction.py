"""The table of a changelog is the same before and after the log was compacted."""

from __future__ import annotations

import time
from pathlib import Path

from pyspark.sql import SparkSession

from compat_tests.clients.fixtures import OwnBroker, create_topic
from compat_tests.clients.librdkafka import ConfluentKafka
from compat_tests.clients.model import Record
from compat_tests.spark.connector import wait_until
from compat_tests.spark.shop import CHANGELOG, GENERATE, Shop
from spark_examples.changelog import customers
from spark_examples.topics import end_offsets, read_topic

# A segment is closed by the first record after this, and cleaned soon after that.
SEGMENT_MS = 300
SOON_COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.ms": str(SEGMENT_MS),
}


def test_a_table_before_and_after_compaction(
    spark: SparkSession, own_broker: OwnBroker, tmp_path: Path
) -> None:
    with own_broker({"log.cleaner.backoff.ms": "100"}) as broker:
        shop = Shop(broker.bootstrap, "shop", tmp_path / "before")
        topic = shop.topic("customers")
        create_topic(broker.bootstrap, topic, 2, SOON_COMPACTED)
        shop.run_and_check(GENERATE, "--only", "customers")
        shop.run_and_check(CHANGELOG)
        before = customers(spark, tmp_path / "before" / "customers").collect()

        def compacted() -> bool:
            # Closes the segments; it is the change of somebody who is deleted at once.
            for partition in (0, 1):
                ConfluentKafka().produce(
                    broker.bootstrap, topic, [Record(None, b"nobody")], partition=partition
                )
            time.sleep(SEGMENT_MS / 1000)
            records = sum(1 for _ in read_topic(broker.bootstrap, topic))
            return records < sum(end_offsets(broker.bootstrap, topic).values()) - 200

        wait_until(compacted, "the log is compacted")
        shop.run_and_check(CHANGELOG)
        again = Shop(broker.bootstrap, "shop", tmp_path / "after")
        again.run_and_check(CHANGELOG)
        after = customers(spark, tmp_path / "after" / "customers").collect()
        assert sorted(after) == sorted(before)
