"""generate: the events of a seed into topics, at a chosen rate.

`python -m spark_examples.generate --kafka.bootstrap.servers localhost:9092 --blocks 100`

Two tasks make the events, and one writes them in the order of their arrival. So the changes of a
customer are a changelog, and no event is later than the shop made it: of two tasks that write, one
may be hours of the shop ahead, and what the other still has to write is behind the watermark of
whoever reads.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections import defaultdict
from collections.abc import Iterable

from pyspark.sql import SparkSession

from spark_examples.command_line import Program, require
from spark_examples.events import CUSTOMER_CHANGES, ORDERS, PAYMENTS, Event, block_events
from spark_examples.topics import LogRecord, end_offsets, make_topic, read_topic

PARTITIONS = 2
TASKS = 2
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

    numbered = spark.sparkContext.parallelize(list(enumerate(blocks)), TASKS)
    frame = spark.createDataFrame(numbered.flatMap(rows), f"{ROW}, place long", verifySchema=False)
    in_order = frame.repartition(1).sortWithinPartitions("place").drop("place")
    in_order.write.format("kafka").options(includeHeaders="true", **args.options).save()
    return count.value


def check(spark: SparkSession, args: argparse.Namespace) -> str:
    """The log holds exactly the seed's events, each partition in the order of their arrival.

    Of a topic that has been compacted meanwhile, only what compaction may take is missing.
    """
    counts = [f"{check_stream(args, stream):,} {stream}" for stream in args.only]
    return ", ".join(counts) + " of the seed"


def check_stream(args: argparse.Namespace, stream: str) -> int:
    """Check one topic; how many events it has had."""
    topic = f"{args.prefix}.{stream}"
    arrived = [
        event
        for block in range(args.blocks)
        for event in block_events(args.seed, block)
        if event.stream == stream
    ]
    had = sum(end_offsets(args.bootstrap, topic).values())
    require(had == len(arrived), f"{topic} has had {had} records, and the seed has {len(arrived)}")
    held: dict[int, list[Event]] = defaultdict(list)
    partition_of: dict[str, int] = {}
    for record in read_topic(args.bootstrap, topic):
        event = event_of(stream, record)
        held[record.partition].append(event)
        require(
            partition_of.setdefault(event.key, record.partition) == record.partition,
            f"{topic}: {event.key} is in several partitions",
        )
    if CONFIG[stream].get("cleanup.policy") == "compact":
        check_changelog(topic, arrived, held)
        return had
    missing = [event.key for event in arrived if event.key not in partition_of]
    require(not missing, f"{topic}: keys that are missing: {missing[:3]}")
    for partition, there in held.items():
        expected = [event for event in arrived if partition_of[event.key] == partition]
        check_partition(f"{topic}-{partition}", expected, there)
    return had


def check_partition(name: str, expected: list[Event], there: list[Event]) -> None:
    for at, (event, held) in enumerate(itertools.zip_longest(expected, there)):
        require(event == held, f"{name}, event {at}: {held} instead of {event}")


def check_changelog(topic: str, arrived: list[Event], held: dict[int, list[Event]]) -> None:
    """Key by key, because compaction may have been there."""
    there = by_key(itertools.chain.from_iterable(held.values()))
    for key, events in by_key(arrived).items():
        left = there.pop(key, [])
        require(may_be_compacted(events, left), f"{topic}, {key}: {left} instead of {events}")
    require(not there, f"{topic}: keys that the seed does not have: {list(there)[:3]}")


def by_key(events: Iterable[Event]) -> dict[str, list[Event]]:
    grouped: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        grouped[event.key].append(event)
    return grouped


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
