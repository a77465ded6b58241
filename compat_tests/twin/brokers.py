"""klamm as it is compared with Apache Kafka: with the same settings, and a pair of both."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from compat_tests.apache_kafka import ApacheKafka, small_kafka
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
    log_dirs: Callable[[Path], Sequence[Path]] = lambda data_dir: [data_dir],
) -> Iterator[Twin]:
    """Both brokers, started for one module with settings of its own.

    Args:
        log_dirs: the directories of a broker, of which the first is given.
    """
    same = os.environ.get("KLAMM_COMPAT_BROKER", "klamm") == "kafka"

    def settings(data_dir: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
        named = {"log.dirs": ",".join(map(str, log_dirs(data_dir)))}
        return {**named, **properties, **(more or {})}

    def kafka_in(data_dir: Path) -> ApacheKafka:
        lines = settings(data_dir, of_kafka_alone)
        return small_kafka(data_dir, properties=lines)

    data_dir = folder / "other"
    other = kafka_in(data_dir) if same else klamm_like_kafka(data_dir, settings(data_dir))
    with kafka_in(folder / "kafka") as kafka, other:
        pair = Twin(kafka.port, other.port, same_broker=same)
        yield pair
        pair.close()
        kafka.kill()
