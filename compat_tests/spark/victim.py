"""Runs a program of spark_examples and kills it, its JVM and all, at a chosen call of a function.

`python -m compat_tests.spark.victim changelog upsert 2 ...` dies by SIGKILL right after the second
call of `changelog.upsert`: what the function wrote is there, and the checkpoint does not know yet.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from compat_tests.spark.connector import SMALL_QUERIES

VICTIM_TIMEOUT_S = 280


def main(stage: str, function: str, call: str, *argv: str) -> None:
    module = importlib.import_module(f"spark_examples.{stage}")
    original = getattr(module, function)
    left = int(call)

    def deadly(*args: Any) -> None:
        nonlocal left
        left -= 1
        original(*args)
        if left == 0:
            os.killpg(0, signal.SIGKILL)

    setattr(module, function, deadly)
    module.main(argv)


def run_and_die(stage: str, function: str, call: int, argv: Sequence[str]) -> None:
    """Start the victim in a process group of its own, and see it die."""
    command = [sys.executable, "-m", "compat_tests.spark.victim", stage, function, str(call)]
    conf = [f"--conf={key}={value}" for key, value in SMALL_QUERIES.items()]
    process = subprocess.Popen(
        [*command, *argv, *conf],
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        printed, _ = process.communicate(timeout=VICTIM_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    assert process.returncode == -signal.SIGKILL, printed


if __name__ == "__main__":
    main(*sys.argv[1:])
