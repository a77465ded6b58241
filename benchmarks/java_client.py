"""The warm Java client: Kafka's own perf tools and a consumer without a group, in one JVM.

A new JVM per run would spend its first second on compiling itself, and its rates would swing by a
factor of two. One JVM serves both brokers, so that both meet the client equally warm.
"""

from __future__ import annotations

import os
import re
import selectors
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from benchmarks.loads import LoadError
from compat_tests.apache_kafka.programs import program_command

COMMAND_TIMEOUT_S = 40
STOP_TIMEOUT_S = 10

_SOURCE = Path(__file__).with_name("JavaClient.java")
_PRODUCED = re.compile(r"^(\d+) records sent, ([\d.]+) records/sec", re.MULTILINE)


class JavaClient:
    """A process that runs JavaClient.java; start it once, then send it commands."""

    def __init__(self) -> None:
        options = ("-Xmx512M", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 closed by close()
        self._process = subprocess.Popen(
            program_command(_SOURCE, options=options, log_level="ERROR"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        self._selector = selectors.DefaultSelector()
        assert self._process.stdout is not None
        self._selector.register(self._process.stdout, selectors.EVENT_READ)
        self._pending = b""
        self._answer()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def produce(
        self, bootstrap: str, topic: str, *, records: int, payload: Path, properties: list[str]
    ) -> float:
        """Run kafka-producer-perf-test; the records per second that it reports."""
        output, _ = self._command(
            *("produce", "--topic", topic, "--num-records", str(records), "--throughput", "-1"),
            *("--payload-file", str(payload)),
            *("--producer-props", f"bootstrap.servers={bootstrap}", *properties),
        )
        totals = _PRODUCED.findall(output)
        if not totals or int(totals[-1][0]) != records:
            raise LoadError(f"kafka-producer-perf-test did not send all records: {output[-300:]}")
        return float(totals[-1][1])

    def consume(
        self, bootstrap: str, topic: str, *, partitions: int, records: int, readers: int = 1
    ) -> tuple[int, float]:
        """Read a topic without a group; the bytes of all readers and the seconds they took."""
        _, answer = self._command(
            "consume", bootstrap, topic, str(partitions), str(records), str(readers)
        )
        seen_bytes, seconds = answer.split()
        return int(seen_bytes), float(seconds)

    def consume_with_group(self, bootstrap: str, topic: str, *, records: int) -> float:
        """Run kafka-consumer-perf-test; the records per second after the group was joined."""
        output, _ = self._command(
            *("consume-group", "--bootstrap-server", bootstrap, "--topic", topic),
            *("--messages", str(records), "--hide-header"),
        )
        columns = output.strip().splitlines()[-1].split(", ") if output.strip() else []
        if len(columns) != 10 or int(columns[4]) < records:
            raise LoadError(f"kafka-consumer-perf-test did not read all: {output[-300:]}")
        return float(columns[9])

    def close(self) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._selector.close()
        self._errors.close()

    def __enter__(self) -> JavaClient:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _command(self, *words: str) -> tuple[str, str]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write("\t".join(words).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise LoadError(f"the Java client has ended: {self._error_tail()}") from None
        return self._answer()

    def _answer(self) -> tuple[str, str]:
        """What a command printed, and the words after its closing @done."""
        assert self._process.stdout is not None
        deadline = time.monotonic() + COMMAND_TIMEOUT_S
        printed: list[str] = []
        while True:
            line = self._line(deadline)
            if line.startswith("@done"):
                return "\n".join(printed), line[len("@done") :].strip()
            if line.startswith("@failed"):
                raise LoadError(f"Java client: {line[len('@failed') :].strip()}")
            printed.append(line)

    def _line(self, deadline: float) -> str:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        while b"\n" not in self._pending:
            if not self._selector.select(max(0.0, deadline - time.monotonic())):
                # Its answer would come in the middle of the next command.
                self._process.kill()
                raise LoadError(f"the Java client is silent: {self._error_tail()}")
            data = os.read(descriptor, 65536)
            if not data:
                raise LoadError(f"the Java client has ended: {self._error_tail()}")
            self._pending += data
        line, _, self._pending = self._pending.partition(b"\n")
        return line.decode(errors="replace")

    def _error_tail(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")[-1000:]
