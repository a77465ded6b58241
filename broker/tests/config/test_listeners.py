"""Listeners, and the addresses that clients are told."""

import pytest

from klamm.broker.config import Listener, ServerConfig, load
from klamm.broker.config.listeners import host_and_port, is_any_address, parse_listener
from klamm.broker.tests.config.refusals import refusal

PLAIN = "PLAINTEXT://127.0.0.1:9092"


def listen(listeners: str, **others: str) -> ServerConfig:
    settings = {name.replace("_", "."): text for name, text in others.items()}
    return load(None, {"listeners": listeners, **settings})


def refused(listeners: str, **others: str) -> str | None:
    return refusal(lambda: listen(listeners, **others))


@pytest.mark.parametrize(
    ("text", "listener"),
    [
        ("PLAINTEXT://localhost:9092", Listener("PLAINTEXT", "localhost", 9092)),
        ("plaintext://:0", Listener("PLAINTEXT", "", 0)),
        ("A.b-1://[::1]:65535", Listener("A.B-1", "::1", 65535)),
        ("X://::1:1", Listener("X", "::1", 1)),
    ],
)
def test_an_address(text: str, listener: Listener) -> None:
    assert parse_listener("listeners", text) == listener
    assert parse_listener("listeners", str(listener)) == listener


@pytest.mark.parametrize(
    "text",
    [
        *("", "PLAINTEXT", "localhost:9092", "://localhost:9092", "PLAINTEXT://localhost"),
        *("PLAINTEXT://localhost:", "PLAINTEXT://localhost:-1", "PLAINTEXT://localhost:65536"),
        *("PLAINTEXT://localhost:http", "PLAINTEXT://localhost:1e3", "PLAINTEXT:/localhost:9092"),
    ],
)
def test_not_an_address(text: str) -> None:
    assert refusal(parse_listener, "listeners", text) == (
        f"listeners: {text} is not a listener; write NAME://host:port with a port up to 65535"
    )


def test_the_default_is_open_to_this_machine_only() -> None:
    config = load(None, {})
    assert config.listeners == (Listener("PLAINTEXT", "127.0.0.1", 9092),)
    assert config.advertised_listeners == config.listeners


def test_listeners_are_advertised_as_they_are() -> None:
    config = listen(
        f"{PLAIN}, PLAINTEXT2://localhost:0",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,PLAINTEXT2:PLAINTEXT",
    )
    assert [listener.name for listener in config.listeners] == ["PLAINTEXT", "PLAINTEXT2"]
    assert config.advertised_listeners == config.listeners


def test_advertised_listeners_are_what_clients_are_told() -> None:
    config = listen("PLAINTEXT://:9092", advertised_listeners="plaintext://broker.example:19092")
    assert config.listeners == (Listener("PLAINTEXT", "", 9092),)
    assert config.advertised_listeners == (Listener("PLAINTEXT", "broker.example", 19092),)


def test_controller_listeners_are_dropped() -> None:
    config = listen(
        f"{PLAIN},CONTROLLER://:9093",
        controller_listener_names="CONTROLLER",
        advertised_listeners="PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
        listener_security_protocol_map="CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    )
    assert config.listeners == (Listener("PLAINTEXT", "127.0.0.1", 9092),)
    assert config.advertised_listeners == (Listener("PLAINTEXT", "localhost", 9092),)


def test_a_controller_listener_needs_no_protocol_in_the_map() -> None:
    config = listen(f"{PLAIN},KRAFT://:9093", controller_listener_names="KRAFT")
    assert len(config.listeners) == 1


@pytest.mark.parametrize("name", ["INSIDE", "inside"])
def test_a_name_of_its_own(name: str) -> None:
    config = listen(
        f"{name}://localhost:9092",
        listener_security_protocol_map="inside:plaintext",
        inter_broker_listener_name="INSIDE",
    )
    assert config.listeners == (Listener("INSIDE", "localhost", 9092),)


@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_what_klamm_cannot_protect_it_does_not_open(protocol: str) -> None:
    text = refused(f"{protocol}://localhost:9093")
    assert text is not None
    assert text.startswith(f"listener {protocol} asks for {protocol}, and klamm has no ")
    assert text.endswith(" yet; use PLAINTEXT")
    hidden = refused("OUT://localhost:9093", listener_security_protocol_map=f"OUT:{protocol}")
    assert hidden is not None
    assert hidden.startswith(f"listener OUT asks for {protocol}")


@pytest.mark.parametrize(
    ("listeners", "others", "text"),
    [
        ("CONTROLLER://:9093", {}, "listeners names only controller listeners; add one for"),
        (
            f"{PLAIN},PLAINTEXT://:9093",
            {},
            "listeners names PLAINTEXT twice; give each listener its own",
        ),
        ("EXTRA://:9092", {}, "listener EXTRA has no protocol; add EXTRA:PLAINTEXT to listener."),
        (
            "A://:9092,B://:9092",
            {"listener_security_protocol_map": "A:PLAINTEXT,B:PLAINTEXT"},
            "listeners binds port 9092 twice; choose another port",
        ),
        (
            PLAIN,
            {"listener_security_protocol_map": "PLAINTEXT=PLAINTEXT"},
            "listener.security.protocol.map: PLAINTEXT=PLAINTEXT must be NAME:PROTOCOL",
        ),
        (
            PLAIN,
            {"listener_security_protocol_map": "PLAINTEXT:TLS"},
            "listener.security.protocol.map: PLAINTEXT:TLS must be NAME:PROTOCOL with PROTOCOL",
        ),
        ("PLAINTEXT://0.0.0.0:9092", {}, "clients cannot connect to 0.0.0.0; set advertised.list"),
        ("PLAINTEXT://[::]:9092", {}, "clients cannot connect to ::; set advertised.listeners=PL"),
        ("PLAINTEXT://0:9092", {}, "clients cannot connect to 0; set advertised.listeners=PLAIN"),
        (
            PLAIN,
            {"advertised_listeners": "PLAINTEXT://0.0.0.0:9092"},
            "clients cannot connect to 0.0.0.0; set advertised.listeners=PLAINTEXT://HOST:9092",
        ),
        (
            PLAIN,
            {"advertised_listeners": "OTHER://localhost:9092"},
            "advertised.listeners: OTHER is not one of listeners (PLAINTEXT)",
        ),
        (
            PLAIN,
            {"advertised_listeners": "CONTROLLER://localhost:9093"},
            "advertised.listeners names no listener for clients; add one of PLAINTEXT",
        ),
        (PLAIN, {"advertised_listeners": ""}, "advertised.listeners= must name at least one item"),
        ("", {}, "listeners= must name at least one item"),
        (
            PLAIN,
            {"inter_broker_listener_name": "INSIDE"},
            "inter.broker.listener.name=INSIDE is not one of listeners; set it to PLAINTEXT or",
        ),
    ],
)
def test_listeners_that_cannot_be(listeners: str, others: dict[str, str], text: str) -> None:
    answer = refused(listeners, **others)
    assert answer is not None
    assert answer.startswith(text)


@pytest.mark.parametrize("host", ["0.0.0.0", "0", "0.0", "::", "0::0", "0:0:0:0:0:0:0:0"])
def test_any_address_in_any_spelling(host: str) -> None:
    assert is_any_address(host)


@pytest.mark.parametrize("host", ["", "127.0.0.1", "::1", "localhost", "0.0.0.0.example", "[::]"])
def test_one_address_or_name(host: str) -> None:
    assert not is_any_address(host)


@pytest.mark.parametrize(
    ("host", "text"),
    [
        ("127.0.0.1", "127.0.0.1:1"),
        ("::1", "[::1]:1"),
        ("", ":1"),
        ("fe80::1%lo", "[fe80::1%lo]:1"),
    ],
)
def test_as_people_write_it(host: str, text: str) -> None:
    assert host_and_port(host, 1) == text
