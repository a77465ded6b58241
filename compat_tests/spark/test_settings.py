"""What needs no session: its settings, and the numbers of the picture."""

from __future__ import annotations

import pytest

from spark_examples.picture import smooth_rates
from spark_examples.session import defaults


def test_a_cluster_finds_its_driver() -> None:
    """127.0.0.1 is the driver only for executors that are on its machine."""
    assert defaults("local[2]")["spark.driver.host"] == "127.0.0.1"
    assert "spark.driver.host" not in defaults("spark://some-host:7077")


def test_rates_are_means_of_the_seconds_before() -> None:
    """Of ten, of fewer where there are no more, or since the sample before."""
    times = [0.0, 2.0, 10.0, 12.0, 30.0]
    counts = [0, 100, 100, 600, 1000]
    assert smooth_rates(times, counts) == pytest.approx([0.0, 50.0, 10.0, 50.0, 400 / 18])
