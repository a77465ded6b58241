"""One run: its two brokers, its client JVM, its sizes, and the measurements taken so far."""

from __future__ import annotations

import os
import random
import string
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from benchmarks.brokers import Server, running
from benchmarks.java_client import JavaClient
from benchmarks.machine import cpu_s

PAYLOADS = 100
WORDS = 500
WORD_BYTES = 8
SIZE_STEP_MAX = 20


@dataclass(frozen=True)
class Sizes:
    """How long the measurements last; the count of records follows from the rate seen before."""

    throughput_s: float = 1.5
    requests_s: float = 1.0
    latency_s: float = 3.0
    consumed_records: int = 600_000
    bulk_batches: int = 1_000
    spark_records: int = 1_000_000
    spark_latency_s: float = 15.0


QUICK = Sizes(
    throughput_s=0.5,
    requests_s=0.3,
    latency_s=1.0,
    consumed_records=60_000,
    bulk_batches=300,
    spark_records=100_000,
    spark_latency_s=5.0,
)


@dataclass
class Bench:
    """What measurements need: call `server` and `java` for what is started on first use."""

    folder: Path
    sizes: Sizes
    servers: dict[str, Server] = field(default_factory=dict)
    _rates: dict[object, float] = field(default_factory=dict)
    _java: JavaClient | None = None
    _stack: ExitStack = field(default_factory=ExitStack)

    def start(self, broker: str) -> Server:
        server = self._stack.enter_context(running(broker, self.folder / broker))
        self.servers[broker] = server
        return server

    def java(self) -> JavaClient:
        """The client JVM; a new one when the last one hung or died."""
        if self._java is not None and not self._java.alive:
            self._java.close()
            self._java = None
        if self._java is None:
            self._java = JavaClient()
        return self._java

    def payload_file(self, size: int) -> Path:
        """A value in each line, made of words, so that a codec has something to do.

        With --record-size kafka-producer-perf-test makes up every byte anew, which would be the
        bottleneck.
        """
        path = self.folder / f"payload-{size}.txt"
        if not path.exists():
            chance = random.Random(size)
            words = [
                "".join(chance.choices(string.ascii_letters, k=WORD_BYTES)) for _ in range(WORDS)
            ]
            with path.open("w") as file:
                for _ in range(PAYLOADS):
                    file.write(" ".join(chance.choices(words, k=size // WORD_BYTES))[:size] + "\n")
        return path

    def sized(
        self, key: object, seconds: float, *, first: int, most: int, run: Callable[[int], float]
    ) -> float:
        """Run a load with a count that takes about `seconds`; the rate that the last run gave.

        Nothing is known about a load's rate in the beginning, so it starts with a small count,
        which also warms its path, and grows until the count fits.
        """
        count = first
        if key in self._rates:
            count = self._count(key, seconds, first, most)
        while True:
            self._rates[key] = run(count)
            fitting = self._count(key, seconds, first, most)
            if count * 2 >= fitting:
                return self._rates[key]
            count = min(fitting, count * SIZE_STEP_MAX)

    def _count(self, key: object, seconds: float, first: int, most: int) -> int:
        return min(most, max(first, int(self._rates[key] * seconds)))

    def close(self) -> None:
        if self._java is not None:
            self._java.close()
            self._java = None
        self._stack.close()

    def __enter__(self) -> Bench:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


@dataclass
class BrokerCpu:
    """CPU seconds that a broker spends inside a with block."""

    server: Server
    seconds: float = 0.0

    def __enter__(self) -> BrokerCpu:
        self.seconds = -cpu_s(self.server.pid)
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds += cpu_s(self.server.pid)


def settle() -> None:
    """Write what is dirty to disk now, so that it does not disturb the next measurement."""
    os.sync()
