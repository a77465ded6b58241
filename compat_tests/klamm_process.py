"""`klamm serve` as a process, as a user starts it."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

# Far above what a quiet machine takes, which is under a second.
READY_TIMEOUT_S = 60
STOP_TIMEOUT_S = 30

_LISTENING = re.compile(rb"^klamm listening on (\S+):(\d+)$")


class KlammProcessError(RuntimeError):
    """klamm did not start or did not stop as it should."""


class KlammProcess:
    """A broker process that can be stopped, killed and started again on port and directory.

    Args:
        data_dir: klamm's data directory. Its standard error goes to a file beside it.
        port: 0 lets klamm pick a free one, which restarts keep.
        properties: each becomes one `--set key=value`; `log.dirs` takes the place of data_dir.
        environment: variables on top of this process's own.
        options: further options of `klamm serve`.
    """

    ready_timeout_s = READY_TIMEOUT_S

    def __init__(
        self,
        data_dir: Path,
        *,
        port: int = 0,
        properties: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
    ) -> None:
        self.data_dir = data_dir
        self.port = port
        self.properties = dict(properties or {})
        self.environment = dict(environment or {})
        self.options = tuple(options)
        self.ready_s = 0.0
        self.host = ""
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    @property
    def output_path(self) -> Path:
        """What klamm logged to standard error, of all its starts."""
        return self.data_dir.with_name(self.data_dir.name + ".stderr.txt")

    def command(self) -> list[str]:
        settings = [f"--set={key}={value}" for key, value in self.properties.items()]
        # Both together are refused.
        directory = () if "log.dirs" in self.properties else ("--data-dir", str(self.data_dir))
        return [
            *(sys.executable, "-m", "klamm.broker", "serve", "--listen", self.bootstrap),
            *(*directory, *self.options, *settings),
        ]

    def start(self) -> KlammProcess:
        assert self._process is None, "already started"
        self.data_dir.parent.mkdir(parents=True, exist_ok=True)
        launched = time.monotonic()
        with self.output_path.open("ab") as output:
            # Unbuffered: `select` does not see what a buffer has already taken from the pipe.
            self._process = subprocess.Popen(
                self.command(),
                env=os.environ | self.environment,
                bufsize=0,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=output,
            )
        try:
            self.host, self.port = self._read_address()
        except BaseException:
            self.kill()
            raise
        self.ready_s = time.monotonic() - launched
        return self

    def stop(self) -> None:
        """Clean shutdown: SIGTERM must end the process with exit code 0."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise KlammProcessError(self._with_output("no end after SIGTERM")) from None
        finally:
            self._close_stdout(process)
        if code != 0:
            raise KlammProcessError(self._with_output(f"exit code {code} after SIGTERM"))

    def wait_for_end(self, timeout_s: float = STOP_TIMEOUT_S) -> tuple[int, bytes]:
        """Wait until the process ends by itself; its exit code, and what it printed meanwhile.

        Raises:
            KlammProcessError: when it does not end.
        """
        process, self._process = self._process, None
        assert process is not None, "not started"
        assert process.stdout is not None
        try:
            printed, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise KlammProcessError(self._with_output("does not end")) from None
        return process.returncode, printed

    def send_signal(self, number: signal.Signals) -> None:
        assert self._process is not None, "not started"
        self._process.send_signal(number)

    def stderr_lines(self) -> list[str]:
        """The lines that klamm has logged, in all its starts."""
        return self.output_path.read_text(errors="replace").splitlines()

    def kill(self) -> None:
        """End the process like a crash would: SIGKILL."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            self._close_stdout(process)

    def restart(self) -> None:
        """Stop cleanly and start again on the same directory and port."""
        self.stop()
        self.start()

    def __enter__(self) -> KlammProcess:
        return self if self._process is not None else self.start()

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _read_address(self) -> tuple[str, int]:
        """Wait for the one line on standard output that says where klamm listens."""
        assert self._process is not None
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        deadline = time.monotonic() + self.ready_timeout_s
        line = b""
        while not line.endswith(b"\n"):
            readable, _, _ = select.select([descriptor], [], [], deadline - time.monotonic())
            if not readable:
                raise KlammProcessError(self._with_output("printed no address in time"))
            byte = self._process.stdout.read(1)
            if not byte:
                code = self._process.wait(STOP_TIMEOUT_S)
                raise KlammProcessError(self._with_output(f"ended with code {code}"))
            line += byte
        match = _LISTENING.match(line.rstrip(b"\r\n"))
        if match is None:
            raise KlammProcessError(self._with_output(f"unexpected first line {line!r}"))
        return match[1].decode(), int(match[2])

    def _with_output(self, problem: str) -> str:
        tail = self.output_path.read_text(errors="replace")[-2000:]
        return f"klamm: {problem}; its standard error ends with:\n{tail}"

    @staticmethod
    def _close_stdout(process: subprocess.Popen[bytes]) -> None:
        if process.stdout is not None:
            process.stdout.close()
