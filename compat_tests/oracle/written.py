"""The answers of Apache Kafka that are written down beside klamm's unit tests, as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent.parent.parent / "coordinator" / "tests"
ASSIGNMENTS = TESTS / "assignor" / "kafka_assignments.jsonl"
HASHES = TESTS / "kafka_hashes.jsonl"


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write(path: Path, values: Iterable[dict[str, Any]]) -> None:
    lines = [json.dumps(value, separators=(",", ":")) + "\n" for value in values]
    path.write_text("".join(lines), encoding="utf-8")
