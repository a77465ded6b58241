"""What a check finds: faults, and notes about what is unusual and will take care of itself."""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

# A file that is wrong from end to end is named with this many places, and the rest is counted.
FINDINGS_PER_FILE_MAX = 50


class Finding(NamedTuple):
    """One place in one file. Offset and byte are None where there is no such thing."""

    path: str
    what: str
    offset: int | None = None
    position: int | None = None
    is_note: bool = False

    def __str__(self) -> str:
        place = []
        if self.offset is not None:
            place.append(f"offset {self.offset}")
        if self.position is not None:
            place.append(f"byte {self.position}")
        parts = [self.path, ", ".join(place), "note" if self.is_note else "", self.what]
        return ": ".join(part for part in parts if part)


class Findings:
    """Hands every finding on as it comes, and counts.

    Args:
        on_finding: called for each, in the order in which they are found.
    """

    def __init__(self, on_finding: Callable[[Finding], None]) -> None:
        self._on_finding = on_finding
        self._by_path: Counter[str] = Counter()
        self.faults = 0
        self.notes = 0

    def fault(
        self, path: str, what: str, *, offset: int | None = None, position: int | None = None
    ) -> None:
        """Something is wrong."""
        self.faults += 1
        self._add(Finding(path, what, offset, position))

    def note(
        self, path: str, what: str, *, offset: int | None = None, position: int | None = None
    ) -> None:
        """Something is left over or unusual, and no harm comes of it."""
        self.notes += 1
        self._add(Finding(path, what, offset, position, is_note=True))

    def _add(self, finding: Finding) -> None:
        self._by_path[finding.path] += 1
        if self._by_path[finding.path] <= FINDINGS_PER_FILE_MAX:
            self._on_finding(finding)

    def close(self) -> None:
        """Say of which files not everything was named."""
        for path, count in self._by_path.items():
            left_out = count - FINDINGS_PER_FILE_MAX
            if left_out > 0:
                self._on_finding(Finding(path, f"{left_out} more of this file"))
