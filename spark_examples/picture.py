"""The picture of a run: how many records went through, how far the queries were behind, and what
the shop has earned."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from spark_examples.events import DAY_MS, START_MS


@dataclass(frozen=True)
class Sample:
    """One look at the logs and groups.

    Attributes:
        written: events of the shop in the log so far.
        made: paid orders that enrich has written so far.
        lags: for each group the records that it has not read.
    """

    at_s: float
    written: int
    made: int
    lags: dict[str, int]

    @property
    def behind(self) -> int:
        return sum(self.lags.values())


def draw(path: Path, samples: Sequence[Sample], windows: Sequence[tuple[int, str, int]]) -> None:
    """Write a PNG.

    Args:
        windows: begin of the hour in milliseconds, city, cents.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (flow, lag, earned) = pyplot.subplots(3, 1, figsize=(10, 11), layout="constrained")
    times = [sample.at_s for sample in samples]

    flow.set_title("Throughput")
    for label, counts in (
        ("orders and payments, written", [sample.written for sample in samples]),
        ("paid orders, enriched", [sample.made for sample in samples]),
    ):
        rates = [
            (after - before) / (later - earlier)
            for (before, after), (earlier, later) in zip(
                pairwise(counts), pairwise(times), strict=True
            )
        ]
        flow.step(times[1:], rates, label=label, where="pre")
    flow.set_ylabel("records per second")

    lag.set_title("Lag: end of the log minus committed offset")
    for group in samples[0].lags:
        lag.plot(times, [sample.lags[group] for sample in samples], label=group)
    lag.set_ylabel("records")

    for axes in (flow, lag):
        axes.set_xlabel("seconds since the start")
        axes.set_ylim(bottom=0)
        axes.legend()

    earned.set_title("Revenue by hour and city, from the new logic")
    by_city: dict[str, dict[int, float]] = defaultdict(dict)
    for hour_ms, city, cents in windows:
        by_city[city][hour_ms] = cents / 100
    hours = sorted({hour_ms for hour_ms, _, _ in windows})
    days = [(hour_ms - START_MS) / DAY_MS for hour_ms in hours]
    cities = sorted(by_city)
    stacked = [[by_city[city].get(hour_ms, 0.0) for hour_ms in hours] for city in cities]
    if windows:
        earned.stackplot(days, stacked, labels=cities, step="post")
        earned.legend(loc="upper left", ncols=4)
    earned.set_xlabel("days of the shop")
    earned.set_ylabel("francs per hour")

    figure.savefig(path, dpi=110)
    pyplot.close(figure)
