"""A broker inside a test: as many as wanted, on free ports, gone without a trace."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap
import threading
import tomllib
from contextlib import closing
from pathlib import Path

import pytest

from klamm.broker import pytest_plugin
from klamm.broker.config import ConfigError
from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.raw_client import (
    RawClient,
    create_topic,
    describe_topic,
    fetch_from,
    produce_to,
)
from klamm.log.errors import DirectoryLockedError
from klamm.wire.errors import ErrorCode


def test_it_can_be_used_at_once() -> None:
    with running_broker() as broker, RawClient(broker) as client:
        assert broker.bootstrap == f"127.0.0.1:{broker.port}"
        create_topic(client, "topic")
        assert produce_to(client, "topic").base_offset == 0


def test_several_run_in_one_process_and_know_nothing_of_each_other() -> None:
    with running_broker() as first, running_broker() as second, running_broker() as third:
        brokers = [first, second, third]
        assert len({broker.port for broker in brokers}) == 3
        assert len({broker.data_dir for broker in brokers}) == 3
        clients = [RawClient(broker) for broker in brokers]
        for number, client in enumerate(clients):
            create_topic(client, f"topic{number}")
            for _ in range(number + 1):
                produce_to(client, f"topic{number}")
        for number, client in enumerate(clients):
            assert fetch_from(client, f"topic{number}").high_watermark == number + 1
            other = describe_topic(client, f"topic{(number + 1) % 3}")
            assert other.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            client.close()


def test_the_temporary_directory_goes_with_it() -> None:
    with running_broker() as broker:
        assert (broker.data_dir / "meta.properties").exists()
    assert not broker.data_dir.exists()


def test_the_temporary_directory_goes_when_the_test_fails() -> None:
    with pytest.raises(ZeroDivisionError), running_broker() as broker:
        raise ZeroDivisionError
    assert not broker.data_dir.exists()


def test_a_directory_of_ones_own_is_kept(tmp_path: Path) -> None:
    with running_broker(tmp_path / "mine") as broker, RawClient(broker) as client:
        create_topic(client, "topic")
        produce_to(client, "topic")
    with running_broker(tmp_path / "mine") as broker, RawClient(broker) as client:
        assert fetch_from(client, "topic").high_watermark == 1


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_restart_keeps_port_and_data(is_clean: bool) -> None:
    with running_broker() as broker:
        port = broker.port
        with RawClient(broker) as client:
            create_topic(client, "topic")
            produce_to(client, "topic")
            if is_clean:
                broker.restart()
            else:
                broker.kill()
                broker.start()
            assert client.is_closed_by_peer()
        assert broker.port == port
        with RawClient(broker) as client:
            assert fetch_from(client, "topic").high_watermark == 1


def test_properties_are_those_of_kafka() -> None:
    with (
        running_broker(properties={"num.partitions": "7"}) as broker,
        RawClient(broker) as client,
    ):
        create_topic(client, "topic", -1)
        assert len(describe_topic(client, "topic").partitions) == 7


def test_values_need_not_be_text() -> None:
    properties = {"num.partitions": 3, "auto.create.topics.enable": False}
    with running_broker(properties=properties) as broker, RawClient(broker) as client:
        create_topic(client, "topic", -1)
        assert len(describe_topic(client, "topic").partitions) == 3
        assert not broker.broker.config.auto_create_topics_enable


def test_a_property_without_a_value_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"num\.partitions has no value"):
        RunningBroker(properties={"num.partitions": None})


def test_a_restart_keeps_every_listener() -> None:
    properties = {
        "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "inter.broker.listener.name": "INSIDE",
    }
    with running_broker(properties=properties) as broker:
        before = [(listener.name, listener.port) for listener in broker.broker.listeners]
        broker.restart()
        after = [(listener.name, listener.port) for listener in broker.broker.listeners]
        assert [name for name, _ in before] == ["INSIDE", "OUTSIDE"]
        assert after == before


def test_every_address_is_reached_by_that_of_this_machine() -> None:
    properties = {
        "listeners": "PLAINTEXT://0.0.0.0:0",
        "advertised.listeners": "PLAINTEXT://127.0.0.1:0",
    }
    with running_broker(properties=properties) as broker:
        assert broker.bootstrap == f"127.0.0.1:{broker.port}"


def test_an_address_of_ipv6() -> None:
    broker = RunningBroker(properties={"listeners": "PLAINTEXT://[::1]:0"})
    try:
        broker.start()
    except OSError:
        pytest.skip("there is no ::1 here")
    with closing(broker):
        assert broker.bootstrap == f"[::1]:{broker.port}"
        socket.create_connection(("::1", broker.port), 5).close()


def test_a_second_broker_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        with pytest.raises(DirectoryLockedError, match="in use by another broker"):
            RunningBroker(tmp_path).start()
        # The first one is not harmed.
        with RawClient(broker) as client:
            create_topic(client, "topic")
            assert produce_to(client, "topic").error_code == 0
    with running_broker(tmp_path):
        pass


def test_a_second_process_on_the_same_directory_exits_at_once(tmp_path: Path) -> None:
    with running_broker(tmp_path):
        command = [sys.executable, "-m", "klamm.broker", "serve", "--listen", "127.0.0.1:0"]
        ended = subprocess.run(
            [*command, "--data-dir", str(tmp_path)], capture_output=True, text=True, timeout=30
        )
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert "in use by another broker" in ended.stderr
    assert ended.stdout == ""


def test_a_port_that_is_taken_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    with running_broker() as broker:
        properties = {"listeners": f"PLAINTEXT://127.0.0.1:{broker.port}"}
        with pytest.raises(OSError, match="in use"):
            RunningBroker(tmp_path / "other", properties).start()
        assert not (tmp_path / "other").exists()


def test_a_wrong_property_is_refused() -> None:
    with (
        pytest.raises(ConfigError, match=r"num\.partitions"),
        running_broker(properties={"num.partitions": "many"}),
    ):
        pass


def test_it_leaves_no_thread_and_no_descriptor() -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    with running_broker():
        # Threads for blocking work are shared and stay for a while.
        pass
    before = descriptors()
    for _ in range(3):
        with running_broker() as broker, RawClient(broker) as client:
            create_topic(client, "topic", 5)
            produce_to(client, "topic")
    assert descriptors() <= before
    names = [thread.name for thread in threading.enumerate()]
    assert not any(name.startswith("klamm-") for name in names)


def test_stopping_twice_and_closing_twice_is_harmless() -> None:
    broker = RunningBroker().start()
    broker.stop()
    broker.stop()
    broker.kill()
    broker.close()
    broker.close()


def test_the_fixture_is_there_for_whoever_installs_klamm(tmp_path: Path) -> None:
    """A test in a folder of its own, with nothing of ours but the plug-in."""
    test = tmp_path / "test_it.py"
    test.write_text(
        textwrap.dedent(
            """
            import socket

            def test_it(klamm_broker):
                host, port = klamm_broker.bootstrap.split(":")
                socket.create_connection((host, int(port)), 5).close()
                klamm_broker.clear_hooks()
            """
        )
    )
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "klamm.broker.pytest_plugin", str(test)],
        # Named on the command line, so that it does not matter how klamm was installed.
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stdout
    assert "1 passed" in ended.stdout


@pytest.mark.interpreted
def test_the_plug_in_is_an_entry_point() -> None:
    root = Path(__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"]["klamm"] == pytest_plugin.__name__


def test_the_plug_in_imports_nothing_before_it_is_used() -> None:
    """Pytest loads it in every run of whoever has klamm installed."""
    code = (
        "import sys, klamm.broker.pytest_plugin;"
        "print([name for name in sys.modules if name == 'trio' or name.startswith('klamm.wire')])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert ended.stdout.strip() == "[]"
