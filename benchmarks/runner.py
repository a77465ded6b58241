"""The order of the measurements: round after round, each load on Kafka, then on klamm.

Rounds come outermost, so that the two brokers are measured seconds apart and a slow minute of the
machine hits both; and so that a run that is out of time has fewer rounds, not fewer rows.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.bare import SmallRequests
from benchmarks.bench import Bench
from benchmarks.brokers import Durability, Server
from benchmarks.clients import Consume, Figures, Produce
from benchmarks.groups import OffsetCommits
from benchmarks.loads import LoadError
from benchmarks.machine import Usage
from benchmarks.rows import BROKERS, Load, Row

WARM_UP_S_MAX = 20.0
WARM_UP_GROWTH = 1.1
COMMIT_WARM_UPS = 3


@dataclass(frozen=True)
class Key:
    """A load on one broker in one mode; rows that share it share its samples."""

    load: Load
    broker: str
    durability: Durability


@dataclass
class Samples:
    """What was measured for one key so far, or why nothing could be."""

    figures: list[Figures] = field(default_factory=list)
    others_shares: list[float] = field(default_factory=list)
    problem: str = ""

    def values(self, figure: str) -> list[float]:
        return [figures[figure] for figures in self.figures]


@dataclass
class Outcome:
    """Everything that the table is made of."""

    samples: dict[Key, Samples]
    rounds_done: int
    rounds_wanted: int
    seconds: float
    others_share: float

    def of(self, row: Row, broker: str) -> Samples | None:
        return self.samples.get(Key(row.load, broker, row.durability(broker)))


class Runner:
    """Takes the measurements for some rows on some brokers."""

    def __init__(
        self, bench: Bench, rows: Sequence[Row], brokers: Sequence[str], *, seconds_max: float
    ) -> None:
        self._bench = bench
        self._rows = rows
        self._brokers = [broker for broker in BROKERS if broker in brokers]
        self._samples: dict[Key, Samples] = {}
        self._started_s = time.monotonic()
        self._deadline_s = self._started_s + seconds_max

    def run(self, rounds: int) -> Outcome:
        usage = Usage.now()
        for broker in self._brokers:
            self._say(f"start {broker}")
            self._bench.start(broker)
        for broker in self._brokers:
            self._warm_up(self._bench.servers[broker])
        done = 0
        while done < rounds and self._round(f"{done + 1}/{rounds}", first=done == 0):
            done += 1
        elapsed_s = time.monotonic() - self._started_s
        return Outcome(self._samples, done, rounds, elapsed_s, usage.others_share(Usage.now()))

    def _round(self, name: str, *, first: bool) -> bool:
        """One measurement of each key; False when the time was up before the end."""
        for key in self._keys():
            if time.monotonic() > self._deadline_s:
                self._say(f"round {name}: the time is up")
                return False
            if first:
                self._samples[key] = Samples()
            samples = self._samples[key]
            if not samples.problem:
                self._measure(name, key, samples)
        return True

    def _keys(self) -> Iterator[Key]:
        """Each key once, in the order of the rows, the brokers taking turns."""
        seen: set[Key] = set()
        for load in dict.fromkeys(row.load for row in self._rows):
            rows = [row for row in self._rows if row.load == load]
            for row in rows:
                for broker in self._brokers:
                    key = Key(load, broker, row.durability(broker))
                    if key not in seen:
                        seen.add(key)
                        yield key

    def _measure(self, name: str, key: Key, samples: Samples) -> None:
        usage = Usage.now()
        step = f"round {name}  {key.broker:5}  {self._name(key)}"
        try:
            figures = key.load.run(self._bench, self._bench.servers[key.broker], key.durability)
        except LoadError as problem:
            # Not tried again: a load that hangs would eat the time of all the others.
            samples.problem = f"failed: {problem}"
            self._say(f"{step}: {samples.problem}")
            return
        samples.figures.append(figures)
        samples.others_shares.append(usage.others_share(Usage.now()))
        shown = ", ".join(f"{value:,.2f} {figure}" for figure, value in figures.items())
        self._say(f"{step}: {shown}")

    def _name(self, key: Key) -> str:
        """The name of the first row that the key is for."""
        return next(
            row.name
            for row in self._rows
            if row.load == key.load and row.durability(key.broker) == key.durability
        )

    def _warm_up(self, server: Server) -> None:
        """Load the broker, and the client JVM, until the rate of a producer grows no more."""
        started_s = time.monotonic()
        best = 0.0
        try:
            while time.monotonic() < started_s + WARM_UP_S_MAX:
                rate = 0.0
                for load in (Produce("Java", 100, "1", 6), Produce("Java", 1024, "all", 1)):
                    rate += load.run(self._bench, server, Durability.STOCK)["records/s"]
                if rate < best * WARM_UP_GROWTH:
                    break
                best = rate
            Consume("Java", 6).run(self._bench, server, Durability.STOCK)
            for kind in ("api-versions", "metadata", "produce"):
                SmallRequests(kind, 50, 1).run(self._bench, server, Durability.STOCK)
            # What a JVM has not compiled yet is two to three times slower.
            for _ in range(COMMIT_WARM_UPS):
                OffsetCommits(50, 1).run(self._bench, server, Durability.STOCK)
        except LoadError as problem:
            self._say(f"warm-up of {server.broker} failed: {problem}")
        self._say(f"warmed {server.broker} up in {time.monotonic() - started_s:.0f} s")

    def _say(self, text: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self._started_s), 60)
        print(f"{minutes:02}:{seconds:02}  {text}", file=sys.stderr, flush=True)
