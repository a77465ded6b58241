"""The programs of spark_examples, one after the other, on one small shop.

Each test is a stage: it runs the program, lets it check itself, and breaks what it made to see that
the check would have told. Stages need those before them, which they ask for as fixtures.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from pyspark.sql import DataFrame, SparkSession

from compat_tests.apache_kafka import tool
from compat_tests.clients.fixtures import Broker, OwnBroker, create_topic, unique_names
from compat_tests.clients.librdkafka import ConfluentKafka
from compat_tests.clients.model import Record
from compat_tests.spark.shop import (
    ARCHIVE,
    CHANGELOG,
    ENRICH,
    GENERATE,
    LAG,
    REPLAY,
    REVENUE,
    Shop,
)
from compat_tests.spark.victim import run_and_die, run_and_kill
from spark_examples import changelog, lag, pipeline, revenue
from spark_examples.checkpoint import committed_batch, committed_offsets
from spark_examples.topics import end_offsets

# So late that the watermark has closed windows, which a second try could write once more.
LATE_BATCH = 4
CLEAN_UP = "spark.sql.streaming.noDataMicroBatches.enabled"


@pytest.fixture(scope="module")
def shop(spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """With all its events in the log."""
    shop = Shop(broker.bootstrap, next(unique_names("shop")), tmp_path_factory.mktemp("shop"))
    shop.run(GENERATE)
    return shop


@pytest.fixture(scope="module")
def shop_with_customers(shop: Shop) -> Shop:
    shop.run(CHANGELOG)
    return shop


@pytest.fixture(scope="module")
def enriched_shop(spark: SparkSession, shop_with_customers: Shop) -> Shop:
    """By a query whose last batch has orders in it: none follows that only cleans up."""
    spark.conf.set(CLEAN_UP, "false")
    shop_with_customers.run(ENRICH, "--group", shop_with_customers.topic("enrich"))
    spark.conf.unset(CLEAN_UP)
    return shop_with_customers


@pytest.fixture(scope="module")
def selling_shop(spark: SparkSession, enriched_shop: Shop) -> Shop:
    """With its revenue, by a query that was killed between commit and checkpoint."""
    arguments = [*enriched_shop.arguments(REVENUE), "--maxOffsetsPerTrigger", "300"]
    run_and_die("revenue", "publish", LATE_BATCH, arguments)
    assert_windows(spark, enriched_shop.path("by-hour"))
    enriched_shop.run(REVENUE, "--maxOffsetsPerTrigger", "300")
    return enriched_shop


def assert_windows(spark: SparkSession, output: str) -> None:
    """The batch that is to be done again has some."""
    assert spark.read.parquet(f"{output}/batch={LATE_BATCH - 1}").count() > 0


def test_generate(shop: Shop) -> None:
    shop.check(GENERATE)
    shop.check_fails(GENERATE, "--blocks", "59")
    shop.check_fails(GENERATE, "--seed", "2")


def test_changelog(shop_with_customers: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop_with_customers.check(CHANGELOG)
    shop_with_customers.check_fails(CHANGELOG, "--prefix", "other")
    assert "has read nothing of other.customers" in capsys.readouterr().err


def test_changelog_of_a_query_that_is_killed(shop: Shop, tmp_path: Path) -> None:
    """Between sink and checkpoint, where a batch is done and must be done again."""
    other = Shop(shop.bootstrap, shop.prefix, tmp_path)
    limited = [*other.arguments(CHANGELOG), "--maxOffsetsPerTrigger", "300"]
    run_and_die("changelog", "upsert", 2, limited)
    checkpoint = tmp_path / "changelog"
    assert committed_batch(checkpoint) == 0
    other.check(CHANGELOG)
    other.run(CHANGELOG, "--maxOffsetsPerTrigger", "300")
    assert (committed_batch(checkpoint) or 0) > 1
    other.check(CHANGELOG)
    newest = max((tmp_path / "customers").glob("version=*"))
    shutil.rmtree(newest)
    other.check_fails(CHANGELOG)
    # Nor does a run go on without its table, and make one that lacks what was there.
    other.run_fails(CHANGELOG)


def test_changelog_of_a_query_that_is_killed_at_any_batch(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and after the first, the second and the last batch is written.

    What outlives SIGKILL are the files, as they are at that moment: they are copied while one query
    goes on, and other queries go on from the copies. So no JVM has to die for each of them.
    """
    whole = Shop(shop.bootstrap, shop.prefix, tmp_path / "whole")
    moments: list[Path] = []

    def keep_the_files(when: str) -> None:
        moments.append(tmp_path / f"{when}-{len(moments) // 2}")
        shutil.copytree(whole.folder, moments[-1])

    upsert = changelog.upsert

    def watched(changes: DataFrame, table: Path, version: int) -> None:
        keep_the_files("before")
        upsert(changes, table, version)
        keep_the_files("after")

    monkeypatch.setattr(changelog, "upsert", watched)
    whole.run(CHANGELOG, "--maxOffsetsPerTrigger", "300")
    monkeypatch.undo()
    batches = len(moments) // 2
    assert batches > 2
    assert committed_batch(whole.folder / "changelog") == batches - 1
    for moment in (*moments[:4], *moments[-2:]):
        done, when = int(moment.name.rpartition("-")[2]), moment.name.partition("-")[0]
        assert committed_batch(moment / "changelog") == (done - 1 if done else None)
        assert (done in changelog.versions(moment / "customers")) == (when == "after")
        Shop(shop.bootstrap, shop.prefix, moment).run_and_check(CHANGELOG)


def test_enrich(enriched_shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    enriched_shop.check(ENRICH)
    assert ", 0 of them twice" in capsys.readouterr().out


def test_enrich_of_a_query_that_is_killed(
    shop: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the middle of a batch, of which some is in the topic: it is written there again."""
    other = Shop(shop.bootstrap, f"{shop.prefix}-killed", tmp_path)
    other.run(GENERATE, "--blocks", "20")
    other.run(CHANGELOG)
    target = other.topic("enriched")
    create_topic(other.bootstrap, target, 2)
    written: dict[int | None, int] = {}

    def half_a_batch() -> bool:
        done = committed_batch(tmp_path / "enrich")
        count = sum(end_offsets(other.bootstrap, target).values())
        return count > written.setdefault(done, count)

    run_and_kill("enrich", other.arguments(ENRICH), half_a_batch)
    done = committed_batch(tmp_path / "enrich")
    other.run_and_check(ENRICH)
    assert ", 0 of them twice" not in capsys.readouterr().out
    assert (committed_batch(tmp_path / "enrich") or 0) > (done or 0)


def test_lag(enriched_shop: Shop) -> None:
    """Kafka's own tool shows what the check computes."""
    group = enriched_shop.topic("enrich")
    arguments = ("--checkpointLocation", enriched_shop.path("enrich"), "--group", group)
    enriched_shop.check(LAG, *arguments)
    read = committed_offsets(enriched_shop.folder / "enrich")
    shown = tool(
        *("kafka-consumer-groups", "--bootstrap-server", enriched_shop.bootstrap),
        *("--describe", "--group", group),
    )
    lines = [line.split() for line in shown.stdout.splitlines() if line.startswith(group)]
    assert {(line[1], int(line[2])): (int(line[3]), int(line[5])) for line in lines} == {
        (topic, partition): (offset, 0)
        for topic, partitions in read.items()
        for partition, offset in partitions.items()
    }, shown.stdout + shown.stderr


def test_lag_of_a_query_that_ran_without_the_listener(
    enriched_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program commits what the listener would have; what else a group may say is found."""
    group = enriched_shop.topic("late")
    arguments = ("--checkpointLocation", enriched_shop.path("enrich"), "--group", group)
    monkeypatch.setattr(lag, "CHECK_S_MAX", 0.0)
    enriched_shop.check_fails(LAG, *arguments)
    enriched_shop.run_and_check(LAG, *arguments)
    read = committed_offsets(enriched_shop.folder / "enrich")[enriched_shop.topic("orders")]
    wrong = TopicPartition(enriched_shop.topic("orders"), 0, read[0] - 1)
    consumer = lag.group_consumer(enriched_shop.bootstrap, group)
    consumer.commit(offsets=[wrong], asynchronous=False)
    consumer.close()
    enriched_shop.check_fails(LAG, *arguments)


def test_revenue(selling_shop: Shop) -> None:
    """Every window once, although the query was killed between commit and checkpoint."""
    selling_shop.check(REVENUE)
    hour = next(iter(revenue.in_python(selling_shop.bootstrap, selling_shop.prefix)))
    wrong = Record(json.dumps({"cents": 1, "orders": 1}).encode(), str(hour).encode())
    other = Shop(selling_shop.bootstrap, selling_shop.prefix, selling_shop.folder)
    ConfluentKafka().produce(other.bootstrap, other.topic("revenue"), [wrong])
    other.check_fails(REVENUE)


def test_replay(spark: SparkSession, selling_shop: Shop) -> None:
    """Killed between sink and checkpoint; readers see the old output until the new is level."""
    limited = ("--maxOffsetsPerTrigger", "300")
    arguments = [*selling_shop.arguments(REPLAY), *limited]
    run_and_die("replay", "write_parquet", LATE_BATCH, arguments)
    assert committed_batch(Path(selling_shop.path("replay"))) == LATE_BATCH - 2
    assert_windows(spark, selling_shop.path("by-city"))
    assert Path(selling_shop.path("current")).resolve().name == "by-hour"
    selling_shop.check_fails(REPLAY)
    selling_shop.run_and_check(REPLAY, *limited)
    assert Path(selling_shop.path("current")).resolve().name == "by-city"
    files = Path(selling_shop.path("by-city")).glob("batch=*/*.parquet")
    largest = max(files, key=lambda file: file.stat().st_size)
    shutil.rmtree(largest.parent)
    selling_shop.check_fails(REPLAY)


def test_archive(shop: Shop) -> None:
    """There and back; then a file of the archive is lost."""
    shop.run_and_check(ARCHIVE, "--maxOffsetsPerTrigger", "1000")
    back = ("--restore", shop.topic("orders"), "--into", shop.topic("orders-restored"))
    shop.run(ARCHIVE, *back)
    shop.check(ARCHIVE, *back)
    one = ConfluentKafka()
    one.produce(shop.bootstrap, shop.topic("orders-restored"), [Record(b"one more")])
    shop.check_fails(ARCHIVE, *back)
    # Without Spark's own list of them, nobody else misses a file.
    shutil.rmtree(Path(shop.path("archived"), "_spark_metadata"))
    shop.check(ARCHIVE)
    next(Path(shop.path("archived")).rglob("part-*.parquet")).unlink()
    shop.check_fails(ARCHIVE)


def test_archive_of_a_query_that_is_killed(shop: Shop, tmp_path: Path) -> None:
    """In the middle of its second batch or a later one: files are there that belong to none."""
    other = Shop(shop.bootstrap, shop.prefix, tmp_path)
    limited = [*other.arguments(ARCHIVE), "--maxOffsetsPerTrigger", "300"]

    def half_a_batch() -> bool:
        files = {path.name for path in tmp_path.glob("archived/**/part-*.parquet")}
        batches = (tmp_path / "archived" / "_spark_metadata").glob("[0-9]*")
        written = "".join(path.read_text(encoding="utf-8") for path in batches)
        return bool(written) and any(name not in written for name in files)

    run_and_kill("archive", limited, half_a_batch)
    done = committed_batch(tmp_path / "archive")
    assert done is not None
    other.check(ARCHIVE)
    other.run_and_check(ARCHIVE)
    assert (committed_batch(tmp_path / "archive") or 0) > done


def test_make_pipeline(spark: SparkSession, own_broker: OwnBroker, tmp_path: Path) -> None:
    """All stages together, as the command runs them, on some minutes of the shop."""
    with own_broker() as broker:
        picture = pipeline.run(spark, broker.bootstrap, tmp_path, blocks=10, rate=1000)
    assert picture.read_bytes().startswith(b"\x89PNG")
