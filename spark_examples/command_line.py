"""The command line that all programs share.

Options of Spark keep Spark's names and are passed through as they are: `--maxOffsetsPerTrigger
1000` reaches the Kafka source, `--kafka.acks all` the Kafka client. Only what a program itself
needs has a name of its own, in small letters.
"""

from __future__ import annotations

import argparse
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaException
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_examples.jars import MissingRequirementError
from spark_examples.session import spark_session

BOOTSTRAP = "kafka.bootstrap.servers"
CONNECT_S_MAX = 10.0
INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""


class ProgramError(Exception):
    """What the user can mend: said in one line."""


class CheckError(ProgramError):
    """The property of a program does not hold for what it has made."""


def require(holds: bool, problem: str) -> None:
    """What every check is made of."""
    if not holds:
        raise CheckError(problem)


FAILURES = (ProgramError, KafkaException, TimeoutError, PySparkException, Py4JJavaError)
"""What a line says as well as a traceback; where it is Spark's, its log has told the rest."""


def outcome(name: str, work: Callable[[], None]) -> int:
    """Do the work of a program; its exit code."""
    try:
        work()
    except MissingRequirementError as problem:
        print(problem, file=sys.stderr)
        return 2
    except CheckError as problem:
        print(f"{name}: CHECK FAILED: {problem}", file=sys.stderr)
        return 1
    except FAILURES as problem:
        print(f"{name}: {in_one_line(problem)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return INTERRUPTED
    return 0


def in_one_line(problem: BaseException) -> str:
    """Without the plan of the query, and without Java's stack."""
    said = problem.java_exception.toString() if isinstance(problem, Py4JJavaError) else problem
    first = str(said).strip().partition("\n")[0]
    return first.partition("terminated with exception: ")[2] or first


def require_broker(bootstrap: str) -> None:
    """Say at once what Kafka's clients say after a minute, if at all.

    Raises:
        MissingRequirementError: when nothing listens at any of the addresses.
    """
    for address in bootstrap.split(","):
        host, _, port = address.strip().rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_S_MAX).close()
        except (OSError, ValueError):
            continue
        return
    raise MissingRequirementError(f"no broker listens at {bootstrap}")


def no_misuse(args: argparse.Namespace) -> None:
    """Most programs can do with any arguments that were parsed."""


@dataclass(frozen=True)
class Program:
    """A stage of the pipeline: what it does, and the check of what it has made.

    Attributes:
        arguments: adds the program's own arguments.
        run: does the work.
        check: raises CheckError, or says in one line what holds.
        misuse: says what is wrong with arguments that do not go together.
    """

    name: str
    description: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[SparkSession, argparse.Namespace], None]
    check: Callable[[SparkSession, argparse.Namespace], str]
    misuse: Callable[[argparse.Namespace], str | None] = no_misuse

    def main(self, argv: Sequence[str] | None = None) -> int:
        args = self.parsed(sys.argv[1:] if argv is None else argv)
        return outcome(self.name, lambda: self.work(args))

    def work(self, args: argparse.Namespace) -> None:
        spark = spark_session(self.name, args.master, dict(args.conf))
        require_broker(args.bootstrap)
        if not args.check:
            self.run(spark, args)
            return
        try:
            print(f"{self.name}: {self.check(spark, args)}")
        except FAILURES as problem:
            # A topic that is not there is a failed check as well.
            raise CheckError(in_one_line(problem)) from problem

    def parsed(self, argv: Sequence[str]) -> argparse.Namespace:
        parser = argparse.ArgumentParser(
            prog=f"python -m spark_examples.{self.name}",
            description=self.description,
            epilog="All other options are Spark's own and go to the Kafka source and sink.",
            # An abbreviation could be meant for Spark.
            allow_abbrev=False,
        )
        parser.add_argument(
            "--check", action="store_true", help="test what was made, and do nothing"
        )
        parser.add_argument(f"--{BOOTSTRAP}", dest="bootstrap", required=True, metavar="HOST:PORT")
        parser.add_argument("--prefix", default="shop", help="of all topics (default: shop)")
        parser.add_argument("--master", help="of Spark (default: two threads of this machine)")
        parser.add_argument(
            "--conf",
            action="append",
            default=[],
            type=_setting,
            metavar="KEY=VALUE",
            help="of Spark",
        )
        self.arguments(parser)
        args, others = parser.parse_known_args(argv)
        args.options = {BOOTSTRAP: args.bootstrap, **_pairs(parser, others)}
        problem = self.misuse(args)
        if problem:
            parser.error(problem)
        return args


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


def _pairs(parser: argparse.ArgumentParser, others: Sequence[str]) -> dict[str, str]:
    """`--name value` and `--name=value` of options that only Spark knows."""
    found: dict[str, str] = {}
    words = iter(others)
    for word in words:
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--"):
            parser.error(f"{word!r} belongs to no option")
        if not equals:
            value = next(words, "")
            if not value or value.startswith("--"):
                parser.error(f"--{name} needs a value")
        found[name] = value
    return found
