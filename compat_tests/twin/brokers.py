"""klamm as it is compared with Apache Kafka: with the same settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from compat_tests.apache_kafka.server import STOCK_PROPERTIES
from compat_tests.klamm_process import KlammProcess
from compat_tests.ports import free_ports


def klamm_like_kafka(data_dir: Path, properties: Mapping[str, str] | None = None) -> KlammProcess:
    """klamm with the lines that Apache Kafka has in its server.properties here.

    What a broker says about a setting begins with whether it was given one.
    """
    (port,) = free_ports(1)
    addresses = {
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{port}",
    }
    lines = {**STOCK_PROPERTIES, **addresses, **(properties or {})}
    return KlammProcess(data_dir, port=port, properties=lines)
