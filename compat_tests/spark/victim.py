"""Runs a program of spark_examples and kills it, its JVM and all, at a chosen call of a function.

`python -m compat_tests.spark.victim changelog upsert 2 ...` dies by SIGKILL right after the second
call of `changelog.upsert`: what the function wrote is there, and the checkpoint does not know yet.
Where Spark itself writes, `run_and_kill` looks at the files for the moment.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
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
    process = start("compat_tests.spark.victim", stage, function, str(call), *argv)
    try:
        printed, _ = process.communicate(timeout=VICTIM_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    assert process.returncode == -signal.SIGKILL, printed


def run_and_kill(stage: str, argv: Sequence[str], moment: Callable[[], bool]) -> None:
    """Start a program, and kill it when the moment has come."""
    process = start(f"spark_examples.{stage}", *argv)
    deadline = time.monotonic() + VICTIM_TIMEOUT_S
    come = False
    try:
        while not come and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
            come = moment()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        printed, _ = process.communicate()
    assert come, printed
    assert process.returncode == -signal.SIGKILL, printed


def start(module: str, *argv: str) -> subprocess.Popen[str]:
    conf = [f"--conf={key}={value}" for key, value in SMALL_QUERIES.items()]
    return subprocess.Popen(
        [sys.executable, "-m", module, *argv, *conf],
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
