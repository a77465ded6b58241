"""Faults inside of the coordinators: what goes on, and what must not."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from klamm.broker.broker import BrokerHaltedError
from klamm.broker.testing import RunningBroker
from klamm.broker.tests.groups.group_client import (
    COMMIT_VERSION,
    become_leader,
    commit,
    commit_request,
    committed,
    find_coordinator,
    heartbeat,
    until,
)
from klamm.broker.tests.raw_client import RawClient, create_topic
from klamm.coordinator.classic import heartbeat as heartbeat_module
from klamm.coordinator.classic.rebalance import Rebalances
from klamm.coordinator.offsets import Offsets
from klamm.wire.errors import ErrorCode

ASSERTION = "assert False, 'on purpose'"


def broken_invariant(*args: Any, **options: Any) -> Any:
    """Fails as if the assertion stood in the coordinator's own code."""
    namespace: dict[str, Any] = {"__name__": "klamm.coordinator.offsets"}
    exec(compile(ASSERTION, "offsets.py", "exec"), namespace)


def fault(*args: Any, **options: Any) -> Any:
    raise ValueError("on purpose")


@pytest.fixture
def client(broker: RunningBroker) -> Any:
    with RawClient(broker) as connected:
        create_topic(connected, "t")
        find_coordinator(connected)
        yield connected


def test_a_fault_in_a_request_is_answered_and_the_rest_goes_on(
    broker: RunningBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined = become_leader(client, "g")
    monkeypatch.setattr(heartbeat_module, "_beat", fault)
    assert heartbeat(client, "g", joined) is ErrorCode.UNKNOWN_SERVER_ERROR
    monkeypatch.undo()
    assert heartbeat(client, "g", joined) is ErrorCode.NONE
    assert broker.broker.dispatcher.handler_failures == 1


def test_a_fault_in_a_timer_is_logged_and_the_rest_goes_on(
    client: RawClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Rebalances, "_expire_session", fault)
    become_leader(client, "g", session_timeout_ms=100)
    until(lambda: "a fault in the broker" in caplog.text)
    assert commit(client, "h", {"t": {0: 1}}) is ErrorCode.NONE


def test_a_broken_invariant_in_a_timer_halts(
    broker: RunningBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Rebalances, "_expire_session", broken_invariant)
    become_leader(client, "g", session_timeout_ms=100)
    assert client.is_closed_by_peer()
    with pytest.raises(BrokerHaltedError):
        broker.stop()


@pytest.mark.interpreted
def test_a_broken_invariant_halts(
    broker: RunningBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert commit(client, "g", {"t": {0: 1}}) is ErrorCode.NONE
    monkeypatch.setattr(Offsets, "check_commit", broken_invariant)
    client.send(commit_request("g", {"t": {0: 2}}), version=COMMIT_VERSION)
    assert client.is_closed_by_peer()
    with suppress(BrokerHaltedError):
        broker.stop()
    monkeypatch.undo()
    broker.start()
    with RawClient(broker) as again:
        assert committed(again, "g") == {"t": {0: 1}}


def test_what_was_written_and_can_not_be_replayed_halts(
    broker: RunningBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert commit(client, "g", {"t": {0: 1}}) is ErrorCode.NONE
    monkeypatch.setattr("klamm.coordinator.offsets.ClassicGroup", fault)
    client.send(commit_request("new", {"t": {0: 2}}), version=COMMIT_VERSION)
    assert client.is_closed_by_peer()
    with suppress(BrokerHaltedError):
        broker.stop()
    monkeypatch.undo()
    broker.start()
    with RawClient(broker) as again:
        assert committed(again, "g") == {"t": {0: 1}}


def test_a_log_that_can_not_be_replayed_closes_its_shard_and_no_other(
    broker: RunningBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    become_leader(client, "g")
    assert commit(client, "h", {"t": {0: 1}}) is ErrorCode.NONE
    monkeypatch.setattr("klamm.coordinator.classic.protocol.ClassicGroup", fault)
    broker.restart()
    with RawClient(broker) as again:
        until(lambda: commit(again, "g", {"t": {0: 1}}) is ErrorCode.NOT_COORDINATOR)
        assert committed(again, "h") == {"t": {0: 1}}
