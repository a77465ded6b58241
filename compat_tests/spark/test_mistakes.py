"""What a user is told who forgot something: one line, and an exit code that is not 0."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from compat_tests.clients.fixtures import Broker, create_topic
from compat_tests.clients.librdkafka import ConfluentKafka
from compat_tests.clients.model import Record
from compat_tests.spark.connector import wait_until
from compat_tests.spark.shop import ARCHIVE, CHANGELOG, ENRICH, GENERATE, Shop
from compat_tests.spark.victim import run_and_interrupt
from spark_examples.checkpoint import committed_batch
from spark_examples.command_line import INTERRUPTED, in_one_line
from spark_examples.topics import end_offsets


@pytest.fixture
def shop(spark: SparkSession, broker: Broker, topic_names: Iterator[str], tmp_path: Path) -> Shop:
    """With nothing in it."""
    return Shop(broker.bootstrap, next(topic_names), tmp_path)


def test_no_broker(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    away = Shop("127.0.0.1:1,[::1]:1,nonsense", shop.prefix, shop.folder)
    assert GENERATE.main(away.arguments(GENERATE)) == 2
    assert capsys.readouterr().err == f"no broker listens at {away.bootstrap}\n"


def test_no_topic(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    for program, topic in ((CHANGELOG, "customers"), (ENRICH, "orders"), (ARCHIVE, "orders")):
        shop.run_fails(program)
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"{program.name}: topic {shop.topic(topic)}: ")


def test_enrich_before_changelog(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    for stream in ("orders", "payments"):
        create_topic(shop.bootstrap, shop.topic(stream))
    shop.run_fails(ENRICH)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("holds no table: run changelog first")


def test_arguments_of_archive(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    whole = shop.arguments(ARCHIVE)
    for arguments, code, said in (
        ([*whole, "--restore", "orders"], 2, "--restore needs --into"),
        (whole[: whole.index("--subscribe")] + whole[-2:], 2, "which topics? --subscribe"),
        (["--help"], 0, "--subscribePattern"),
    ):
        with pytest.raises(SystemExit) as ended:
            ARCHIVE.main(arguments)
        assert ended.value.code == code
        printed = capsys.readouterr()
        assert said in printed.out + printed.err


def test_a_failure_of_spark_in_one_line() -> None:
    """Its own first line, without the names of the query, which say nothing."""
    failed = "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: gone\n=== Plan"
    assert in_one_line(TimeoutError(failed)) == "gone"
    assert in_one_line(TimeoutError("slow\nat some.java")) == "slow"


def test_ctrl_c(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """It stops a query that runs for ever, which can go on later."""
    create_topic(shop.bootstrap, shop.topic("orders"))
    ConfluentKafka().produce(shop.bootstrap, shop.topic("orders"), [Record(b"one")])
    checkpoint = shop.folder / "archive"

    def press() -> None:
        wait_until(lambda: committed_batch(checkpoint) == 0, "the first batch")
        os.kill(os.getpid(), signal.SIGINT)

    pressing = threading.Thread(target=press)
    pressing.start()
    for_ever = [*shop.arguments(ARCHIVE), "--processingTime", "100 milliseconds"]
    assert ARCHIVE.main(for_ever) == INTERRUPTED
    pressing.join()
    assert capsys.readouterr().err == "archive: interrupted\n"
    shop.run_and_check(ARCHIVE)


def test_ctrl_c_in_a_job(shop: Shop) -> None:
    """What PySpark and the JVM would say of work that is cut short is not heard."""
    create_topic(shop.bootstrap, shop.topic("orders"))
    endless = [*shop.arguments(GENERATE), "--blocks", "1000000"]

    def at_work() -> bool:
        return bool(end_offsets(shop.bootstrap, shop.topic("orders"))[0])

    assert_quiet("generate", run_and_interrupt("generate", endless, at_work))


def test_ctrl_c_in_a_batch(shop: Shop) -> None:
    """Where the JVM runs Python, whose exception comes back with long traces of both."""
    shop.run(GENERATE)
    checkpoint = shop.folder / "changelog"
    for_ever = ("--processingTime", "100 milliseconds", "--maxOffsetsPerTrigger", "10")

    def at_work() -> bool:
        planned = sum(1 for path in checkpoint.glob("offsets/*") if path.name.isdigit())
        return planned > 1 + (committed_batch(checkpoint) or planned)

    arguments = [*shop.arguments(CHANGELOG), *for_ever]
    assert_quiet("changelog", run_and_interrupt("changelog", arguments, at_work))


def assert_quiet(name: str, printed: str) -> None:
    *before, last = printed.splitlines()
    assert last == f"{name}: interrupted", printed
    assert not re.search(r"^\s+at |ERROR|Traceback|Exception", "\n".join(before), re.M), printed
