"""What `klamm serve` prints, how it ends, and what it says when it can't start."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from compat_tests.apache_kafka.server import STOCK_PROPERTIES
from compat_tests.clients import raw
from compat_tests.clients.fixtures import create_topic
from compat_tests.clients.kcat import kcat
from compat_tests.ports import free_ports
from compat_tests.process.fixtures import StartKlamm
from compat_tests.process.watched import CLEAN_SHUTDOWN_FILE, WatchedKlamm

EXIT_TIMEOUT_S = 20
EXIT_USAGE = 2


def serve(*options: str) -> subprocess.CompletedProcess[str]:
    """`klamm serve` with options that it can't start with."""
    command = [sys.executable, "-m", "klamm.broker", "serve", *options]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=EXIT_TIMEOUT_S, check=False
    )


def refusal(*options: str) -> str:
    """The one line that it says."""
    done = serve(*options)
    assert done.returncode == EXIT_USAGE, done
    assert done.stdout == ""
    assert done.stderr.startswith("klamm: ")
    assert done.stderr.endswith("\n")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr[len("klamm: ") : -1]


def fresh(data_dir: Path) -> tuple[str, ...]:
    return ("--listen", "127.0.0.1:0", "--data-dir", str(data_dir))


def marks(klamm: WatchedKlamm) -> list[str]:
    """The marker of a clean shutdown, where there is one."""
    return [path.name for path in klamm.data_dir.glob(".kafka_*")]


# Start and end


@pytest.fixture
def _terminal_may_close() -> Iterator[None]:
    """Where these tests run under nohup, the signal is ignored, which a new process inherits."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("_terminal_may_close")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_one_line_then_served_until_a_signal(
    start_klamm: StartKlamm, number: signal.Signals
) -> None:
    klamm = start_klamm()
    # The first line has been read and parsed; port 0 was asked for.
    assert klamm.port > 0
    assert raw.is_alive(klamm.bootstrap)
    create_topic(klamm.bootstrap, "topic")
    assert marks(klamm) == []
    klamm.send_signal(number)
    assert klamm.wait_for_end() == (0, b""), "the line with the address is the only one"
    assert marks(klamm) == [CLEAN_SHUTDOWN_FILE]
    assert klamm.complaints() == []
    texts = [text for _, text in klamm.log_lines()]
    assert f"{number.name}: shutting down" in texts
    assert texts[-1] == "stopped"


def test_a_chosen_port_is_taken_at_once_again(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with WatchedKlamm(tmp_path / "data", port=port) as klamm:
        assert klamm.port == port
        # A connection that the broker closes itself: its end of it lingers in the kernel.
        with raw.connect(klamm.bootstrap) as connection:
            klamm.stop()
            assert connection.recv(1) == b""
        klamm.start()
        assert raw.is_alive(klamm.bootstrap)


def test_topics_are_there_after_a_stop_and_after_a_kill(start_klamm: StartKlamm) -> None:
    klamm = start_klamm()
    create_topic(klamm.bootstrap, "topic", 3)
    klamm.restart()
    assert [raw.list_offset(klamm.bootstrap, "topic", number, -1)[0] for number in range(3)] == (
        [0, 0, 0]
    )
    klamm.kill()
    assert not klamm.is_marked_clean
    klamm.start()
    assert raw.list_offset(klamm.bootstrap, "topic", 2, -1)[0] == 0


class WithoutTerminal(WatchedKlamm):
    """It shall go on when its terminal is closed."""

    def command(self) -> list[str]:
        return ["nohup", *super().command()]


def test_nohup_is_obeyed(tmp_path: Path) -> None:
    with WithoutTerminal(tmp_path / "data") as klamm:
        klamm.send_signal(signal.SIGHUP)
        assert raw.is_alive(klamm.bootstrap)
        klamm.send_signal(signal.SIGTERM)
        assert klamm.wait_for_end()[0] == 0
        assert not any("SIGHUP" in line for line in klamm.stderr_lines())


@pytest.mark.parametrize("output", ["a full disk", "a pipe that nobody reads"])
def test_standard_output_that_can_not_be_written(tmp_path: Path, output: str) -> None:
    """It starts all the same, and logs the line with the address."""
    if output == "a full disk":
        writer = os.open("/dev/full", os.O_WRONLY)
    else:
        reader, writer = os.pipe()
        os.close(reader)
    command = [sys.executable, "-m", "klamm.broker", "serve", *fresh(tmp_path / "data")]
    said = []
    with subprocess.Popen(command, stdout=writer, stderr=subprocess.PIPE, text=True) as process:
        os.close(writer)
        assert process.stderr is not None
        for line in process.stderr:
            said.append(line)
            if "data in" in line:
                process.send_signal(signal.SIGTERM)
    assert process.returncode == 0, said
    (address,) = (line for line in said if "klamm listening on" in line)
    assert int(address.rpartition(":")[2]) > 0
    assert "stopped" in said[-1]


class Addressed(WatchedKlamm):
    """Its address is not that of other tests."""

    def __init__(self, data_dir: Path, listen: str) -> None:
        super().__init__(data_dir)
        self._listen = listen

    def command(self) -> list[str]:
        options = ["--listen", self._listen, "--data-dir", str(self.data_dir)]
        return [sys.executable, "-m", "klamm.broker", "serve", *options]


def test_every_address_of_the_machine(tmp_path: Path) -> None:
    """It starts without further settings, and says by which name clients will look for it."""
    with Addressed(tmp_path / "data", "0.0.0.0:0") as klamm:
        assert raw.is_alive(klamm.bootstrap)
        told = f"{socket.gethostname()}:{klamm.port}"
        assert f"broker 1 at {told}" in kcat("-L", "-b", klamm.bootstrap).stdout.decode()
        (line,) = (line for line in klamm.stderr_lines() if "clients are told" in line)
        assert f"clients are told to connect to {told}, the name of this machine" in line


def has_ipv6() -> bool:
    """Whether this machine has ::1; some containers do not."""
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.skipif(not has_ipv6(), reason="there is no ::1 here")
def test_an_address_of_ipv6(tmp_path: Path) -> None:
    with Addressed(tmp_path / "data", "[::1]:0") as klamm:
        bootstrap = f"[::1]:{klamm.port}"
        # The line that was read to know the port.
        assert klamm.host == "[::1]"
        assert "broker 1 at ::1:" in kcat("-L", "-b", bootstrap).stdout.decode()


def test_second_process_on_the_directory(start_klamm: StartKlamm) -> None:
    klamm = start_klamm()
    line = refusal(*fresh(klamm.data_dir))
    assert str(klamm.data_dir) in line
    assert "in use" in line
    assert raw.is_alive(klamm.bootstrap)
    create_topic(klamm.bootstrap, "topic")
    klamm.restart()
    assert raw.list_offset(klamm.bootstrap, "topic", 0, -1) == (0, 0)


def test_stock_properties_of_apache_kafka(tmp_path: Path) -> None:
    broker, controller = free_ports(2)
    data_dir = tmp_path / "data"
    stock = STOCK_PROPERTIES | {
        "listeners": f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": (
            f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}"
        ),
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        "log.dirs": str(data_dir),
    }
    klamm = ConfiguredKlamm(data_dir, stock)
    with klamm:
        assert klamm.port == broker
        create_topic(klamm.bootstrap, "topic", int(stock["num.partitions"]))
        assert raw.list_offset(klamm.bootstrap, "topic", 0, -1) == (0, 0)
    assert klamm.is_marked_clean
    assert "ERROR" not in [level for level, _ in klamm.log_lines()]


class ConfiguredKlamm(WatchedKlamm):
    """Everything comes from a server.properties."""

    def __init__(self, data_dir: Path, properties: dict[str, str]) -> None:
        super().__init__(data_dir)
        self._file = data_dir.with_name("server.properties")
        lines = [f"{key}={value}\n" for key, value in properties.items()]
        self._file.write_text("".join(lines), encoding="utf-8")

    def command(self) -> list[str]:
        return [sys.executable, "-m", "klamm.broker", "serve", "--config", str(self._file)]


def with_directories(*directories: Path) -> tuple[str, ...]:
    return ("--listen", "127.0.0.1:0", "--set", f"log.dirs={','.join(map(str, directories))}")


# Several log directories


def test_a_broken_directory_is_offline_and_the_rest_starts(tmp_path: Path) -> None:
    roots = [tmp_path / name for name in "ab"]
    klamm = WatchedKlamm(roots[0], properties={"log.dirs": ",".join(map(str, roots))})
    with klamm:
        pass
    shutil.rmtree(roots[1])
    roots[1].write_text("a disk that is no more")
    with klamm:
        assert any(f"{roots[1]} is offline" in line for line in klamm.stderr_lines())


def test_without_the_directory_of_the_metadata_log_it_does_not_start(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("a disk that is no more")
    good = tmp_path / "good"
    said = refusal(*with_directories(broken, good))
    assert said.startswith(f"cannot use the data directory {broken}: ")
    done = serve(*with_directories(broken), "--set", f"metadata.log.dir={good}")
    assert done.returncode == EXIT_USAGE
    said = done.stderr.splitlines()[-1]
    assert said.startswith(f"klamm: none of log.dirs can be used: {broken}: ")


# What the caller can put right


@pytest.mark.parametrize("option", ["--no-such-option", "--verb"])
def test_unknown_option(option: str) -> None:
    """A part of a name is none: it would start a broker with what somebody has mistyped."""
    done = serve(option)
    assert done.returncode == EXIT_USAGE
    assert done.stdout == ""
    assert done.stderr == f"klamm: unrecognized arguments: {option}; see klamm serve --help\n"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--set", "num.partitons=3"], ["num.partitons", "did you mean num.partitions?"]),
        (["--set", "num.partitions=many"], ["num.partitions=many", "whole number"]),
        (["--set", "num.partitions=0"], ["num.partitions=0", "at least 1"]),
        (["--set", "compression.type=rar"], ["compression.type=rar", "zstd"]),
        (["--set", "num.partitions"], ["--set", "KEY=VALUE"]),
        (["--listen", "nowhere"], ["nowhere", "write HOST:PORT, for example 127.0.0.1:9092"]),
        (["--listen", "127.0.0.1:70000"], ["70000", "65535"]),
        (["--listen", "192.0.2.1:0"], ["192.0.2.1:0", "choose another --listen"]),
        (["--listen", f"{'a' * 64}:0"], ["not the name of a host; choose another --listen"]),
        (["--set", "listeners=SSL://:9093"], ["--listen and --set listeners", "give one"]),
        (["--set", "log.dirs=elsewhere"], ["--data-dir and --set log.dirs", "give one"]),
    ],
)
def test_option_that_can_not_be_used(
    tmp_path: Path, options: Sequence[str], says: Sequence[str]
) -> None:
    line = refusal(*fresh(tmp_path / "data"), *options)
    for text in says:
        assert text in line
    assert not (tmp_path / "data").exists()


def test_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        line = refusal("--listen", address, "--data-dir", str(tmp_path / "data"))
    assert address in line
    assert "in use; choose another --listen" in line
    assert not (tmp_path / "data").exists()


def test_address_of_a_property_that_can_not_be_used(tmp_path: Path) -> None:
    listeners = "listeners=PLAINTEXT://192.0.2.1:0"
    line = refusal("--set", listeners, "--data-dir", str(tmp_path / "data"))
    assert line.startswith("cannot listen on 192.0.2.1:0: ")
    assert line.endswith("; change listeners")


@pytest.mark.parametrize("place", ["file", "file/below", "file/far/below"])
def test_data_directory_that_can_not_be_used(tmp_path: Path, place: str) -> None:
    """A file is in the way, which stops even root."""
    (tmp_path / "file").write_bytes(b"mine")
    line = refusal(*fresh(tmp_path / place))
    assert str(tmp_path / place) in line
    assert "choose another --data-dir" in line
    assert (tmp_path / "file").read_bytes() == b"mine"


def test_data_directory_of_another_node(start_klamm: StartKlamm) -> None:
    klamm = start_klamm()
    klamm.stop()
    line = refusal(*fresh(klamm.data_dir), "--set", "node.id=77")
    assert "77" in line
    assert str(klamm.data_dir) in line
    assert marks(klamm) == [CLEAN_SHUTDOWN_FILE], "it is as it was"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, ["No such file", "give --config the path of a file with properties"]),
        (b"num.partitons=1\n", ["num.partitons", "did you mean num.partitions?"]),
        (b"# a comment\nnum.partitions=\\u12\n", ["line 2", "four hexadecimal digits"]),
        (b"num.partitions=\xff\xfe\n", ["num.partitions", "whole number"]),
        (b"\x00\x01\x02\x7fELF" * 30, ["unknown property"]),
        (b"listeners=SSL://:9093\n", ["--listen", "in the file of --config", "leave --listen out"]),
    ],
)
def test_bad_properties_file(tmp_path: Path, content: bytes | None, says: Sequence[str]) -> None:
    path = tmp_path / "server.properties"
    if content is not None:
        path.write_bytes(content)
    line = refusal(*fresh(tmp_path / "data"), "--config", str(path))
    for text in says:
        assert text in line
    assert line.isprintable()


def test_properties_file_that_is_a_directory(tmp_path: Path) -> None:
    line = refusal(*fresh(tmp_path / "data"), "--config", str(tmp_path))
    assert str(tmp_path) in line
    assert "directory" in line
