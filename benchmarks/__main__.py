"""`python -m benchmarks`: measure, print a table, write it to results.md or another file."""

from __future__ import annotations

import argparse
import datetime
import os
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import report
from benchmarks.bench import QUICK, Bench, Sizes
from benchmarks.brokers import KAFKA, KLAMM
from benchmarks.rows import Row, all_rows, producer_rows, spark_rows
from benchmarks.runner import Runner
from compat_tests.apache_kafka import MissingRequirementError, jars


@dataclass(frozen=True)
class Table:
    """Rows that are measured in one run, and where their figures go."""

    rows: Callable[[], list[Row]]
    file_name: str
    minutes: float


STOCK_TABLE = Table(all_rows, "results.md", minutes=9.5)
SPARK_TABLE = Table(spark_rows, "spark-results.md", minutes=9.5)
PRODUCERS_TABLE = Table(producer_rows, "producers.md", minutes=24.5)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Compare klamm with Apache Kafka: the same clients, the same machine, one run.",
    )
    parser.add_argument(
        "--only", metavar="PATTERN", help="only rows whose name this regular expression finds"
    )
    parser.add_argument("--rounds", type=int, default=3, help="measurements per row (default 3)")
    parser.add_argument("--quick", action="store_true", help="short measurements, one round")
    parser.add_argument(
        "--minutes",
        type=float,
        help="start no measurement after this (default 9.5, and 24.5 with --producers)",
    )
    parser.add_argument(
        "--broker",
        choices=("both", "klamm", "kafka"),
        default="both",
        help="drive only one of them, for example under a profiler; writes no results",
    )
    parser.set_defaults(table=STOCK_TABLE)
    for option, table, rows in (
        ("--spark", SPARK_TABLE, "the rows of Spark instead"),
        ("--producers", PRODUCERS_TABLE, "the wide matrix of producers instead"),
    ):
        parser.add_argument(option, dest="table", action="store_const", const=table, help=rows)
    parser.add_argument("--list", action="store_true", help="name the rows and end")
    return parser.parse_args()


def main() -> int:
    args = _arguments()
    pattern = re.compile(args.only or "", re.IGNORECASE)
    table: Table = args.table
    rows = [row for row in table.rows() if pattern.search(row.name)]
    if not rows:
        print(f"no row matches {args.only!r}; --list names them", file=sys.stderr)
        return 2
    if args.list:
        print("\n".join(row.name for row in rows))
        return 0
    try:
        jars()
    except MissingRequirementError as problem:
        print(problem, file=sys.stderr)
        return 2
    # klamm starts as an installed one does, whose modules are compiled once.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    brokers = {"both": [KAFKA, KLAMM], "klamm": [KLAMM], "kafka": [KAFKA]}[args.broker]
    rounds = 1 if args.quick and args.rounds == 3 else args.rounds
    with (
        tempfile.TemporaryDirectory(prefix="klamm-bench-") as folder,
        Bench(Path(folder), QUICK if args.quick else Sizes()) as bench,
    ):
        minutes = args.minutes or table.minutes
        runner = Runner(bench, rows, brokers, seconds_max=minutes * 60)
        outcome = runner.run(rounds)
    print(report.terminal_table(rows, outcome))
    print(report.summary(outcome))
    print("\n".join(report.outcome_problems(rows, outcome)))
    if args.broker == "both" and not args.only:
        now = datetime.datetime.now(datetime.UTC)
        results = Path(__file__).with_name(table.file_name)
        results.write_text(report.markdown(rows, outcome, now))
        print(f"written to {results.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
