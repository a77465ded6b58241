"""Functions of Apache Kafka's group coordinator, answered by one Java process."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

from compat_tests.apache_kafka.programs import program_command

SOURCE = Path(__file__).resolve().parent / "Oracle.java"
EXIT_TIMEOUT_S = 30


class JavaOracle:
    """The process."""

    def __init__(self) -> None:
        options = ("-Xmx256M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
        self._process = subprocess.Popen(
            program_command(SOURCE, options=options, log_level="ERROR"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def ask(self, question: str, **arguments: Any) -> Any:
        """The one value of the answer; the questions are listed in the Java source."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps({"ask": question, **arguments}), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the Java process ended: exit code {self._process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"{question}: {answer['error']}")
        (value,) = answer.values()
        return value

    def __enter__(self) -> JavaOracle:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                self._process.wait(EXIT_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
