"""changelog: a compacted topic of customer changes becomes a table of customers.

`python -m spark_examples.changelog --kafka.bootstrap.servers localhost:9092
    --checkpointLocation state/changelog --table state/customers`

Every micro-batch N writes a whole new version N of the table: version N-1, with the last change of
each key in the batch put in, and deletions taken out. A batch that is done again, because the query
was killed before its checkpoint knew, reads the same version N-1 and writes the same version N. For
tables that are too large for that, MERGE into a table format does the same in place.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_examples.checkpoint import committed_batch, committed_offsets
from spark_examples.command_line import Program, ProgramError, require
from spark_examples.events import CUSTOMER_CHANGES
from spark_examples.streaming import run_query, source, streaming_arguments
from spark_examples.topics import read_topic

ROW = "customer_id string, value string, partition int, offset long"
CUSTOMER = "customer_id string, name string, city string, event_time_ms long"


def arguments(parser: argparse.ArgumentParser) -> None:
    streaming_arguments(parser)
    parser.add_argument("--table", required=True, type=Path)


def run(spark: SparkSession, args: argparse.Namespace) -> None:
    if not (args.checkpoint / "offsets").exists() and versions(args.table):
        raise ProgramError(f"{args.table} is not empty, but {args.checkpoint} knows nothing of it")
    done = committed_batch(args.checkpoint)
    if done is not None:
        # It raises when the table is gone: a new one would begin in the middle of the log.
        stored(spark, args.table, done)
    changes = source(spark, args, f"{args.prefix}.{CUSTOMER_CHANGES}").selectExpr(
        "cast(key as string) customer_id", "cast(value as string) value", "partition", "offset"
    )

    def write(frame: DataFrame, batch_id: int) -> None:
        upsert(frame, args.table, batch_id)

    run_query(spark, changes.writeStream.foreachBatch(write), args)


def upsert(changes: DataFrame, table: Path, version: int) -> None:
    """Write the next version of the table."""
    last = changes.groupBy("customer_id").agg(
        *(sf.max_by(name, "offset").alias(name) for name in ("value", "partition", "offset"))
    )
    before = stored(changes.sparkSession, table, version - 1)
    untouched = before.join(last, "customer_id", "left_anti")
    after = untouched.unionByName(last.where("value is not null"))
    after.coalesce(1).write.mode("overwrite").parquet(str(table / f"version={version}"))
    # The version before is needed if this batch must be done again; those before that are not.
    for old in versions(table):
        if old < version - 1:
            shutil.rmtree(table / f"version={old}")


def versions(table: Path) -> list[int]:
    """The versions that are complete: Spark writes _SUCCESS when all else is there."""
    complete = table.glob("version=*/_SUCCESS")
    return sorted(int(path.parent.name.partition("=")[2]) for path in complete)


def stored(spark: SparkSession, table: Path, version: int) -> DataFrame:
    """A version of the table; before the first one it is empty."""
    if version < 0:
        return spark.createDataFrame([], ROW)
    if version not in versions(table):
        raise ProgramError(f"{table} has lost version {version}, which the checkpoint goes on from")
    return spark.read.schema(ROW).parquet(str(table / f"version={version}"))


def customers(spark: SparkSession, table: Path) -> DataFrame:
    """The table for its readers: the newest version that is complete, by its columns."""
    complete = versions(table)
    if not complete:
        raise ProgramError(f"{table} holds no table: run changelog first")
    rows = stored(spark, table, complete[-1])
    return rows.select(sf.from_json("value", CUSTOMER).alias("row")).select("row.*")


def fold(bootstrap: str, topic: str, until: dict[int, int] | None = None) -> dict[str, str]:
    """What a changelog means, in plain Python: the last value of each key, without the deleted.

    Args:
        until: for each partition the offset before which to stop; None reads everything.
    """
    state: dict[str, str] = {}
    for record in read_topic(bootstrap, topic):
        assert record.key is not None
        if until is None or record.offset < until.get(record.partition, 0):
            if record.value is None:
                state.pop(record.key.decode(), None)
            else:
                state[record.key.decode()] = record.value.decode()
    return state


def check(spark: SparkSession, args: argparse.Namespace) -> str:
    """The table is the fold of the log, up to where the checkpoint says that it was read."""
    topic = f"{args.prefix}.{CUSTOMER_CHANGES}"
    batch = committed_batch(args.checkpoint)
    require(batch is not None, f"{args.checkpoint} has no batch")
    assert batch is not None
    rows = stored(spark, args.table, batch).collect()
    table = {row.customer_id: row.value for row in rows}
    require(len(table) == len(rows), "a customer is twice in the table")
    offsets = committed_offsets(args.checkpoint)
    require(topic in offsets, f"{args.checkpoint} has read nothing of {topic}")
    read = offsets[topic]
    expected = fold(args.bootstrap, topic, read)
    wrong = sorted(
        key for key in table.keys() | expected.keys() if table.get(key) != expected.get(key)
    )
    require(not wrong, f"{len(wrong)} customers differ from the log, for example {wrong[:3]}")
    return f"{len(table):,} customers are the fold of {sum(read.values()):,} changes"


PROGRAM = Program("changelog", __doc__.split("\n")[0], arguments, run, check)
main = PROGRAM.main

if __name__ == "__main__":
    sys.exit(main())
