"""klamm as it is compared with Apache Kafka: with the same settings, and a pair of both."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from compat_tests.apache_kafka import ApacheKafka
from compat_tests.apache_kafka.server import STOCK_PROPERTIES
from compat_tests.klamm_process import KlammProcess
from compat_tests.ports import free_ports
from compat_tests.twin.topics import Twin


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


@contextmanager
def pair_of_brokers(
    folder: Path,
    properties: Mapping[str, str],
    *,
    of_kafka_alone: Mapping[str, str] | None = None,
) -> Iterator[Twin]:
    """Both brokers, started for one module with settings of its own."""
    same = os.environ.get("KLAMM_COMPAT_BROKER", "klamm") == "kafka"
    kafkas = {**properties, **(of_kafka_alone or {})}
    other = (
        ApacheKafka(folder / "other", heap="384M", properties=kafkas)
        if same
        else klamm_like_kafka(folder / "other", properties)
    )
    with ApacheKafka(folder / "kafka", heap="384M", properties=kafkas) as kafka, other:
        pair = Twin(kafka.port, other.port, same_broker=same)
        yield pair
        pair.close()
        kafka.kill()
