"""The table of `docs/deviations.md`: where klamm answers otherwise than Kafka, and why."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

DOCUMENT = Path(__file__).resolve().parent.parent.parent / "docs" / "deviations.md"

_ROW = re.compile(r"^\|\s*(D-\d{3})\s*\|(.*)\|\s*$")


@dataclass(frozen=True)
class Deviation:
    identifier: str
    api: str
    patterns: tuple[str, ...]
    what: str
    why: str


@cache
def deviations() -> dict[str, Deviation]:
    """All rows by their id.

    Raises:
        ValueError: when a row does not have its five columns or an id stands there twice.
    """
    found: dict[str, Deviation] = {}
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        match = _ROW.match(line)
        if match is None:
            continue
        cells = [cell.strip() for cell in match[2].split("|")]
        if len(cells) != 4 or not all(cells) or match[1] in found:
            raise ValueError(f"{DOCUMENT.name}: bad row {line!r}")
        patterns = tuple(re.findall(r"`([^`]*)`", cells[1]))
        found[match[1]] = Deviation(match[1], cells[0], patterns, cells[2], cells[3])
    return found
