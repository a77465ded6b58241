"""The processes of a workload: started, killed, paused and replaced, and what they have told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from compat_tests.history.events import Event, read_line
from compat_tests.transactions.telling import READY

STOP_TIMEOUT_S = 60.0


class Worker:
    """One process of this folder.

    Args:
        module: its name.
        arguments: what it is called with.
        errors: where its standard error goes.
    """

    def __init__(self, module: str, arguments: Sequence[object], errors: Path) -> None:
        self.events: list[Event] = []
        self.is_paused = False
        self._ready = threading.Event()
        with errors.open("ab") as output:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", f"compat_tests.transactions.{module}"),
                    *map(str, arguments),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
                # A worker may have a Java process, which is killed and paused with it.
                process_group=0,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.rstrip("\n") == READY:
                self._ready.set()
            elif line.endswith("\n"):
                self.events.append(read_line(line))

    @property
    def is_ready(self) -> bool:
        """Whether it has begun: whoever had its transactional id before is fenced."""
        return self._ready.is_set()

    @property
    def is_over(self) -> bool:
        return self._process.poll() is not None

    def pause(self) -> None:
        self.is_paused = True
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        self.is_paused = False
        self._signal_all(signal.SIGCONT)

    def kill(self) -> None:
        self._signal_all(signal.SIGKILL)
        self._join()

    def stop(self) -> None:
        """Let it end what it is about."""
        if self.is_paused:
            self.resume()
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._signal_all(signal.SIGKILL)
        self._join()

    def _signal_all(self, number: signal.Signals) -> None:
        # Once it has ended and been waited for, its id may be that of somebody else.
        if not self.is_over:
            os.killpg(self._process.pid, number)

    def _join(self) -> None:
        self._process.wait()
        self._reader.join(STOP_TIMEOUT_S)
        assert self._process.stdout is not None
        self._process.stdout.close()


class Place:
    """A transactional id: one process after the other works under it.

    A process gets a successor when it is over, or while it is paused; the successor's number is the
    next one, and it begins only after its predecessor has begun. So numbers are the order in which
    they have taken the id over.
    """

    def __init__(self, module: str, arguments: Sequence[object], errors: Path) -> None:
        self._module = module
        self._arguments = arguments
        self._errors = errors
        self._generation = 0
        self.workers: list[Worker] = []

    def start(self) -> Worker:
        arguments = [self._generation if one is GENERATION else one for one in self._arguments]
        self._generation += 1
        self.workers.append(Worker(self._module, arguments, self._errors))
        return self.workers[-1]

    @property
    def newest(self) -> Worker:
        return self.workers[-1]

    @property
    def has_committed(self) -> bool:
        return any(
            (event.action, event.type) == ("transaction", "ok")
            for worker in self.workers
            for event in worker.events
        )


# Where the number of the generation stands among the arguments of a place.
GENERATION = object()
