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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from compat_tests.spark.connector import SMALL_QUERIES
from spark_examples.command_line import INTERRUPTED

VICTIM_TIMEOUT_S = 280
END_TIMEOUT_S = 60


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
    try:
        come = wait_for(process, moment)
    finally:
        printed = end(process, signal.SIGKILL)
    assert come, printed
    assert process.returncode == -signal.SIGKILL, printed


def run_and_interrupt(stage: str, argv: Sequence[str], moment: Callable[[], bool]) -> str:
    """Press Ctrl-C when the moment has come; what the program has printed.

    It has its own settings: of a JVM of the tests' it would not be known how loud it is.
    """
    process = start(f"spark_examples.{stage}", *argv, conf={})
    try:
        come = wait_for(process, moment)
    except BaseException:
        end(process, signal.SIGKILL)
        raise
    if come:
        go_on(process)
    printed = end(process, signal.SIGINT if come else signal.SIGKILL)
    assert come, printed
    assert process.returncode == INTERRUPTED, printed
    return printed


def go_on(process: subprocess.Popen[str]) -> None:
    """Let a program that stands still go on until its main thread waits for Spark again.

    Until then the kernel may give a signal to any other thread. Python handles it in the main one,
    which would not hear of it.
    """
    os.killpg(process.pid, signal.SIGCONT)
    deadline = time.monotonic() + END_TIMEOUT_S
    stat = Path(f"/proc/{process.pid}/stat")
    while stat.read_text().rpartition(")")[2].split()[0] != "S":
        assert time.monotonic() < deadline, "the main thread never waits"
        time.sleep(0.001)


def wait_for(process: subprocess.Popen[str], moment: Callable[[], bool]) -> bool:
    """Whether the moment has come; the program stands still then."""
    deadline = time.monotonic() + VICTIM_TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
        if moment():
            os.killpg(process.pid, signal.SIGSTOP)
            # It may have gone on between the look and the stop.
            if moment():
                return True
            os.killpg(process.pid, signal.SIGCONT)
    return False


def end(process: subprocess.Popen[str], how: signal.Signals) -> str:
    """Send a signal to the program and its JVM; what it has printed."""
    if process.poll() is None:
        os.killpg(process.pid, how)
    try:
        return process.communicate(timeout=END_TIMEOUT_S)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0]


def start(
    module: str, *argv: str, conf: Mapping[str, str] = SMALL_QUERIES
) -> subprocess.Popen[str]:
    settings = [f"--conf={key}={value}" for key, value in conf.items()]
    return subprocess.Popen(
        [sys.executable, "-m", module, *argv, *settings],
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
