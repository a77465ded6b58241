"""The table, for the terminal and for results.md."""

from __future__ import annotations

import datetime
import statistics
from collections.abc import Sequence

from benchmarks.brokers import KAFKA, KLAMM
from benchmarks.machine import machine_kind
from benchmarks.rows import Row
from benchmarks.runner import Outcome, Samples
from compat_tests.apache_kafka import KAFKA_VERSION

HEADINGS = ("row", "unit", "klamm", "Kafka", "ratio", "first target", "target", "met", "others")
NOTHING = "-"
_RIGHT_ALIGNED = {"klamm", "Kafka", "ratio", "others"}


def number(value: float) -> str:
    """Three significant figures, or whole with thousands separated."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def cell(row: Row, samples: Samples | None) -> str:
    """The median, and behind it the best and the spread of all rounds."""
    if samples is None:
        return NOTHING
    values = samples.values(row.figure)
    if not values:
        # What failed stands below the table in full.
        return "failed" if samples.problem.startswith("failed") else samples.problem or NOTHING
    median = statistics.median(values)
    if len(values) == 1:
        return number(median)
    best = min(values) if row.lower_is_better else max(values)
    spread = (max(values) - min(values)) / median if median else 0.0
    return f"{number(median)} ({number(best)}, {spread:.0%})"


def ratio(row: Row, klamm: Samples | None, kafka: Samples | None) -> float | None:
    """The median of klamm over the median of Kafka, None when one of them is not there."""
    if klamm is None or kafka is None:
        return None
    ours, theirs = klamm.values(row.figure), kafka.values(row.figure)
    if not ours or not theirs or statistics.median(theirs) == 0:
        return None
    return statistics.median(ours) / statistics.median(theirs)


def verdict(row: Row, reached: float | None) -> str:
    if row.target is None or reached is None:
        return NOTHING
    met = reached <= row.target if row.lower_is_better else reached >= row.target
    return "yes" if met else "no"


def bound(row: Row, target: float | None) -> str:
    if target is None:
        return NOTHING
    return f"{'≤' if row.lower_is_better else '≥'} {target:g}"


def line(row: Row, outcome: Outcome) -> tuple[str, ...]:
    """One row of the table as text."""
    klamm, kafka = outcome.of(row, KLAMM), outcome.of(row, KAFKA)
    reached = ratio(row, klamm, kafka)
    shares = [share for one in (klamm, kafka) if one for share in one.others_shares]
    return (
        row.name,
        row.unit,
        cell(row, klamm),
        cell(row, kafka),
        NOTHING if reached is None else f"{reached:.2f}",
        bound(row, row.first_target),
        bound(row, row.target),
        verdict(row, reached),
        f"{statistics.mean(shares):.0%}" if shares else NOTHING,
    )


def terminal_table(rows: Sequence[Row], outcome: Outcome) -> str:
    lines = [HEADINGS, *(line(row, outcome) for row in rows)]
    widths = [max(len(one[column]) for one in lines) for column in range(len(HEADINGS))]
    return "\n".join(
        "  ".join(
            text.rjust(width) if heading in _RIGHT_ALIGNED else text.ljust(width)
            for text, width, heading in zip(one, widths, HEADINGS, strict=True)
        ).rstrip()
        for one in lines
    )


def markdown(rows: Sequence[Row], outcome: Outcome, now: datetime.datetime) -> str:
    """The whole of results.md."""
    alignment = ["---:" if heading in _RIGHT_ALIGNED else "---" for heading in HEADINGS]
    table = [HEADINGS, alignment, *(line(row, outcome) for row in rows)]
    return "\n".join(
        [
            "# Benchmark results",
            "",
            f"{now:%Y-%m-%d}, {machine_kind()}; klamm and Apache Kafka {KAFKA_VERSION} in one run.",
            summary(outcome),
            "Cells: the median of the rounds (the best, the spread from lowest to highest in",
            "percent of the median). `others`: the share of the machine that other processes took",
            "meanwhile. `met` is about the target, not the first one. MB are 10^6 bytes of record",
            "values: records/s follow from the size. What the rows mean: docs/benchmarks.md.",
            "",
            *("| " + " | ".join(one) + " |" for one in table),
            *([""] if outcome_problems(rows, outcome) else []),
            *outcome_problems(rows, outcome),
            "",
        ]
    )


def summary(outcome: Outcome) -> str:
    """How long it took, how many rounds there were, and who else used the machine."""
    minutes, seconds = divmod(round(outcome.seconds), 60)
    return (
        f"{outcome.rounds_done} of {outcome.rounds_wanted} rounds complete in {minutes} min "
        f"{seconds} s; other processes took {outcome.others_share:.0%} of the machine."
    )


def outcome_problems(rows: Sequence[Row], outcome: Outcome) -> list[str]:
    """Why rows have no figures, one line each."""
    found: dict[str, None] = {}
    for row in rows:
        for broker in (KLAMM, KAFKA):
            samples = outcome.of(row, broker)
            if samples is not None and samples.problem:
                found[f"- {broker}, {row.name}: {samples.problem}"] = None
    return list(found)
