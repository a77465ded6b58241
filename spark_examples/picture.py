"""The picture of a run: how many records went through, how far the queries were behind, and what
the shop has earned."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_examples.events import DAY_MS, START_MS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SMOOTH_S = 10.0

STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.prop_cycle": "cycler('color', ['#4477aa', '#ee6677', '#228833', '#ccbb44', '#66ccee', "
    "'#aa3377', '#ee8866', '#bbbbbb'])",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "grid.alpha": 0.4,
    "legend.columnspacing": 1.2,
    "legend.frameon": False,
    "legend.handlelength": 1.2,
}


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

    with matplotlib.rc_context(STYLE):
        figure, (flow, lag, earned) = pyplot.subplots(3, 1, figsize=(10, 11), layout="constrained")
        _draw_live(flow, lag, samples)
        _draw_revenue(earned, windows)
        for axes in (flow, lag, earned):
            axes.set_ylim(bottom=0)
            axes.yaxis.set_major_formatter("{x:,.0f}")
            if axes.get_legend_handles_labels()[1]:
                # Above the curves, beside the title, where it hides nothing.
                axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=8)
        figure.savefig(path, dpi=110)
        pyplot.close(figure)


def _draw_live(flow: Axes, lag: Axes, samples: Sequence[Sample]) -> None:
    """Throughput and lag, one above the other, on the same time."""
    times = [sample.at_s - samples[0].at_s for sample in samples]
    flow.set_title("Throughput")
    for label, counts in (
        ("orders and payments, written", [sample.written for sample in samples]),
        ("paid orders, enriched", [sample.made for sample in samples]),
    ):
        rates = smooth_rates(times, counts)
        flow.plot(times, rates, label=label)
        flow.fill_between(times, rates, alpha=0.15)
    flow.set_ylabel(f"records per second, mean of {SMOOTH_S:.0f} s")
    lag.set_title("Lag: end of the log minus committed offset")
    for group in samples[0].lags:
        lag.plot(times, [sample.lags[group] for sample in samples], label=group)
    lag.set_ylabel("records")
    for axes in (flow, lag):
        axes.set_xlabel("seconds since the first order")
        axes.set_xlim(0, max(times[-1], 1.0))


def smooth_rates(times: Sequence[float], counts: Sequence[int]) -> list[float]:
    """Records per second, each over the seconds before it: micro-batches come in bursts."""
    rates, first = [], 0
    for last, time_s in enumerate(times):
        # At least as long as that: samples may be further apart.
        while first + 1 < last and times[first + 1] <= time_s - SMOOTH_S:
            first += 1
        took_s = time_s - times[first]
        rates.append((counts[last] - counts[first]) / took_s if took_s else 0.0)
    return rates


def _draw_revenue(earned: Axes, windows: Sequence[tuple[int, str, int]]) -> None:
    earned.set_title("Revenue by hour and city")
    by_city: dict[str, dict[int, float]] = defaultdict(dict)
    for hour_ms, city, cents in windows:
        by_city[city][hour_ms] = cents / 100
    hours = sorted({hour_ms for hour_ms, _, _ in windows})
    days = [(hour_ms - START_MS) / DAY_MS for hour_ms in hours]
    cities = sorted(by_city)
    stacked = [[by_city[city].get(hour_ms, 0.0) for hour_ms in hours] for city in cities]
    if windows:
        earned.stackplot(days, stacked, labels=cities, step="post")
        earned.set_xlim(days[0], max(days[-1], days[0] + 1 / 24))
    earned.set_xlabel("days of the shop")
    earned.set_ylabel("francs per hour")
