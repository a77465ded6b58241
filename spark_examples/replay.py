"""replay: new logic reads everything again, beside the old, and takes its place when it is level.

`python -m spark_examples.replay --kafka.bootstrap.servers localhost:9092
    --checkpointLocation state/replay --output state/revenue-by-city
    --old-checkpoint state/revenue --old-output state/revenue-by-hour --current state/current`

The log is the truth and every table is an opinion about it: to change the logic is to read again
from offset 0 (the Kappa architecture). The new logic here divides the revenue of an hour by city.
It has its own checkpoint and output, so that the old goes on meanwhile. `--current` is a link that
readers follow; it is turned to the new output, in one step, when that has read all there is.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from spark_examples.checkpoint import committed_offsets, watermark_ms
from spark_examples.command_line import Program, ProgramError, require
from spark_examples.enrich import ENRICHED
from spark_examples.revenue import HOUR_MS, by_hour, closed, in_python, write_parquet
from spark_examples.streaming import COMMITTED, run_query, source, streaming_arguments
from spark_examples.topics import end_offsets

ROUNDS_MAX = 20
"""So often the new query reads what has come while it was reading."""


def arguments(parser: argparse.ArgumentParser) -> None:
    streaming_arguments(parser)
    parser.add_argument("--output", required=True, type=Path)
    parser.add_argument("--old-checkpoint", required=True, type=Path)
    parser.add_argument("--old-output", required=True, type=Path)
    parser.add_argument("--current", required=True, type=Path, help="the link that readers follow")
    parser.add_argument("--watermark", default="1 day", help="how late events may be")


def run(spark: SparkSession, args: argparse.Namespace) -> None:
    topic = f"{args.prefix}.{ENRICHED}"
    if not args.current.is_symlink():
        turn(args.current, args.old_output)

    def write(frame: DataFrame, batch_id: int) -> None:
        write_parquet(frame, args.output, batch_id)

    for _ in range(ROUNDS_MAX):
        windows = by_hour(source(spark, args, topic), args.watermark, "city")
        run_query(spark, windows.writeStream.foreachBatch(write), args)
        if lag(args.bootstrap, topic, args.checkpoint) == 0:
            turn(args.current, args.output)
            return
    raise ProgramError(f"{topic} grows faster than it can be read")


def lag(bootstrap: str, topic: str, checkpoint: Path) -> int:
    """Records in the log that the query has not read: never a guess from timestamps."""
    read = committed_offsets(checkpoint).get(topic, {})
    ends = end_offsets(bootstrap, topic)
    return sum(end - read.get(partition, 0) for partition, end in ends.items())


def turn(link: Path, target: Path) -> None:
    """Point a link elsewhere; a reader sees the old or the new, and never none."""
    link.parent.mkdir(parents=True, exist_ok=True)
    new = link.with_name(f"{link.name}.new")
    new.unlink(missing_ok=True)
    new.symlink_to(target.resolve())
    os.replace(new, link)


def check(spark: SparkSession, args: argparse.Namespace) -> str:
    """Same input, same answer: the old logic over exactly what the old query had read gives what it
    gave; and the new output, its cities put together, is what plain Python computes."""
    topic = f"{args.prefix}.{ENRICHED}"
    old = committed_offsets(args.old_checkpoint)
    require(topic in old, f"{args.old_checkpoint} has no batch")
    cut = old[topic]
    until = {topic: {str(partition): offset for partition, offset in cut.items()}}
    options = {"subscribe": topic, **COMMITTED, **args.options, "endingOffsets": json.dumps(until)}
    again = spark.read.format("kafka").options(startingOffsets="earliest", **options).load()
    repeated = sums(by_hour(again, args.watermark))
    old_watermark = watermark_ms(args.old_checkpoint)
    repeated = {hour: cents for hour, cents in repeated.items() if hour + HOUR_MS <= old_watermark}
    require(
        repeated == sums(spark.read.parquet(str(args.old_output))),
        "the old logic over the same records gives another answer",
    )
    require(args.current.resolve() == args.output.resolve(), "readers still see the old output")
    expected = closed(in_python(args.bootstrap, args.prefix), watermark_ms(args.checkpoint))
    new = sums(spark.read.parquet(str(args.current)))
    require(
        new == {hour: one["cents"] for hour, one in expected.items()},
        "the new logic has another sum than the log",
    )
    return (
        f"{len(repeated)} windows again from exactly {sum(cut.values()):,} records, "
        f"{len(new)} by the new logic"
    )


def sums(windows: DataFrame) -> dict[int, int]:
    """Cents by hour, whatever else a window is divided by."""
    total: Counter[int] = Counter()
    for row in windows.collect():
        total[row.hour_ms] += row.cents
    return dict(total)


PROGRAM = Program("replay", __doc__.split("\n")[0], arguments, run, check)
main = PROGRAM.main

if __name__ == "__main__":
    sys.exit(main())
