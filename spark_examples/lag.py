"""lag: how far a query is behind, shown by Kafka's own tools.

`python -m spark_examples.enrich ... --checkpointLocation state/enrich --group enrich` and then
`kafka-consumer-groups --bootstrap-server localhost:9092 --describe --group enrich`, or
`python -m spark_examples.lag --kafka.bootstrap.servers localhost:9092
    --checkpointLocation state/enrich --group enrich`

Spark keeps its offsets in its checkpoint and commits none to Kafka, so that tools see nothing. The
listener of this file commits the end of every batch as offsets of a group. The group is only a
display: the query never reads it, and goes on from its checkpoint whatever the group says.

Lag is a number of records, from offsets. It is never guessed from timestamps.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from spark_examples.checkpoint import Offsets, committed_offsets, parsed, query_id
from spark_examples.command_line import Program, require
from spark_examples.topics import TIMEOUT_S, end_offset, end_offsets, partitions

CHECK_S_MAX = 30.0
"""Spark tells its listeners a little later than it writes its checkpoint."""

Place = tuple[str, int]
"""A topic and the number of a partition."""


class LagListener(StreamingQueryListener):
    """Commits the progress of one query, which is known by its checkpoint, as group offsets."""

    def __init__(self, bootstrap: str, group: str, checkpoint: Path) -> None:
        self._checkpoint = checkpoint
        self._consumer = group_consumer(bootstrap, group)
        self._closed = False

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        if self._closed or str(event.progress.id) != query_id(self._checkpoint):
            return
        read: Offsets = {}
        for source in event.progress.sources:
            read.update(parsed(source.endOffset or "{}"))
        self.commit(read)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """The last event of a run; the next one has a listener of its own."""
        if not self._closed and str(event.id) == query_id(self._checkpoint):
            self._closed = True
            self._consumer.close()

    def commit(self, read: Mapping[str, Mapping[int, int]]) -> None:
        offsets = [
            TopicPartition(topic, partition, offset)
            for topic, partitions in read.items()
            for partition, offset in partitions.items()
        ]
        if offsets:
            self._consumer.commit(offsets=offsets, asynchronous=False)


def follow(spark: SparkSession, bootstrap: str, group: str, checkpoint: Path) -> None:
    """Commit the progress of the query with this checkpoint, until it ends."""
    spark.streams.addListener(LagListener(bootstrap, group, checkpoint))


def group_consumer(bootstrap: str, group: str) -> Consumer:
    """A client that commits and reads offsets of a group without being its member."""
    return Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False}
    )


def positions(consumer: Consumer, topics: Sequence[str]) -> dict[Place, tuple[int, int]]:
    """For each partition what the consumer's group has committed, and the end of the log."""
    asked = [TopicPartition(topic, one) for topic in topics for one in partitions(consumer, topic)]
    return {
        # A partition without an offset has not been read at all.
        (one.topic, one.partition): (max(one.offset, 0), end_offset(consumer, one))
        for one in consumer.committed(asked, timeout=TIMEOUT_S)
    }


def group_lag(bootstrap: str, group: str, topics: Sequence[str]) -> dict[Place, int]:
    """What kafka-consumer-groups shows: the end of the log minus the committed offset."""
    consumer = group_consumer(bootstrap, group)
    try:
        found = positions(consumer, topics)
    finally:
        consumer.close()
    return {place: end - committed for place, (committed, end) in found.items()}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--checkpointLocation", dest="checkpoint", required=True, type=Path)
    parser.add_argument("--group", required=True)


def run(spark: SparkSession, args: argparse.Namespace) -> None:
    """Show the lag, and commit it first: for a query that ran without the listener."""
    read = committed_offsets(args.checkpoint)
    LagListener(args.bootstrap, args.group, args.checkpoint).commit(read)
    for (topic, partition), lag in group_lag(args.bootstrap, args.group, list(read)).items():
        print(f"{args.group}  {topic}-{partition}  lag {lag:,}")


def check(spark: SparkSession, args: argparse.Namespace) -> str:
    """The lag shown is the end of the log minus the offset of the checkpoint."""
    deadline = time.monotonic() + CHECK_S_MAX
    while True:
        read = committed_offsets(args.checkpoint)
        expected = {
            (topic, partition): end - partitions.get(partition, 0)
            for topic, partitions in read.items()
            for partition, end in end_offsets(args.bootstrap, topic).items()
        }
        shown = group_lag(args.bootstrap, args.group, list(read))
        if shown == expected or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    require(bool(shown) and shown == expected, f"{shown} is shown, and {expected} is true")
    return (
        f"group {args.group} shows the true lag of {len(shown)} partitions: {sum(shown.values())}"
    )


PROGRAM = Program("lag", __doc__.split("\n")[0], arguments, run, check)
main = PROGRAM.main

if __name__ == "__main__":
    sys.exit(main())
