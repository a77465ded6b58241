"""Checks that must fail: where nothing was made, and each way in which a join can be wrong.

test_pipeline.py breaks what the other stages made.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from compat_tests.clients.fixtures import Broker, create_topic
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
from spark_examples import lag
from spark_examples.command_line import Program

ORDER = {"order_id": "o-1", "customer_id": "c-1", "product": "rope", "amount_cents": 500}
PAID_ORDER = {**ORDER, "ordered_ms": 1_000, "paid_ms": 61_000, "city": "Chur"}


@pytest.fixture
def shop(spark: SparkSession, broker: Broker, topic_names: Iterator[str], tmp_path: Path) -> Shop:
    """With nothing in it."""
    return Shop(broker.bootstrap, next(topic_names), tmp_path)


@pytest.mark.parametrize(
    "program",
    [GENERATE, CHANGELOG, ENRICH, REVENUE, REPLAY, ARCHIVE, LAG],
    ids=lambda program: program.name,
)
def test_nothing_was_made(
    shop: Shop,
    program: Program,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lag, "CHECK_S_MAX", 0.0)
    of_lag = ("--checkpointLocation", shop.path("none"), "--group", shop.prefix)
    shop.check_fails(program, *(of_lag if program is LAG else ()))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{program.name}: CHECK FAILED: ")


@pytest.mark.parametrize(
    ("enriched", "problem"),
    [
        ([], "1 paid orders are missing"),
        ([{**PAID_ORDER, "city": "Brig"}], "1 orders are wrong"),
        ([PAID_ORDER, {**PAID_ORDER, "order_id": "o-2"}], "1 orders are wrong"),
        ([PAID_ORDER, {**PAID_ORDER, "amount_cents": 501}], "o-1 is there as"),
        ([PAID_ORDER, PAID_ORDER], None),
    ],
    ids=["missing", "wrong", "never paid", "two answers", "right, and twice"],
)
def test_the_join_of_one_order(
    shop: Shop,
    enriched: Sequence[dict[str, object]],
    problem: str | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It was paid after a minute, by a customer in Chur."""
    payment = {"payment_id": "p-1", "order_id": "o-1", "amount_cents": 500}
    for stream, values in (
        ("customers", [{"customer_id": "c-1", "name": "one", "city": "Chur"}]),
        ("orders", [{**ORDER, "event_time_ms": 1_000}]),
        ("payments", [{**payment, "event_time_ms": 61_000}]),
        ("enriched", enriched),
    ):
        create_topic(shop.bootstrap, shop.topic(stream))
        records = [Record(json.dumps(value).encode(), b"c-1") for value in values]
        ConfluentKafka().produce(shop.bootstrap, shop.topic(stream), records)
    if problem is None:
        shop.check(ENRICH)
    else:
        shop.check_fails(ENRICH)
        assert problem in capsys.readouterr().err
