"""Runs the scripts; see script.py for their language."""

from __future__ import annotations

from pathlib import Path

import pytest

from klamm.coordinator.tests.scripts import check_script, scripts_beside
from klamm.coordinator.tests.transaction.script import Script


@pytest.mark.parametrize("path", scripts_beside(__file__), ids=lambda path: path.stem)
def test_script(path: Path) -> None:
    check_script(path, Script())
