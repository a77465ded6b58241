"""What the options of `klamm serve` stand for, and which of them exclude each other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from klamm.broker.__main__ import EXIT_USAGE, parse
from klamm.broker.commands.serve_options import given_properties
from klamm.broker.commands.usage import UsageError
from klamm.broker.config import ServerConfig, from_properties


def properties(*options: str, file: Mapping[str, str] | None = None) -> dict[str, str]:
    return given_properties(parse(["serve", *options]), file or {})


def config(*options: str, file: Mapping[str, str] | None = None) -> ServerConfig:
    """The settings of a broker that is started so."""
    return from_properties({**(file or {}), **properties(*options, file=file)})


def refused(*options: str, file: Mapping[str, str] | None = None) -> str:
    with pytest.raises(UsageError) as caught:
        properties(*options, file=file)
    text = str(caught.value)
    assert text.isprintable()
    return text


# --listen


@pytest.mark.parametrize(
    ("listen", "listener"),
    [
        ("127.0.0.1:9092", "PLAINTEXT://127.0.0.1:9092"),
        ("localhost:0", "PLAINTEXT://localhost:0"),
        (":9092", "PLAINTEXT://:9092"),
        ("[::1]:9092", "PLAINTEXT://[::1]:9092"),
        ("[fe80::1%eth0]:1", "PLAINTEXT://[fe80::1%eth0]:1"),
        (" localhost:65535 ", "PLAINTEXT://localhost:65535"),
    ],
)
def test_an_address_is_bound_and_told(listen: str, listener: str) -> None:
    assert properties("--listen", listen) == {"listeners": listener}
    made = config("--listen", listen)
    assert [str(one) for one in made.listeners] == [listener]
    assert made.advertised_listeners == made.listeners


@pytest.mark.parametrize("host", ["0.0.0.0", "0", "[::]", "[0:0:0:0:0:0:0:0]"])
def test_every_address_is_bound_and_the_name_of_the_machine_told(host: str) -> None:
    """Kafka's property alone would be refused: no client can connect to 0.0.0.0."""
    made = config("--listen", f"{host}:9092")
    assert [str(one) for one in made.listeners] == [f"PLAINTEXT://{host}:9092"]
    # The broker fills the name in, as it does for `--listen :9092`.
    assert [str(one) for one in made.advertised_listeners] == ["PLAINTEXT://:9092"]


def test_who_says_what_is_advertised_is_obeyed() -> None:
    own = {"advertised.listeners": "PLAINTEXT://broker.example:19092"}
    by_option = config("--listen", "0.0.0.0:9092", "--set", "=".join(*own.items()))
    by_file = config("--listen", "0.0.0.0:9092", file=own)
    for made in (by_option, by_file):
        (told,) = made.advertised_listeners
        assert (told.host, told.port) == ("broker.example", 19092)


@pytest.mark.parametrize(
    "listen",
    [
        *("", "nowhere", "9092", "127.0.0.1", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:-1"),
        *("::1", "::1:9092", "[::1]", "[localhost]:9092", "[]:9092", "PLAINTEXT://localhost:9092"),
        *(
            "a,b:9092",
            "localhost:9092,localhost:9093",
            "local host:9092",
            "tcp://:9092",
            "a:\u0663",
        ),
    ],
)
def test_what_to_write_is_said_and_works(listen: str) -> None:
    text = refused("--listen", listen)
    assert text == (
        f"--listen {listen!r}: write HOST:PORT, for example 127.0.0.1:9092 or [::1]:9092"
    )
    for example in ("127.0.0.1:9092", "[::1]:9092"):
        assert config("--listen", example)


@pytest.mark.parametrize("port", ["65536", "70000", "9" * 5000])
def test_a_port_that_there_is_not(port: str) -> None:
    assert refused("--listen", f"127.0.0.1:{port}").endswith(": a port is at most 65535")


@pytest.mark.parametrize("listeners", ["SSL://localhost:9093", "PLAINTEXT://localhost:9093"])
def test_one_of_two_ways_to_say_where_clients_connect(listeners: str) -> None:
    """Above all, what was meant to be encrypted is not served in the clear."""
    setting = f"listeners={listeners}"
    assert refused("--listen", "127.0.0.1:9092", "--set", setting) == (
        "--listen and --set listeners both say where clients connect; give one"
    )
    text = refused("--listen", "127.0.0.1:9092", file={"listeners": listeners})
    assert text.startswith("--listen and the listeners in the file of --config both say where")
    # What the second text proposes works.
    proposed = "listeners=PLAINTEXT://127.0.0.1:9092"
    made = config("--set", proposed, file={"listeners": listeners})
    assert [one.port for one in made.listeners] == [9092]


# --data-dir


def test_a_directory() -> None:
    assert config("--data-dir", "here").log_dirs == ("here",)
    assert config("--data-dir", "~/here").log_dirs == (f"{Path.home()}/here",)
    assert config("--data-dir", "here", file={"log.dirs": "/a,/b"}).log_dirs == ("here",)


@pytest.mark.parametrize("name", ["log.dirs", "log.dir"])
def test_one_of_two_ways_to_say_where_the_logs_are(name: str) -> None:
    text = refused("--data-dir", "a", "--set", f"{name}=b")
    assert text == f"--data-dir and --set {name} both say where the logs are; give one"


def test_no_list_of_directories_by_mistake() -> None:
    assert refused("--data-dir", "a,b") == (
        "--data-dir 'a,b' has a comma; for several directories write --set log.dirs=a,b"
    )
    assert refused("--data-dir", "") == "--data-dir is empty; name a directory"


# --set


def test_the_last_of_a_kind_counts() -> None:
    assert properties("--set", "a=1", "--set", " a =2", "--set", "b=c=d") == {"a": "2", "b": "c=d"}


@pytest.mark.parametrize("text", ["num.partitions", "=3", " =3", ""])
def test_no_key_or_no_value(text: str) -> None:
    assert refused("--set", text).startswith(f"--set {text!r} is not KEY=VALUE")


# The command line as a whole


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--bogus"], "unrecognized arguments: --bogus; see klamm --help"),
        (["serve", "--bogus"], "unrecognized arguments: --bogus; see klamm serve --help"),
        (["serve", "bogus"], "unrecognized arguments: bogus; see klamm serve --help"),
        (["serve", "--listen"], "--listen: expected one argument; see klamm serve --help"),
        (["check", "--bogus", "x"], "unrecognized arguments: --bogus; see klamm check --help"),
        (["check"], "required: DIR; see klamm check --help"),
        (["dump", "x", "--limit", "0"], "0 is not a positive number; see klamm dump --help"),
        (["dump", "x", "--limit", "y"], "y is not a positive number; see klamm dump --help"),
        (["dump", "x", "--from-offset", "y"], "y is not an offset; see klamm dump --help"),
        (["dump", "x", "--from-offset", "-1"], "-1 is not an offset; see klamm dump --help"),
        (["srve"], "; see klamm --help"),
    ],
)
def test_where_help_is(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(arguments)
    assert caught.value.code == EXIT_USAGE
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("klamm: ")
    assert printed.err.endswith(f"{says}\n")
    assert printed.err.count("\n") == 1


def test_without_a_command_the_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse([])
    assert caught.value.code == EXIT_USAGE
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("usage: klamm ")
    for command in ("serve", "check", "dump"):
        assert any(line.startswith(f"    {command} ") for line in lines)


@pytest.mark.interpreted
def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(["--version"])
    assert caught.value.code == 0
    # Of the sources, which is what unit tests of the broker see.
    assert re.fullmatch(r"klamm \S+ \(pure Python\)\n", capsys.readouterr().out)
