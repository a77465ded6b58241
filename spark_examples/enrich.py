"""enrich: orders meet their payments and their customers, as a stream back into Kafka.

`python -m spark_examples.enrich --kafka.bootstrap.servers localhost:9092
    --checkpointLocation state/enrich --table state/customers`

Orders and payments may be late and may come twice. The watermark says for how long: a double within
it is dropped, and an order waits for its payment until neither can come any more. Customers are
those of the table when the query starts.

Spark's Kafka sink writes at least once: a batch that is done again is in the topic twice, and
whoever reads it drops doubles by `order_id`, as revenue does.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_examples.changelog import customers, fold
from spark_examples.command_line import Program, require
from spark_examples.events import CUSTOMER_CHANGES, ORDERS, PAYMENT_MS_MAX, PAYMENTS
from spark_examples.generate import PARTITIONS
from spark_examples.streaming import run_query, source, streaming_arguments
from spark_examples.topics import make_topic, read_topic

ENRICHED = "enriched"
ORDER = "order_id string, customer_id string, product string, amount_cents long, event_time_ms long"
PAYMENT = "payment_id string, order_id string, amount_cents long, event_time_ms long"
COLUMNS = ("order_id", "customer_id", "product", "amount_cents", "ordered_ms", "paid_ms", "city")
NOWHERE = "unknown"
"""The city of a customer who is not in the table."""


def arguments(parser: argparse.ArgumentParser) -> None:
    streaming_arguments(parser)
    parser.add_argument("--table", required=True, type=Path, help="made by changelog")
    parser.add_argument("--watermark", default="2 hours", help="how late events may be")


def run(spark: SparkSession, args: argparse.Namespace) -> None:
    target = f"{args.prefix}.{ENRICHED}"
    make_topic(args.bootstrap, target, PARTITIONS)
    joined = enriched(
        source(spark, args, f"{args.prefix}.{ORDERS}"),
        source(spark, args, f"{args.prefix}.{PAYMENTS}"),
        # Kept in Spark: the files of this version are gone when the table has moved on.
        customers(spark, args.table).select("customer_id", "city").localCheckpoint(),
        args.watermark,
    )
    rows = joined.select(
        sf.col("order_id").alias("key"), sf.to_json(sf.struct(*COLUMNS)).alias("value")
    )
    sink = rows.writeStream.format("kafka").options(topic=target, **args.options)
    run_query(spark, sink, args)


def enriched(
    orders: DataFrame, payments: DataFrame, cities: DataFrame, watermark: str
) -> DataFrame:
    """Each paid order once, with the city of its customer."""
    order = once(orders, ORDER, "order_id", watermark).withColumnsRenamed(
        {"event_time_ms": "ordered_ms", "event_time": "ordered"}
    )
    payment = (
        once(payments, PAYMENT, "payment_id", watermark)
        .withColumnsRenamed({"event_time_ms": "paid_ms", "event_time": "paid", "order_id": "pays"})
        .drop("amount_cents")
    )
    soon = f"ordered + interval {PAYMENT_MS_MAX} milliseconds"
    paid = order.join(payment, sf.expr(f"order_id = pays and paid >= ordered and paid <= {soon}"))
    return paid.join(sf.broadcast(cities), "customer_id", "left").fillna({"city": NOWHERE})


def once(stream: DataFrame, schema: str, identity: str, watermark: str) -> DataFrame:
    """The events of a topic with their times, without doubles."""
    rows = stream.select(sf.from_json(sf.col("value").cast("string"), schema).alias("row"))
    return (
        rows.select("row.*")
        .withColumn("event_time", sf.timestamp_millis("event_time_ms"))
        .withWatermark("event_time", watermark)
        .dropDuplicatesWithinWatermark([identity])
    )


def joined_in_python(bootstrap: str, prefix: str) -> dict[str, dict[str, Any]]:
    """The same join, from the logs, by dictionaries."""
    cities = {
        key: json.loads(value)["city"]
        for key, value in fold(bootstrap, f"{prefix}.{CUSTOMER_CHANGES}").items()
    }
    paid_ms = {
        one["order_id"]: one["event_time_ms"] for one in values(bootstrap, f"{prefix}.{PAYMENTS}")
    }
    joined: dict[str, dict[str, Any]] = {}
    for order in values(bootstrap, f"{prefix}.{ORDERS}"):
        paid = paid_ms.get(order["order_id"])
        ordered = order.pop("event_time_ms")
        if paid is not None and 0 <= paid - ordered <= PAYMENT_MS_MAX:
            city = cities.get(order["customer_id"], NOWHERE)
            times = {"ordered_ms": ordered, "paid_ms": paid}
            joined[order["order_id"]] = {**order, **times, "city": city}
    return joined


def values(bootstrap: str, topic: str) -> list[dict[str, Any]]:
    """All values of a topic."""
    return [json.loads(record.value or b"null") for record in read_topic(bootstrap, topic)]


def check(spark: SparkSession, args: argparse.Namespace) -> str:
    """The topic holds the join that plain Python computes from the logs."""
    expected = joined_in_python(args.bootstrap, args.prefix)
    made = values(args.bootstrap, f"{args.prefix}.{ENRICHED}")
    seen: dict[str, dict[str, Any]] = {}
    for one in made:
        before = seen.setdefault(one["order_id"], one)
        require(before == one, f"{one['order_id']} is there as {before} and as {one}")
    missing = expected.keys() - seen.keys()
    require(not missing, f"{len(missing)} paid orders are missing, e.g. {sorted(missing)[:3]}")
    wrong = [key for key, one in seen.items() if expected.get(key) != one]
    require(not wrong, f"{len(wrong)} orders are wrong, e.g. {[seen[key] for key in wrong[:3]]}")
    return f"{len(seen):,} paid orders, {len(made) - len(seen)} of them twice, are the join"


PROGRAM = Program("enrich", __doc__.split("\n")[0], arguments, run, check)
main = PROGRAM.main

if __name__ == "__main__":
    sys.exit(main())
