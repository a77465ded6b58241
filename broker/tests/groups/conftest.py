"""A broker for the tests of groups: few partitions behind them, and sessions may be short."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from klamm.broker.testing import RunningBroker, running_broker

FEW_PARTITIONS = {
    "offsets.topic.num.partitions": "4",
    "group.min.session.timeout.ms": "100",
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    with running_broker(tmp_path / "data", FEW_PARTITIONS) as running:
        yield running
