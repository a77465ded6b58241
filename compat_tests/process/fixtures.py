"""Processes for one test alone; a fixture of this folder by being imported in its conftest.py."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pytest

from compat_tests.process.watched import WatchedKlamm


class StartKlamm(Protocol):
    """Starts a klamm that only this test knows."""

    def __call__(self, properties: Mapping[str, str] | None = None) -> WatchedKlamm: ...


@pytest.fixture
def start_klamm(tmp_path: Path) -> Iterator[StartKlamm]:
    """Starts processes that are killed, and whose data is removed, when the test ends."""
    made: list[WatchedKlamm] = []

    def start(properties: Mapping[str, str] | None = None) -> WatchedKlamm:
        process = WatchedKlamm(tmp_path / f"watched-{len(made)}", properties=properties)
        made.append(process)
        process.start()
        return process

    yield start
    for process in made:
        process.kill()
        shutil.rmtree(process.data_dir, ignore_errors=True)
