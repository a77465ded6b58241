"""pipeline: all programs, one after the other, on a week of the shop; `make pipeline`.

Without `--kafka.bootstrap.servers` it starts klamm, on a free port and in an empty folder.
Customers come first and become a table. Then orders and payments are written at a steady rate while
enrich and revenue run, and their lag is seen in their groups. In the end every program checks
itself, and a picture shows what happened.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from confluent_kafka import Consumer
from pyspark.sql import SparkSession

from spark_examples import archive, changelog, enrich, generate, lag, replay, revenue
from spark_examples.command_line import BOOTSTRAP, CheckError, Program, outcome
from spark_examples.events import ORDERS, PAYMENTS
from spark_examples.jars import MissingRequirementError
from spark_examples.lag import group_consumer, positions
from spark_examples.picture import Sample, draw
from spark_examples.session import spark_session
from spark_examples.topics import make_topic

# One week, about 260,000 events.
BLOCKS = 1512
RATE = 6_000.0
START_TIMEOUT_S = 30
SAMPLE_S = 1.0
LIVE_S_MAX = 900.0


class Pipeline:
    """The programs with the arguments that make them one pipeline."""

    def __init__(self, bootstrap: str, folder: Path, blocks: int, rate: float) -> None:
        self.bootstrap = bootstrap
        self.folder = folder
        self.blocks = blocks
        self.rate = rate
        self.samples: list[Sample] = []
        self._started_s = time.monotonic()

    def run(self, spark: SparkSession) -> None:
        customers = self.arguments("--blocks", self.blocks, "--only", "customers")
        self.stage(spark, generate.PROGRAM, customers)
        table = self.arguments(*self.state("changelog"), "--table", self.folder / "customers")
        self.stage(spark, changelog.PROGRAM, [*table, "--maxOffsetsPerTrigger", "10000"])
        self.live(spark)
        self.stage(spark, replay.PROGRAM, self.replay_arguments())
        self.stage(spark, archive.PROGRAM, self.archive_arguments())
        back = ("--restore", "shop.payments", "--into", "shop.payments-restored")
        self.stage(spark, archive.PROGRAM, [*self.archive_arguments(), *back])

    def live(self, spark: SparkSession) -> None:
        """Orders and payments come, and enrich and revenue keep up; then what is left is done."""
        sales = self.arguments("--blocks", self.blocks, "--only", "orders,payments")
        enriching = self.arguments(
            *(*self.state("enrich"), "--table", self.folder / "customers", "--group", "enrich"),
            # Half a day of orders: a batch leaves in any order, and revenue waits for a day.
            *("--maxOffsetsPerTrigger", 8_000),
        )
        earning = self.arguments(
            *(*self.state("revenue"), "--output", self.folder / "by-hour", "--group", "revenue"),
            *("--maxOffsetsPerTrigger", 20_000),
        )
        self.say("generate, enrich and revenue at the same time")
        for stream in (ORDERS, PAYMENTS, enrich.ENRICHED):
            make_topic(self.bootstrap, f"shop.{stream}", generate.PARTITIONS)
        always = ["--processingTime", "1 second"]
        with ThreadPoolExecutor() as threads:

            def begin(program: Program, argv: list[str]) -> Future[None]:
                return threads.submit(program.run, spark, program.parsed(argv))

            queries = [
                begin(enrich.PROGRAM, [*enriching, *always]),
                begin(revenue.PROGRAM, [*earning, *always]),
            ]
            written = begin(generate.PROGRAM, [*sales, "--rate", str(self.rate)])
            try:
                self.sample_until(written.done, queries)
                written.result()
                self.sample_until(lambda: self.samples[-1].behind == 0, queries)
                for query in spark.streams.active:
                    # Not in the middle of a batch: that would be sound, but noisy.
                    query.processAllAvailable()
            finally:
                for query in spark.streams.active:
                    query.stop()
        # What came last, and the windows that nothing follows any more.
        for program, argv in ((enrich.PROGRAM, enriching), (revenue.PROGRAM, earning)):
            self.stage(spark, program, argv)
            following = self.arguments(*self.state(program.name), "--group", program.name)
            self.check(spark, lag.PROGRAM, following)
        self.check(spark, generate.PROGRAM, sales)

    def sample_until(self, done: Callable[[], bool], queries: Sequence[Future[None]]) -> None:
        """One sample a second, and one line for every ten; a query that fails ends it."""
        deadline = time.monotonic() + LIVE_S_MAX
        with ExitStack() as stack:
            enriching, earning = (
                group_consumer(self.bootstrap, name) for name in ("enrich", "revenue")
            )
            stack.callback(enriching.close)
            stack.callback(earning.close)
            while not self.sampled(enriching, earning, done):
                for query in queries:
                    if query.done():
                        query.result()
                if time.monotonic() > deadline:
                    raise CheckError(f"still at work after {LIVE_S_MAX:.0f} s")
                time.sleep(SAMPLE_S)

    def sampled(self, enriching: Consumer, earning: Consumer, done: Callable[[], bool]) -> bool:
        """Take a sample, and say whether it was the last."""
        sales = positions(enriching, [f"shop.{ORDERS}", f"shop.{PAYMENTS}"]).values()
        paid = positions(earning, [f"shop.{enrich.ENRICHED}"]).values()
        lags = {
            group: sum(end - committed for committed, end in found)
            for group, found in (("enrich", sales), ("revenue", paid))
        }
        written, made = (sum(end for _, end in found) for found in (sales, paid))
        self.samples.append(Sample(self.elapsed_s(), written, made, lags))
        if len(self.samples) % 10 == 1:
            self.say(f"{written:,} events, {made:,} enriched, lag {lags}")
        return done()

    def replay_arguments(self) -> list[str]:
        return self.arguments(
            *(*self.state("replay"), "--output", self.folder / "by-city"),
            *("--old-checkpoint", self.folder / "state" / "revenue"),
            *("--old-output", self.folder / "by-hour", "--current", self.folder / "current"),
            *("--maxOffsetsPerTrigger", 50_000),
        )

    def archive_arguments(self) -> list[str]:
        topics = ("--subscribe", "shop.orders,shop.payments,shop.customers")
        return self.arguments(*self.state("archive"), "--archive", self.folder / "archive", *topics)

    def stage(self, spark: SparkSession, program: Program, argv: Sequence[str]) -> None:
        self.say(program.name)
        program.run(spark, program.parsed(argv))
        self.check(spark, program, argv)

    def check(self, spark: SparkSession, program: Program, argv: Sequence[str]) -> None:
        self.say(f"{program.name} ✓ {program.check(spark, program.parsed(argv))}")

    def arguments(self, *more: object) -> list[str]:
        return [f"--{BOOTSTRAP}", self.bootstrap, *map(str, more)]

    def state(self, name: str) -> tuple[object, ...]:
        return "--checkpointLocation", self.folder / "state" / name

    def elapsed_s(self) -> float:
        return time.monotonic() - self._started_s

    def say(self, text: str) -> None:
        print(f"{self.elapsed_s():6.0f} s  {text}", flush=True)


@contextmanager
def klamm(data_dir: Path) -> Iterator[str]:
    """A broker for this run: its address."""
    command = [sys.executable, "-m", "klamm.broker", "serve", "--listen", "127.0.0.1:0"]
    with (data_dir.parent / "klamm.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--data-dir", str(data_dir)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        if not said.startswith("klamm listening on "):
            raise MissingRequirementError(f"klamm did not start; see {log.name}")
        yield said.split()[-1]
    finally:
        process.terminate()
        process.wait(START_TIMEOUT_S)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make pipeline", description=__doc__.split("\n")[0])
    parser.add_argument(f"--{BOOTSTRAP}", dest="bootstrap", help="default: a klamm of its own")
    parser.add_argument("--folder", type=Path, default=Path("data/pipeline"), help="wiped first")
    parser.add_argument("--blocks", type=int, default=BLOCKS, help="each 400 s of the shop's time")
    parser.add_argument("--rate", type=float, default=RATE, help="events per second")
    parser.add_argument("--master", help="of Spark (default: two threads of this machine)")
    args = parser.parse_args()
    return outcome("pipeline", lambda: work(args))


def work(args: argparse.Namespace) -> None:
    folder = args.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    spark = spark_session("pipeline", args.master)
    if args.bootstrap:
        run(spark, args.bootstrap, folder, args.blocks, args.rate)
        return
    with klamm(folder / "klamm") as bootstrap:
        run(spark, bootstrap, folder, args.blocks, args.rate)


def run(spark: SparkSession, bootstrap: str, folder: Path, blocks: int, rate: float) -> Path:
    """All of it; where the picture is."""
    pipeline = Pipeline(bootstrap, folder, blocks, rate)
    pipeline.say(f"broker at {bootstrap}, files in {folder}")
    pipeline.run(spark)
    windows = spark.read.parquet(str(folder / "current")).collect()
    picture = folder / "pipeline.png"
    draw(picture, pipeline.samples, [(row.hour_ms, row.city, row.cents) for row in windows])
    pipeline.say(f"all checks hold; the picture is {picture}")
    return picture


if __name__ == "__main__":
    sys.exit(main())
