"""The directories that the tests look at: the same batches, written by klamm and Apache Kafka."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from compat_tests.apache_kafka import small_kafka
from compat_tests.disk.workload import Written, workload, write
from compat_tests.klamm_process import KlammProcess


@dataclass(frozen=True)
class KafkaDirectories:
    """What Apache Kafka left: after a clean stop, and as it would be after a kill."""

    stopped: Path
    killed: Path


@pytest.fixture(scope="session")
def topics() -> dict[str, Written]:
    """What is written, by topic name."""
    return {written.topic: written for written in workload()}


@pytest.fixture(scope="session")
def klamm_dir(topics: dict[str, Written], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What klamm leaves when it is stopped."""
    directory = tmp_path_factory.mktemp("klamm-disk") / "data"
    with KlammProcess(directory) as klamm:
        write(klamm.bootstrap, topics.values())
    return directory


@pytest.fixture(scope="session")
def kafka_dirs(
    kafka_jars: Path, topics: dict[str, Written], tmp_path_factory: pytest.TempPathFactory
) -> KafkaDirectories:
    """What Apache Kafka leaves.

    Nothing is under way when the directory is copied, so the copy is what a kill would leave.
    """
    folder = tmp_path_factory.mktemp("kafka-disk")
    stopped, killed = folder / "stopped", folder / "killed"
    with small_kafka(stopped) as kafka:
        write(kafka.bootstrap, topics.values())
        shutil.copytree(stopped, killed)
    return KafkaDirectories(stopped, killed)
