"""Waiting for what another thread or process does."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 20.0


def until(condition: Callable[[], bool]) -> None:
    """Return as soon as the condition holds."""
    gives_up_at = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < gives_up_at, "it did not happen"
        time.sleep(0.002)
