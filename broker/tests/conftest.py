"""Brokers for the tests, and the rules that hold in all of them: no step of a loop over 50 ms, and
none that waits for the disk.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from klamm.broker import testing
from klamm.broker.broker import Broker
from klamm.broker.garbage import set_apart, short_collections
from klamm.broker.loop_probe import LoopProbe
from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.raw_client import RawClient
from klamm.log.fs import OsFile, OsFileSystem
from klamm.log.future import FutureLog

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


@pytest.fixture(autouse=True)
def _loops_do_not_sync(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever broker a test embeds, its event loop has waited for no sync and for no cold read
    while it served: a slow disk would have held up everybody. The one exception is the end of a
    move between log directories, when the log does not stop growing."""
    serving: set[threading.Thread] = set()
    waited: list[str] = []

    def noting(kind: type, name: str) -> Callable[..., Any]:
        wait = getattr(kind, name)

        def call(*args: Any) -> Any:
            path = args[1] if kind is OsFileSystem else args[0].path
            if threading.current_thread() in serving:
                waited.append(f"{name} of {path}")
            return wait(*args)

        return call

    def then(function: Callable[..., Any], note: Callable[[threading.Thread], None]) -> Any:
        def call(*args: Any) -> None:
            note(threading.current_thread())
            function(*args)

        return call

    def end_at_one_go(move: FutureLog) -> None:
        serving.discard(threading.current_thread())
        try:
            end(move)
        finally:
            serving.add(threading.current_thread())

    end = FutureLog._end_at_one_go
    monkeypatch.setattr(FutureLog, "_end_at_one_go", end_at_one_go)
    for kind, name in ((OsFile, "datasync"), (OsFile, "load"), (OsFileSystem, "sync_directory")):
        monkeypatch.setattr(kind, name, noting(kind, name))
    monkeypatch.setattr(RunningBroker, "_is_ready", then(RunningBroker._is_ready, serving.add))
    for name in ("stop", "halt"):
        monkeypatch.setattr(Broker, name, then(getattr(Broker, name), serving.discard))
    yield
    assert waited == [], "on the event loop"


@pytest.fixture
def _long_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """No turn is cut short, however busy the machine is with something else."""
    for module in ("reactor", "steps"):
        monkeypatch.setattr(f"klamm.broker.{module}.TURN_SECONDS_MAX", 10.0)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    with running_broker(tmp_path / "data") as running:
        yield running


@pytest.fixture
def client(broker: RunningBroker) -> Iterator[RawClient]:
    with RawClient(broker) as connected:
        yield connected
