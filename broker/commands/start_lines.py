"""What `klamm serve` says once connections are accepted.

The first line goes to standard output, for programs that wait for it, or is logged where that can't
be written. The others are logged.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from klamm.broker.config.listeners import host_and_port

if TYPE_CHECKING:
    from klamm.broker.broker import Broker
    from klamm.broker.config import ServerConfig
    from klamm.broker.listener import Listener

logger = logging.getLogger("klamm")


def announce(broker: Broker) -> None:
    """Say where the broker listens, what clients are told, and where the data is."""
    first, *others = broker.listeners
    _print_or_log(f"klamm listening on {host_and_port(first.host, first.port)}")
    for listener in others:
        address = host_and_port(listener.host, listener.port)
        logger.info("also listening on %s (%s)", address, listener.name)
    for line in advertised_lines(broker):
        logger.info("%s", line)
    logger.info(
        "data in %s: %d topics, %d partitions",
        ", ".join(broker.logs.roots),
        len(broker.metadata.image.topics),
        broker.metadata.image.partition_count,
    )
    for warning in (temporary_directory_line(broker.config), replication_line(broker.config)):
        if warning is not None:
            logger.warning("%s", warning)


def _print_or_log(line: str) -> None:
    try:
        print(line, flush=True)
    except OSError as error:
        # A full disk, or a reader that has left: no reason to end a broker that is ready.
        logger.warning("standard output can't be written: %s", error)
        logger.info("%s", line)
        # Python would try to write the rest when it ends, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def advertised_lines(broker: Broker) -> Iterator[str]:
    """Yield what clients are told, where that is not what the first lines have said."""
    for listener in broker.listeners:
        told = broker.address_for_clients(listener.name, listener.host, listener.port)
        if told == (listener.host, listener.port):
            continue
        name = f" ({listener.name})" if len(broker.listeners) > 1 else ""
        yield f"clients are told to connect to {host_and_port(*told)}{name}" + _hint(
            broker.config, listener
        )


def _hint(config: ServerConfig, listener: Listener) -> str:
    """Return what to do about a name that nobody has chosen."""
    chosen = {address.name for address in config.advertised_listeners if address.host}
    if listener.name in chosen:
        return ""
    return (
        ", the name of this machine; "
        f"--set advertised.listeners={listener.name}://HOST:{listener.port} tells them another"
    )


def temporary_directory_line(config: ServerConfig) -> str | None:
    """Return a warning when the data is below /tmp because nobody has said where it should be."""
    if "log.dirs" in config.given or "log.dir" in config.given:
        return None
    return f"the system may clean {config.log_dirs[0]}; keep the data elsewhere by --data-dir DIR"


def replication_line(config: ServerConfig) -> str | None:
    """Return a warning when topics get more replicas than there are brokers, so that none comes to
    be on the way; Kafka starts with this, too."""
    factor = config.default_replication_factor
    if factor == 1:
        return None
    return (
        f"default.replication.factor={factor}, and there is one broker: topics are created only "
        "for those who ask for one replica; set it to 1"
    )
