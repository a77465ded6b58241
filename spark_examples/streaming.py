"""What the streaming programs share: their arguments, their source, and how a query starts."""

from __future__ import annotations

import argparse
import signal
import threading
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_examples.lag import follow
from spark_examples.session import cut_short
from spark_examples.topics import partition_count

# As the checks read. Spark's own default takes records of aborted transactions for data.
COMMITTED = {"kafka.isolation.level": "read_committed"}


def streaming_arguments(parser: argparse.ArgumentParser) -> None:
    """Where the checkpoint is, and how often a batch starts: as DataStreamWriter names them."""
    parser.add_argument("--checkpointLocation", dest="checkpoint", required=True, type=Path)
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--availableNow", action="store_true", help="all that is there (default)")
    when.add_argument("--processingTime", metavar="INTERVAL", help='for ever, e.g. "1 second"')
    parser.add_argument("--group", help="commit progress as offsets of this group: see lag.py")


def source(spark: SparkSession, args: argparse.Namespace, *topics: str) -> DataFrame:
    """The stream of some topics, from their beginning."""
    options = {"startingOffsets": "earliest", **COMMITTED, **args.options}
    if topics:
        options["subscribe"] = ",".join(topics)
    # Spark says only after a minute that a topic is missing; this raises at once. It knows no
    # passwords, which Spark may have been given.
    if "kafka.security.protocol" not in options:
        for topic in filter(None, options.get("subscribe", "").split(",")):
            partition_count(args.bootstrap, topic)
    return spark.readStream.format("kafka").options(**options).load()


def run_query(spark: SparkSession, writer: DataStreamWriter, args: argparse.Namespace) -> None:
    """Run a query to its end, and let Kafka's tools see its progress when that is asked for."""
    trigger: dict[str, Any] = (
        {"processingTime": args.processingTime} if args.processingTime else {"availableNow": True}
    )
    if args.group:
        follow(spark, args.bootstrap, args.group, args.checkpoint)
    located = writer.option("checkpointLocation", str(args.checkpoint))
    wait(spark, located.trigger(**trigger).start())


def wait(spark: SparkSession, query: StreamingQuery) -> None:
    """Wait for the end of a query, which Ctrl-C brings about.

    Raises:
        KeyboardInterrupt: when the query has ended for that reason.
    """
    if threading.current_thread() is not threading.main_thread():
        query.awaitTermination()
        return
    stopping: list[threading.Thread] = []

    def stop(*_: object) -> None:
        stopping.append(cut_short(spark, query.stop))

    before = signal.signal(signal.SIGINT, stop)
    try:
        query.awaitTermination()
    except StreamingQueryException:
        # A batch that is stopped half way may take that for an error.
        if not stopping:
            raise
    finally:
        signal.signal(signal.SIGINT, before)
    for thread in stopping:
        thread.join()
    if stopping:
        raise KeyboardInterrupt
