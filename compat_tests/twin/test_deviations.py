"""The table of deviations and the tests name each other."""

from __future__ import annotations

import re
from pathlib import Path

from compat_tests.twin.deviations import deviations


def test_every_row_is_named_by_a_test_and_every_name_has_a_row() -> None:
    files = Path(__file__).parent.glob("test_*.py")
    texts = [file.read_text(encoding="utf-8") for file in files]
    named = {name for text in texts for name in re.findall(r"\"(D-\d{3})\"", text)}
    assert named == set(deviations())


def test_every_row_says_where_what_and_why() -> None:
    for row in deviations().values():
        assert row.patterns, f"{row.identifier} names no field"
        assert row.what.endswith("."), row.identifier
        assert row.why.endswith("."), row.identifier
