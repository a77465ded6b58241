"""archive: any topic into Parquet, by topic, date and hour; and from there into a topic again.

`python -m spark_examples.archive --kafka.bootstrap.servers localhost:9092
    --subscribe shop.orders --checkpointLocation state/archive --archive state/orders`
`... --archive state/orders --restore shop.orders --into shop.orders.restored`

Everything that a record is goes into the archive: partition, offset, timestamp, key, value and
headers. Spark's file sink writes each batch once. Its Kafka sink knows no timestamps, so records
are restored by an ordinary producer, one task for each partition, in the order of their offsets.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from pathlib import Path

from confluent_kafka import KafkaException, Producer
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from spark_examples.checkpoint import committed_offsets
from spark_examples.command_line import Program, ProgramError, require
from spark_examples.streaming import run_query, source, streaming_arguments
from spark_examples.topics import (
    TIMEOUT_S,
    LogRecord,
    end_offsets,
    is_compacted,
    make_topic,
    offset_ranges,
    partition_count,
    read_topic,
)

TOPICS = ("subscribe", "subscribePattern", "assign")
"""Spark's options that say what is read."""

Place = tuple[int, int]
"""A partition and an offset."""


def arguments(parser: argparse.ArgumentParser) -> None:
    streaming_arguments(parser)
    parser.add_argument("--archive", required=True, type=Path)
    parser.add_argument("--restore", metavar="TOPIC", help="of the archive; needs --into")
    parser.add_argument("--into", metavar="TOPIC", help="that is empty, or not there")
    parser.add_argument_group(
        "what is archived, as Spark names it",
        "--subscribe TOPIC,TOPIC or --subscribePattern REGEX or --assign JSON",
    )


def misuse(args: argparse.Namespace) -> str | None:
    if args.restore and not args.into:
        return "--restore needs --into"
    if not (args.restore or args.check or any(name in args.options for name in TOPICS)):
        return "which topics? --subscribe TOPIC,TOPIC names them"
    return None


def run(spark: SparkSession, args: argparse.Namespace) -> None:
    if args.restore:
        restore(spark, args)
        return
    args.options["includeHeaders"] = "true"
    records = source(spark, args).withColumns(
        {"date": sf.to_date("timestamp"), "hour": sf.hour("timestamp")}
    )
    writer = records.writeStream.format("parquet").partitionBy("topic", "date", "hour")
    run_query(spark, writer.option("path", str(args.archive)), args)


def restore(spark: SparkSession, args: argparse.Namespace) -> None:
    """Each record into the partition that it came from."""
    records = archived(spark, args.archive, args.restore)
    (last,) = records.agg(sf.max("partition").alias("partition")).collect()
    if last.partition is None:
        raise ProgramError(f"{args.archive} has no record of {args.restore}")
    # The last partitions may be empty.
    partitions = max(last.partition + 1, original_partitions(args))
    make_topic(args.bootstrap, args.into, partitions)
    ends = end_offsets(args.bootstrap, args.into)
    if len(ends) != partitions or any(ends.values()):
        raise ProgramError(f"{args.into} is not empty, or has not {partitions} partitions")
    bootstrap, topic = args.bootstrap, args.into
    in_order = records.repartition(partitions, "partition").sortWithinPartitions(
        "partition", "offset"
    )
    in_order.foreachPartition(lambda rows: produce(bootstrap, topic, rows))


def original_partitions(args: argparse.Namespace) -> int:
    """As many as the topic has; when it is gone, as many as it had when it was read last."""
    try:
        return partition_count(args.bootstrap, args.restore)
    except KafkaException:
        return len(committed_offsets(args.checkpoint).get(args.restore, {}))


def archived(spark: SparkSession, archive: Path, topic: str) -> DataFrame:
    return spark.read.parquet(str(archive)).where(sf.col("topic") == topic)


def produce(bootstrap: str, topic: str, rows: Iterable[Row]) -> None:
    """Runs in a task of Spark; fails when one record is not acknowledged."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    problems: list[object] = []
    for row in rows:
        while True:
            try:
                producer.produce(
                    topic,
                    partition=row.partition,
                    key=row.key,
                    value=row.value,
                    timestamp=round(row.timestamp.timestamp() * 1000),
                    headers=[(one.key, one.value) for one in row.headers or ()],
                    on_delivery=lambda error, _: problems.append(error) if error else None,
                )
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    left = producer.flush(TIMEOUT_S)
    if problems or left:
        raise KafkaException(f"{left} records without an answer, {len(problems)} refused")


def check(spark: SparkSession, args: argparse.Namespace) -> str:
    """No offset is missing, too much or there twice; and a restored topic is the original."""
    done = committed_offsets(args.checkpoint)
    require(bool(done), f"{args.checkpoint} has no batch")
    said = []
    for topic, read in done.items():
        rows = archived(spark, args.archive, topic).select("partition", "offset").collect()
        kept = Counter((row.partition, row.offset) for row in rows)
        twice = [place for place, count in kept.items() if count > 1]
        require(not twice, f"{topic}: offsets that are there twice, e.g. {twice[:3]}")
        log = {(one.partition, one.offset) for one in read_topic(args.bootstrap, topic)}
        # What came after the last batch is not missing, nor is a partition that is new.
        missing = sorted(at for at in log - kept.keys() if at[1] < read.get(at[0], 0))
        require(not missing, f"{topic}: offsets that are missing, e.g. {missing[:3]}")
        extra = still_due(args.bootstrap, topic, kept.keys() - log)
        require(not extra, f"{topic}: offsets that the log does not show, e.g. {extra[:3]}")
        said.append(f"{len(rows):,} records of {topic}")
    if args.restore:
        same = compare(args.bootstrap, args.restore, args.into)
        said.append(f"{args.into} is {args.restore}: {same:,} records")
    return "; ".join(said)


def still_due(bootstrap: str, topic: str, places: Set[Place]) -> list[Place]:
    """Of these, what neither retention nor compaction can have taken from the log."""
    if is_compacted(bootstrap, topic):
        return []
    ranges = offset_ranges(bootstrap, topic)
    return sorted(at for at in places if at[0] not in ranges or at[1] >= ranges[at[0]][0])


def compare(bootstrap: str, original: str, restored: str) -> int:
    """Partition by partition the same records; offsets only where the original has no gaps."""
    counts = [partition_count(bootstrap, topic) for topic in (original, restored)]
    require(counts[0] == counts[1], f"{counts[0]} and {counts[1]} partitions")
    before = contents(read_topic(bootstrap, original))
    after = contents(read_topic(bootstrap, restored))
    for partition in before.keys() | after.keys():
        one, other = before.get(partition, []), after.get(partition, [])
        pairs = enumerate(zip(one, other, strict=False))
        different = (index for index, (before_it, after_it) in pairs if before_it != after_it)
        first = next(different, None)
        require(
            first is None and len(one) == len(other),
            f"partition {partition}: {len(one)} and {len(other)} records, record {first} differs",
        )
    return sum(map(len, before.values()))


def contents(records: Iterator[LogRecord]) -> dict[int, list[tuple[object, ...]]]:
    """The records of each partition, without their offsets."""
    found: dict[int, list[tuple[object, ...]]] = {}
    for one in records:
        content = (one.key, one.value, one.headers, one.timestamp_ms)
        found.setdefault(one.partition, []).append(content)
    return found


PROGRAM = Program("archive", __doc__.split("\n")[0], arguments, run, check, misuse)
main = PROGRAM.main

if __name__ == "__main__":
    sys.exit(main())
