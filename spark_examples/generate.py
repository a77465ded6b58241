"""generate: the events of a seed into topics, at a chosen rate.

`python -m spark_examples.generate --kafka.bootstrap.servers localhost:9092 --blocks 100`

Every key is written by one task at a time, so that its records keep their order: that is what makes
the changes of a customer a changelog.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections import defaultdict

from pyspark.sql import SparkSession

from spark_examples.command_line import Program, require
from spark_examples.events import CUSTOMER_CHANGES, ORDERS, PAYMENTS, Event, block_events
from spark_examples.topics import LogRecord, end_offsets, make_topic, read_topic

PARTITIONS = 2
EVENTS_PER_BLOCK = 170
"""About; so much is written at a time that a second is filled."""

CHUNK_BLOCKS_MAX = 100
ROW = "topic string, key string, value string, headers array<struct<key:string,value:binary>>"

# A changelog is kept for ever, but only the last change of each customer.
CONFIG = {ORDERS: {}, PAYMENTS: {}, CUSTOMER_CHANGES: {"cleanup.policy": "compact"}}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--blocks", type=int, default=100, help="each 400 s of the shop's time")
    parser.add_argument("--rate", type=float, default=0.0, help="events per second; 0: no limit")
    parser.add_argument(
        "--only",
        type=lambda text: text.split(","),
        default=list(CONFIG),
        help=f"some of {','.join(CONFIG)} (default: all)",
    )


def run(spark: SparkSession, args: argparse.Namespace) -> None:
    for stream in args.only:
        make_topic(args.bootstrap, f"{args.prefix}.{stream}", PARTITIONS, CONFIG[stream])
    started, written = time.monotonic(), 0
    chunk = CHUNK_BLOCKS_MAX
    if args.rate:
        chunk = max(1, min(chunk, round(args.rate / EVENTS_PER_BLOCK)))
    for first in range(0, args.blocks, chunk):
        last = min(first + chunk, args.blocks)
        written += write(spark, args, range(first, last))
        # The clock of the whole run: a slow chunk is made up for by the next.
        ahead_s = written / args.rate - (time.monotonic() - started) if args.rate else 0.0
        time.sleep(max(0.0, ahead_s))
    took_s = time.monotonic() - started
    print(f"generate: {written:,} events in {took_s:.1f} s", file=sys.stderr, flush=True)


def write(spark: SparkSession, args: argparse.Namespace, blocks: range) -> int:
    """Write the events of some blocks; their number."""
    seed, prefix, only = args.seed, args.prefix, args.only
    count = spark.sparkContext.accumulator(0)

    def rows(numbered: tuple[int, int]) -> list[tuple[object, ...]]:
        events = [event for event in block_events(seed, numbered[1]) if event.stream in only]
        count.add(len(events))
        return [
            (f"{prefix}.{event.stream}", event.key, event.value, list(event.headers), place)
            for place, event in enumerate(events, numbered[0] * 1_000_000)
        ]

    numbered = spark.sparkContext.parallelize(list(enumerate(blocks)), PARTITIONS)
    frame = spark.createDataFrame(numbered.flatMap(rows), f"{ROW}, place long", verifySchema=False)
    in_order = frame.repartition(PARTITIONS, "key").sortWithinPartitions("place").drop("place")
    in_order.write.format("kafka").options(includeHeaders="true", **args.options).save()
    return count.value


def check(spark: SparkSession, args: argparse.Namespace) -> str:
    """The log holds exactly the seed's events: for each key, the same ones in the same order.

    Of a topic that has been compacted meanwhile, only what compaction may take is missing.
    """
    expected: dict[tuple[str, str], list[Event]] = defaultdict(list)
    counts: dict[str, int] = dict.fromkeys(args.only, 0)
    for block in range(args.blocks):
        for event in block_events(args.seed, block):
            if event.stream in counts:
                expected[event.stream, event.key].append(event)
                counts[event.stream] += 1
    held: dict[tuple[str, str], list[Event]] = defaultdict(list)
    for stream in args.only:
        topic = f"{args.prefix}.{stream}"
        ends = end_offsets(args.bootstrap, topic)
        require(
            sum(ends.values()) == counts[stream],
            f"{topic} has had {sum(ends.values())} records, and the seed has {counts[stream]}",
        )
        for record in read_topic(args.bootstrap, topic):
            event = event_of(stream, record)
            held[stream, event.key].append(event)
    for (stream, key), events in expected.items():
        there = held.pop((stream, key), [])
        compacted = stream == CUSTOMER_CHANGES and may_be_compacted(events, there)
        require(there == events or compacted, f"{stream}, {key}: {there} instead of {events}")
    require(not held, f"keys that the seed does not have: {list(itertools.islice(held, 3))}")
    return ", ".join(f"{count:,} {stream}" for stream, count in counts.items()) + " of the seed"


def event_of(stream: str, record: LogRecord) -> Event:
    assert record.key is not None
    value = None if record.value is None else record.value.decode()
    headers = tuple((name, value or b"") for name, value in record.headers)
    return Event(stream, record.key.decode(), value, headers)


def may_be_compacted(events: list[Event], there: list[Event]) -> bool:
    """Whether compaction may have left these: some in order, the last unless it is a deletion."""
    remaining = iter(events)
    in_order = all(event in remaining for event in there)
    last = events[-1]
    return in_order and (there[-1:] == [last] or (last.value is None and not there))


PROGRAM = Program("generate", __doc__.split("\n")[0], arguments, run, check)
main = PROGRAM.main

if __name__ == "__main__":
    sys.exit(main())
