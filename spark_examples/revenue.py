"""revenue: what was paid in each hour, exactly once, as Parquet and as a topic.

`python -m spark_examples.revenue --kafka.bootstrap.servers localhost:9092
    --checkpointLocation state/revenue --output state/revenue-by-hour`

A window is published once, when the watermark says that nothing more can come for it. Spark may do
a batch twice: the query may be killed after it wrote the batch and before its checkpoint knew. So
both outputs are keyed to the batch:

- Parquet: batch N is the folder `batch=N`, which a second try overwrites with the same;
- the topic: batch N is one transaction. It holds the windows and, in a topic beside, the number N.
  A batch whose number is there already is not written again. A transaction that a killed query has
  left open is aborted when the next one starts with the same transactional id.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from spark_examples.checkpoint import query_id, watermark_ms
from spark_examples.command_line import Program, require
from spark_examples.enrich import ENRICHED, values
from spark_examples.streaming import run_query, source, streaming_arguments
from spark_examples.topics import TIMEOUT_S, make_topic, read_topic

REVENUE = "revenue"
HOUR_MS = 3_600_000
SCHEMA = "order_id string, amount_cents long, paid_ms long, city string"
COMPACTED = {"cleanup.policy": "compact"}


def arguments(parser: argparse.ArgumentParser) -> None:
    streaming_arguments(parser)
    parser.add_argument("--output", required=True, type=Path)
    parser.add_argument("--watermark", default="1 day", help="how late events may be")


def run(spark: SparkSession, args: argparse.Namespace) -> None:
    windows = by_hour(source(spark, args, f"{args.prefix}.{ENRICHED}"), args.watermark)
    view: View | None = None

    def write(frame: DataFrame, batch_id: int) -> None:
        nonlocal view
        # Now the checkpoint has its id, which it keeps over restarts.
        view = view or View(args.bootstrap, f"{args.prefix}.{REVENUE}", query_id(args.checkpoint))
        write_parquet(frame, args.output, batch_id)
        publish(view, frame.collect(), batch_id)

    run_query(spark, windows.writeStream.foreachBatch(write), args)
    # Spark keeps `write`, and with it the producer.
    view = None


def by_hour(enriched: DataFrame, watermark: str, *also_by: str) -> DataFrame:
    """Revenue by hour, and by other columns of an order if that is asked for."""
    rows = enriched.select(sf.from_json(sf.col("value").cast("string"), SCHEMA).alias("row"))
    paid = rows.select("row.*").withColumn("paid", sf.timestamp_millis("paid_ms"))
    if enriched.isStreaming:
        paid = paid.withWatermark("paid", watermark).dropDuplicatesWithinWatermark(["order_id"])
    else:
        paid = paid.dropDuplicates(["order_id"])
    totals = paid.groupBy(sf.window("paid", "1 hour"), *also_by).agg(
        sf.sum("amount_cents").alias("cents"), sf.count("*").alias("orders")
    )
    hour = (sf.unix_millis("window.start")).alias("hour_ms")
    return totals.select(hour, *also_by, "cents", "orders")


def write_parquet(frame: DataFrame, output: Path, batch_id: int) -> None:
    """A batch that is done again replaces what its first try has left."""
    frame.coalesce(1).write.mode("overwrite").parquet(str(output / f"batch={batch_id}"))


class View:
    """The topic of windows, and the one beside it that says which batches it holds."""

    def __init__(self, bootstrap: str, topic: str, query: str) -> None:
        self.topic = topic
        self.batches = f"{topic}.batches"
        self.query = query
        make_topic(bootstrap, self.topic, 1, COMPACTED)
        make_topic(bootstrap, self.batches, 1, COMPACTED)
        self.producer = Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-{query}"}
        )
        # From here on no other producer of this id can commit: only now the number is final.
        self.producer.init_transactions(TIMEOUT_S)
        written = (
            int(record.value or b"-1")
            for record in read_topic(bootstrap, self.batches)
            if record.key == query.encode()
        )
        self.last_batch = max(written, default=-1)


def publish(view: View, windows: list[Row], batch_id: int) -> None:
    """One transaction: the windows of a batch and its number, or nothing."""
    if batch_id <= view.last_batch:
        return
    producer = view.producer
    producer.begin_transaction()
    for window in windows:
        value = json.dumps({"cents": window.cents, "orders": window.orders})
        producer.produce(view.topic, key=str(window.hour_ms), value=value)
    producer.produce(view.batches, key=view.query, value=str(batch_id))
    producer.commit_transaction(TIMEOUT_S)
    view.last_batch = batch_id


def in_python(bootstrap: str, prefix: str) -> dict[int, dict[str, Any]]:
    """The same sums, from the log, by a dictionary."""
    hours: dict[int, dict[str, Any]] = defaultdict(lambda: {"cents": 0, "orders": 0})
    orders = {one["order_id"]: one for one in values(bootstrap, f"{prefix}.{ENRICHED}")}
    for one in orders.values():
        hour = hours[one["paid_ms"] // HOUR_MS * HOUR_MS]
        hour["cents"] += one["amount_cents"]
        hour["orders"] += 1
    return dict(hours)


def closed(hours: dict[int, dict[str, Any]], watermark: int) -> dict[int, dict[str, Any]]:
    """Those for which nothing more can come."""
    return {hour: sums for hour, sums in hours.items() if hour + HOUR_MS <= watermark}


def check(spark: SparkSession, args: argparse.Namespace) -> str:
    """Every closed window is there once, in Parquet and for read_committed readers of the topic."""
    expected = closed(in_python(args.bootstrap, args.prefix), watermark_ms(args.checkpoint))
    records = list(read_topic(args.bootstrap, f"{args.prefix}.{REVENUE}"))
    topic = {int(record.key or b"-1"): json.loads(record.value or b"null") for record in records}
    require(len(topic) == len(records), f"{len(records) - len(topic)} windows are published twice")
    rows = spark.read.parquet(str(args.output)).collect()
    parquet = {row.hour_ms: {"cents": row.cents, "orders": row.orders} for row in rows}
    require(len(parquet) == len(rows), f"{len(rows) - len(parquet)} windows are in Parquet twice")
    for name, windows in (("the topic", topic), ("Parquet", parquet)):
        wrong = [
            f"{hour}: {windows.get(hour)} instead of {expected.get(hour)}"
            for hour in sorted(windows.keys() | expected.keys())
            if windows.get(hour) != expected.get(hour)
        ]
        require(not wrong, f"{name} has {len(wrong)} wrong windows, e.g. {wrong[:2]}")
    return f"{len(expected)} windows, each once, in Parquet and in the topic"


PROGRAM = Program("revenue", __doc__.split("\n")[0], arguments, run, check)
main = PROGRAM.main

if __name__ == "__main__":
    sys.exit(main())
