"""The options of `klamm serve`, and the properties that they stand for.

`--listen` and `--data-dir` are short for properties of Kafka. Whoever gives both an option and its
property gets neither in silence: an address that was meant to be protected, or a directory that was
meant to have the data, must not be forgotten because of the other.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping
from typing import Any

from klamm.broker.commands.usage import UsageError

LAST_PORT = 65535

# What would be taken for a list, a listener or a path is no host; IPv6 needs its brackets, because
# nobody can tell where `::1:9092` has its port.
_ADDRESS = re.compile(r"(?:\[(?P<ipv6>[^\[\]\s,/]+)\]|(?P<host>[^\[\]:\s,/]*)):(?P<port>[0-9]+)")


def add_serve_command(commands: argparse._SubParsersAction[Any]) -> None:
    """Make `serve` known."""
    parser = commands.add_parser(
        "serve",
        help="run a broker until SIGTERM or Ctrl-C",
        description="Run a broker until SIGTERM or Ctrl-C. Clients connect to 127.0.0.1:9092 "
        "unless --listen says otherwise.",
    )
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        help="where clients connect (default 127.0.0.1:9092); 0.0.0.0 or no host is every address "
        "of this machine, port 0 picks a free one",
    )
    parser.add_argument(
        "--data-dir", metavar="DIR", help="where the logs are kept (default /tmp/klamm-logs)"
    )
    parser.add_argument(
        "--config", metavar="FILE", help="a server.properties file with Kafka's own names"
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="one property; wins over the file, may be repeated",
    )
    parser.add_argument("--verbose", action="store_true", help="log more")


def given_properties(options: argparse.Namespace, file: Mapping[str, str]) -> dict[str, str]:
    """Return what the options of `serve` set.

    Args:
        options: As they were parsed.
        file: What the file of `--config` sets.

    Raises:
        UsageError: An option is malformed, or says the same as another.
    """
    properties = _settings(options.set)
    if options.data_dir is not None:
        properties["log.dirs"] = _log_dirs(options.data_dir, properties)
    if options.listen is not None:
        properties |= _listeners(options.listen, properties, file)
    return properties


def _settings(texts: list[str]) -> dict[str, str]:
    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(
                f"--set {text!r} is not KEY=VALUE; write, for example, --set num.partitions=3"
            )
        settings[name.strip()] = value
    return settings


def _log_dirs(directory: str, settings: Mapping[str, str]) -> str:
    for name in ("log.dirs", "log.dir"):
        if name in settings:
            raise UsageError(f"--data-dir and --set {name} both say where the logs are; give one")
    if not directory.strip():
        raise UsageError("--data-dir is empty; name a directory")
    if "," in directory:
        # The property is a list.
        raise UsageError(
            f"--data-dir {directory!r} has a comma; for several directories write "
            f"--set log.dirs={directory}"
        )
    # A shell leaves the ~ of --data-dir=~/data as it is.
    return os.path.expanduser(directory)


def _listeners(listen: str, settings: Mapping[str, str], file: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that `--listen` stands for."""
    # Imported here, so that `--help` and a wrong option answer at once.
    from klamm.broker.config.listeners import Listener, is_any_address

    host, port = _address(listen)
    if "listeners" in settings:
        raise UsageError("--listen and --set listeners both say where clients connect; give one")
    if "listeners" in file:
        # Its other lines (advertised.listeners, protocols) are about its own listeners: half of
        # them and half of the option would be a broker that nobody has described.
        raise UsageError(
            "--listen and the listeners in the file of --config both say where clients connect; "
            "leave --listen out, or write --set listeners=... in its place"
        )
    bound = {"listeners": str(Listener("PLAINTEXT", host, port))}
    if is_any_address(host) and "advertised.listeners" not in settings.keys() | file.keys():
        # No client can connect there. Without a host they are told the name of this machine.
        bound["advertised.listeners"] = str(Listener("PLAINTEXT", "", port))
    return bound


def _address(listen: str) -> tuple[str, int]:
    match = _ADDRESS.fullmatch(listen.strip())
    if match is None or (match["ipv6"] is not None and ":" not in match["ipv6"]):
        raise UsageError(
            f"--listen {listen!r}: write HOST:PORT, for example 127.0.0.1:9092 or [::1]:9092"
        )
    port = match["port"]
    if len(port) > len(str(LAST_PORT)) or int(port) > LAST_PORT:
        raise UsageError(f"--listen {listen!r}: a port is at most {LAST_PORT}")
    return match["ipv6"] or match["host"] or "", int(port)
