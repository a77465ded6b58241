"""A broker for the tests of transactions: few partitions behind them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.watched_fs import WatchedFileSystem

FEW_PARTITIONS = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
}


@pytest.fixture
def fs() -> WatchedFileSystem:
    return WatchedFileSystem()


@pytest.fixture
def broker(tmp_path: Path, fs: WatchedFileSystem) -> Iterator[RunningBroker]:
    with running_broker(tmp_path / "data", FEW_PARTITIONS, fs=fs) as running:
        yield running
