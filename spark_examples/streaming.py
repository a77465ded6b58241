"""What the streaming programs share: their arguments, their source, and how a query starts."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_examples.lag import follow


def streaming_arguments(parser: argparse.ArgumentParser) -> None:
    """Where the checkpoint is, and how often a batch starts: as DataStreamWriter names them."""
    parser.add_argument("--checkpointLocation", dest="checkpoint", required=True, type=Path)
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--availableNow", action="store_true", help="all that is there (default)")
    when.add_argument("--processingTime", metavar="INTERVAL", help='for ever, e.g. "1 second"')
    parser.add_argument("--group", help="commit progress as offsets of this group: see lag.py")


def source(spark: SparkSession, args: argparse.Namespace, *topics: str) -> DataFrame:
    """The stream of some topics, from their beginning."""
    options = {"startingOffsets": "earliest", **args.options}
    if topics:
        options["subscribe"] = ",".join(topics)
    return spark.readStream.format("kafka").options(**options).load()


def start(
    spark: SparkSession, writer: DataStreamWriter, args: argparse.Namespace
) -> StreamingQuery:
    """Start a query, and let its progress be seen by Kafka's tools when that is asked for."""
    trigger: dict[str, Any] = (
        {"processingTime": args.processingTime} if args.processingTime else {"availableNow": True}
    )
    if args.group:
        follow(spark, args.bootstrap, args.group, args.checkpoint)
    return writer.option("checkpointLocation", str(args.checkpoint)).trigger(**trigger).start()
