"""Listener addresses: `NAME://host:port`, what the broker binds and what it tells its clients."""

import ipaddress
import socket
from collections.abc import Mapping
from typing import NamedTuple

from klamm.broker.config.errors import ConfigError, shown

# Kafka's default map: a listener may be called like its security protocol.
_PROTOCOLS = ("SASL_SSL", "PLAINTEXT", "SSL", "SASL_PLAINTEXT")
_NOT_YET = {
    "SSL": "TLS",
    "SASL_PLAINTEXT": "authentication",
    "SASL_SSL": "TLS and authentication",
}


class Listener(NamedTuple):
    """One address. An empty host means all interfaces, port 0 any free port."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{host_and_port(self.host, self.port)}"


def host_and_port(host: str, port: int) -> str:
    """Returns an address as people write it: IPv6 in brackets, to tell the port from the rest."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_any_address(host: str) -> bool:
    """Returns whether a host stands for every address of this machine, in any of its spellings."""
    try:
        return ipaddress.IPv6Address(host).is_unspecified
    except ValueError:
        pass
    try:
        # Knows the short forms that resolvers take, such as 0 and 0.0.
        return socket.inet_aton(host) == bytes(4)
    except OSError:
        return False


def parse_listener(setting: str, text: str) -> Listener:
    """Returns one listener of a list.

    Raises:
        ConfigError: The text is not `NAME://host:port`.
    """
    name, separator, address = text.partition("://")
    host, colon, port_text = address.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    port = int(port_text) if port_text.isdecimal() and len(port_text) <= 5 else -1
    if not separator or not name or not colon or not 0 <= port <= 65535:
        raise ConfigError(
            f"{setting}: {shown(text)} is not a listener; "
            "write NAME://host:port with a port up to 65535"
        )
    return Listener(name.upper(), host, port)


def client_listeners(
    given: Mapping[str, list[str]], protocol_map: str | None, controller_names: list[str]
) -> tuple[tuple[Listener, ...], tuple[Listener, ...]]:
    """Returns the listeners for clients, and the addresses that clients are told.

    Controller listeners are dropped: klamm is its own controller and opens no port for it.

    Args:
        given: The lists under `listeners` and, where set, `advertised.listeners`.
        protocol_map: The text of `listener.security.protocol.map` where it is set.
        controller_names: The names in `controller.listener.names`.

    Raises:
        ConfigError: A listener is malformed, doubled, unknown or not PLAINTEXT.
    """
    controllers = {name.upper() for name in controller_names}
    protocols = _protocols(protocol_map, controllers)
    bound = _of_clients("listeners", given["listeners"], controllers)
    if not bound:
        raise ConfigError(
            "listeners names only controller listeners; add one for clients, "
            "such as PLAINTEXT://127.0.0.1:9092"
        )
    for listener in bound:
        _check_protocol(listener, protocols)
    _check_ports(bound)
    if "advertised.listeners" not in given:
        return bound, tuple(_advertisable(listener) for listener in bound)
    setting = "advertised.listeners"
    advertised = _of_clients(setting, given[setting], controllers)
    names = {listener.name for listener in bound}
    for listener in advertised:
        if listener.name not in names:
            raise ConfigError(
                f"{setting}: {listener.name} is not one of listeners ({', '.join(sorted(names))})"
            )
    if not advertised:
        raise ConfigError(
            f"{setting} names no listener for clients; add one of {', '.join(sorted(names))}"
        )
    return bound, tuple(_advertisable(listener) for listener in advertised)


def _protocols(protocol_map: str | None, controllers: set[str]) -> dict[str, str]:
    if protocol_map is None:
        return {protocol: protocol for protocol in _PROTOCOLS} | {
            name: "PLAINTEXT" for name in controllers if name not in _PROTOCOLS
        }
    protocols: dict[str, str] = {}
    for pair in protocol_map.split(","):
        name, colon, protocol = (part.strip().upper() for part in pair.partition(":"))
        if not colon or protocol not in _PROTOCOLS:
            raise ConfigError(
                f"listener.security.protocol.map: {shown(pair.strip())} must be NAME:PROTOCOL with "
                f"PROTOCOL one of {', '.join(_PROTOCOLS)}"
            )
        protocols[name] = protocol
    return protocols


def _of_clients(setting: str, texts: list[str], controllers: set[str]) -> tuple[Listener, ...]:
    listeners = tuple(
        listener
        for listener in (parse_listener(setting, text) for text in texts)
        if listener.name not in controllers
    )
    names = [listener.name for listener in listeners]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{setting} names {name} twice; give each listener its own name")
    return listeners


def _check_protocol(listener: Listener, protocols: Mapping[str, str]) -> None:
    protocol = protocols.get(listener.name)
    if protocol is None:
        raise ConfigError(
            f"listener {listener.name} has no protocol; "
            f"add {listener.name}:PLAINTEXT to listener.security.protocol.map"
        )
    if protocol != "PLAINTEXT":
        raise ConfigError(
            f"listener {listener.name} asks for {protocol}, and klamm has no "
            f"{_NOT_YET[protocol]} yet; use PLAINTEXT"
        )


def _check_ports(listeners: tuple[Listener, ...]) -> None:
    seen: set[tuple[str, int]] = set()
    for listener in listeners:
        address = (listener.host, listener.port)
        if listener.port and address in seen:
            raise ConfigError(f"listeners binds port {listener.port} twice; choose another port")
        seen.add(address)


def _advertisable(listener: Listener) -> Listener:
    # No client can connect to "any address".
    if is_any_address(listener.host):
        raise ConfigError(
            f"clients cannot connect to {listener.host}; set "
            f"advertised.listeners={listener.name}://HOST:{listener.port} with a host they know"
        )
    return listener
