"""What every load generator hands back, and how the ones that are processes of their own run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PROCESS_TIMEOUT_S = 40

_REPOSITORY = Path(__file__).resolve().parent.parent


class LoadError(RuntimeError):
    """A load generator could not do its work; the row says so and the run goes on."""


def run_process(module: str, *arguments: str) -> dict[str, float]:
    """Run one of our load generators as `python -m benchmarks.MODULE`; the figures it printed.

    Raises:
        LoadError: when it ends with an error or not in time.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-m", f"benchmarks.{module}", *arguments],
            cwd=_REPOSITORY,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PROCESS_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LoadError(f"{module} took more than {PROCESS_TIMEOUT_S} s") from None
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise LoadError(f"{module}: {last[0]}")
    figures: dict[str, float] = json.loads(done.stdout)
    return figures
