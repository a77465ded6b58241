"""What `klamm serve` says when it accepts connections."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from klamm.broker.broker import Broker
from klamm.broker.commands.start_lines import announce, temporary_directory_line
from klamm.broker.config import load
from klamm.broker.testing import running_broker


@contextmanager
def started(**properties: str) -> Iterator[Broker]:
    settings = {name.replace("_", "."): value for name, value in properties.items()}
    with running_broker(properties=settings) as running:
        yield running.broker


def said(
    broker: Broker, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> tuple[str, list[str]]:
    """The line on standard output, and those of the log."""
    caplog.clear()
    with caplog.at_level(logging.INFO, "klamm"):
        announce(broker)
    return capsys.readouterr().out, [record.getMessage() for record in caplog.records]


def test_an_address_that_clients_can_use(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with started() as broker:
        printed, logged = said(broker, capsys, caplog)
        assert printed == f"klamm listening on 127.0.0.1:{broker.listeners[0].port}\n"
        assert logged == [f"data in {broker.logs.roots[0]}: 0 topics, 0 partitions"]


@pytest.mark.parametrize(
    "listeners",
    [
        {"listeners": "PLAINTEXT://:0"},
        {"listeners": "PLAINTEXT://0.0.0.0:0", "advertised_listeners": "PLAINTEXT://:0"},
    ],
)
def test_the_name_that_clients_are_told(
    listeners: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with started(**listeners) as broker:
        port = broker.listeners[0].port
        printed, logged = said(broker, capsys, caplog)
        assert printed == f"klamm listening on 0.0.0.0:{port}\n"
        assert logged[0] == (
            f"clients are told to connect to {socket.gethostname()}:{port}, the name of this "
            f"machine; --set advertised.listeners=PLAINTEXT://HOST:{port} tells them another"
        )


def test_a_name_that_was_chosen(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with started(
        listeners="PLAINTEXT://127.0.0.1:0,OTHER://127.0.0.1:0",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
        advertised_listeners="OTHER://broker.example:19092",
    ) as broker:
        _, logged = said(broker, capsys, caplog)
        assert logged[0] == f"also listening on 127.0.0.1:{broker.listeners[1].port} (OTHER)"
        assert logged[1] == "clients are told to connect to broker.example:19092 (OTHER)"
        assert logged[2].startswith("data in ")


def has_ipv6() -> bool:
    """Whether this machine has ::1; some containers do not."""
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.skipif(not has_ipv6(), reason="there is no ::1 here")
def test_ipv6_has_brackets(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with started(listeners="PLAINTEXT://[::1]:0") as broker:
        printed, logged = said(broker, capsys, caplog)
        assert printed == f"klamm listening on [::1]:{broker.listeners[0].port}\n"
        assert len(logged) == 1


def test_the_default_directory_may_be_cleaned() -> None:
    assert temporary_directory_line(load(None, {})) == (
        "the system may clean /tmp/klamm-logs; keep the data elsewhere by --data-dir DIR"
    )
    for name in ("log.dirs", "log.dir"):
        assert temporary_directory_line(load(None, {name: "/tmp/klamm-logs"})) is None


def test_topics_with_more_replicas_than_there_can_be(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with started(default_replication_factor="3") as broker:
        _, logged = said(broker, capsys, caplog)
    assert logged[-1].startswith("default.replication.factor=3, and there is one broker: ")
