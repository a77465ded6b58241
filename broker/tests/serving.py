"""`klamm serve` as a process, for what can't be tried inside of the tests' own."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TIMEOUT_S = 30
_LISTENING = re.compile(r"klamm listening on 127\.0\.0\.1:(\d+)\n")


class Served:
    """A running process.

    Attributes:
        port: where it listens.
    """

    def __init__(self, process: subprocess.Popen[str], port: int, log: Path) -> None:
        self.process = process
        self.port = port
        self._log = log

    @property
    def log_lines(self) -> list[str]:
        """What it has written to standard error so far."""
        return self._log.read_text().splitlines()


@contextmanager
def serving(
    data_dir: Path, *settings: str, descriptors: int | None = None, memory: int | None = None
) -> Iterator[Served]:
    """Run a broker with limits; it must end cleanly when it is told to."""
    log = data_dir.with_suffix(".log")

    def limit() -> None:
        if descriptors is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    command = [sys.executable, "-m", "klamm.broker", "serve", "--listen", "127.0.0.1:0"]
    command += ["--data-dir", str(data_dir), *(f"--set={setting}" for setting in settings)]
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, preexec_fn=limit
        ) as process,
    ):
        try:
            assert process.stdout is not None
            match = _LISTENING.fullmatch(process.stdout.readline())
            assert match is not None, log.read_text()
            yield Served(process, int(match.group(1)), log)
            process.terminate()
            assert process.wait(TIMEOUT_S) == 0, log.read_text()
        finally:
            process.kill()
