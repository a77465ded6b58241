"""The answers that klamm's unit tests compare with are those of Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.oracle.java_oracle import JavaOracle
from compat_tests.oracle.scenarios import from_json, play
from compat_tests.oracle.written import ASSIGNMENTS, HASHES, read


@pytest.fixture(scope="module")
def oracle(kafka_jars: Path) -> Iterator[JavaOracle]:
    with JavaOracle() as java:
        yield java


def test_assignments(oracle: JavaOracle) -> None:
    for line in read(ASSIGNMENTS):
        scenario, owners = from_json(line)
        assert play(scenario, oracle) == owners


def test_hashes(oracle: JavaOracle) -> None:
    for line in read(HASHES):
        answer = line.pop("answer")
        assert oracle.ask(line.pop("ask"), **line) == answer
