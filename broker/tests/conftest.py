"""Brokers for the tests, and the rule that holds in all of them: no step of a loop over 50 ms."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from klamm.broker import testing
from klamm.broker.garbage import set_apart, short_collections
from klamm.broker.loop_probe import LoopProbe
from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.raw_client import RawClient

# What the design allows; measured in CPU time, so a busy machine does not matter.
STEP_S_MAX = 0.05


@pytest.fixture(autouse=True)
def _short_collections() -> Iterator[None]:
    """A full collection walks over all that pytest and its plug-ins hold, in whatever thread has
    made the last object: tens of milliseconds that are not the broker's. What the broker itself
    keeps is set apart as in its own process."""
    set_apart()
    with short_collections():
        yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _short_steps(monkeypatch: pytest.MonkeyPatch, _short_collections: None) -> Iterator[None]:
    """Whatever broker a test embeds, its event loop was never held up while it served."""
    probes: list[LoopProbe] = []

    def make_probe() -> LoopProbe:
        probes.append(LoopProbe())
        return probes[-1]

    monkeypatch.setattr(testing, "LoopProbe", make_probe)
    yield
    for probe in probes:
        assert probe.longest_step_s <= STEP_S_MAX, f"a step of {probe.longest_task}"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    with running_broker(tmp_path / "data") as running:
        yield running


@pytest.fixture
def client(broker: RunningBroker) -> Iterator[RawClient]:
    with RawClient(broker) as connected:
        yield connected
