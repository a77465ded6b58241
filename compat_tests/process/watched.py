"""A klamm process of which a test sees more: its memory, its log lines, its marker."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from compat_tests.klamm_process import KlammProcess

CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
PATIENCE_S = 20.0
COMMAND_TIMEOUT_S = 60.0

LOG_LINE = re.compile(r"^\d{4}-\d\d-\d\d \S+ (DEBUG|INFO|WARNING|ERROR|CRITICAL) (.*)$")


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for something that happens soon in a working broker."""
    gives_up_at = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > gives_up_at:
            raise TimeoutError(f"waited in vain: {what}")
        time.sleep(0.01)


def run_klamm(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of klamm that ends by itself."""
    return subprocess.run(
        [sys.executable, "-m", "klamm.broker", *arguments],
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_S,
        check=False,
    )


class WatchedKlamm(KlammProcess):
    """Adds what the tests of this folder ask; everything else is as a user starts it."""

    @property
    def is_marked_clean(self) -> bool:
        return (self.data_dir / CLEAN_SHUTDOWN_FILE).exists()

    def start_and_kill_after(self, seconds: float) -> None:
        """A start that is not waited for, and that does not get far."""
        with self.output_path.open("ab") as output:
            process = subprocess.Popen(self.command(), stdout=subprocess.DEVNULL, stderr=output)
        time.sleep(seconds)
        process.kill()
        process.wait()

    def check(self) -> list[str]:
        """What `klamm check` has to say about the directory, without the line that sums up.

        Raises:
            AssertionError: the exit code does not fit what was said.
        """
        done = run_klamm("check", str(self.data_dir))
        *findings, summary = done.stdout.splitlines()
        faults = [line for line in findings if ": note: " not in line]
        assert summary.startswith(f"{len(faults)} faults, {len(findings) - len(faults)} notes ")
        assert done.returncode == (1 if faults else 0)
        assert done.stderr == ""
        return findings

    def log_lines(self) -> list[tuple[str, str]]:
        """Level and text of every line on standard error.

        Raises:
            AssertionError: a line that is no log line, such as those of a traceback.
        """
        lines = self.output_path.read_text(encoding="utf-8").splitlines()
        found = []
        for line in lines:
            match = LOG_LINE.match(line)
            assert match is not None, f"no log line: {line!r} in\n" + "\n".join(lines[-40:])
            found.append((match[1], match[2]))
        return found

    def complaints(self) -> list[str]:
        """The texts of all lines above INFO."""
        return [text for level, text in self.log_lines() if level not in ("DEBUG", "INFO")]

    def memory_bytes(self) -> int:
        """Resident memory now."""
        return self._status_kib("VmRSS") * 1024

    def memory_peak_bytes(self) -> int:
        """Resident memory at its highest since the start."""
        return self._status_kib("VmHWM") * 1024

    def _status_kib(self, field: str) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        match = re.search(rf"^{field}:\s+(\d+) kB$", status, re.MULTILINE)
        assert match is not None, field
        return int(match[1])
