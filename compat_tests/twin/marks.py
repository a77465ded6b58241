"""`@pytest.mark.every_version("fetch", since=12)`: what it asks for."""

from __future__ import annotations

import pytest

from compat_tests.twin.codec import versions


def versions_of(marker: pytest.Mark) -> list[int]:
    """The versions that a test is run with."""
    return _between(*marker.args, **marker.kwargs)


def _between(api: str, since: int = 0, until: int = 99) -> list[int]:
    return [version for version in versions(api) if since <= version <= until]
