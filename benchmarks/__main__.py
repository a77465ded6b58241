"""`python -m benchmarks`: measure, print the table, write results.md."""

from __future__ import annotations

import argparse
import datetime
import re
import sys
import tempfile
from pathlib import Path

from benchmarks import report
from benchmarks.bench import QUICK, Bench, Sizes
from benchmarks.brokers import KAFKA, KLAMM
from benchmarks.rows import all_rows, spark_rows
from benchmarks.runner import Runner
from compat_tests.apache_kafka import MissingRequirementError, jars

RESULTS = Path(__file__).with_name("results.md")
SPARK_RESULTS = Path(__file__).with_name("spark-results.md")


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
        "--minutes", type=float, default=9.5, help="start no measurement after this (default 9.5)"
    )
    parser.add_argument(
        "--broker",
        choices=("both", "klamm", "kafka"),
        default="both",
        help="drive only one of them, for example under a profiler; writes no results",
    )
    parser.add_argument("--spark", action="store_true", help="the rows of Spark instead")
    parser.add_argument("--list", action="store_true", help="name the rows and end")
    return parser.parse_args()


def main() -> int:
    args = _arguments()
    pattern = re.compile(args.only or "", re.IGNORECASE)
    known = spark_rows() if args.spark else all_rows()
    rows = [row for row in known if pattern.search(row.name)]
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
    brokers = {"both": [KAFKA, KLAMM], "klamm": [KLAMM], "kafka": [KAFKA]}[args.broker]
    rounds = 1 if args.quick and args.rounds == 3 else args.rounds
    with (
        tempfile.TemporaryDirectory(prefix="klamm-bench-") as folder,
        Bench(Path(folder), QUICK if args.quick else Sizes()) as bench,
    ):
        runner = Runner(bench, rows, brokers, seconds_max=args.minutes * 60)
        outcome = runner.run(rounds)
    print(report.terminal_table(rows, outcome))
    print(report.summary(outcome))
    print("\n".join(report.outcome_problems(rows, outcome)))
    if args.broker == "both" and not args.only:
        now = datetime.datetime.now(datetime.UTC)
        results = SPARK_RESULTS if args.spark else RESULTS
        results.write_text(report.markdown(rows, outcome, now))
        print(f"written to {results.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
