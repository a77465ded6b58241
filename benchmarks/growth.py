"""`python -m benchmarks.growth`: what a request costs klamm as the broker grows. Writes growth.md.

CPU time of the broker for each request, by clients on bare sockets with one request under way at
a time. A broker for each size runs all the while, and they take turns, so that a slow minute of
the machine hits all of them. A cell is the median of the turns. A row is flat when its cells are
within 20 % of each other.

- produce: one record of 1 KiB to one partition, acks=1.
- fetch: one such record in an incremental session (KIP-227) of that partition alone.
- fetch, session of all partitions: the same, but the session knows every partition of the topic,
  and the others have no data.
- produce and the fetch that it wakes: the session of all partitions waits at their end.

The length of the log is the third way to grow: see disk.py.
"""

from __future__ import annotations

import argparse
import datetime
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks import frames
from benchmarks.loads import LoadError
from benchmarks.machine import allow_many_files, cpu_ns, machine_kind
from benchmarks.sockets import ask, check, connect, read_reply
from compat_tests.klamm_process import KlammProcess

RESULTS = Path(__file__).with_name("growth.md")
PARTITIONS = (1, 100, 5_000)
CONNECTIONS = (1, 100, 1_000)
FLAT = 1.2

TOPIC = "grown"
TIMEOUT_S = 120
RECORD_BYTES = 1_000
FILLED_RECORDS = 500
# Enough to return one record, and too little for two.
FETCH_BYTES = 1_100
PARKED_AFTER_S = 0.001
PARKED_MS = 60_000
# Before each request, so that the broker sleeps: where clients come back at once it asks for
# sockets again and again for a moment, and the client's own time would count as its.
PAUSE_S = 0.0002

PRODUCE_ERROR_AT = frames.produce_error_at(TOPIC)
FETCH_ERROR_AT = frames.fetch_error_at(TOPIC)


class Session:
    """A fetch session of some partitions, of which the first has data, on a connection."""

    def __init__(self, connection: socket.socket, partitions: int) -> None:
        self.connection = connection
        offsets = dict.fromkeys(range(partitions), 0)
        request = frames.fetch_in_session(TOPIC, offsets, (0, 0), bytes_max=1, wait_ms=0)
        self._id = frames.fetched_session(ask(connection, request))
        if self._id == 0:
            raise LoadError("the broker has no room for a session")
        self._epoch = 0

    def send_fetch(self, offset: int, wait_ms: int = 0) -> None:
        """Fetch incrementally: only the partition that gave data has a new offset."""
        self._epoch += 1
        session = (self._id, self._epoch)
        request = frames.fetch_in_session(
            TOPIC, {0: offset}, session, bytes_max=FETCH_BYTES, wait_ms=wait_ms
        )
        self.connection.sendall(request)

    def read_record(self) -> None:
        reply = read_reply(self.connection)
        check(reply, FETCH_ERROR_AT)
        if len(reply) < RECORD_BYTES:
            raise LoadError("a fetch was answered without the record")


class Subject:
    """A broker with so many partitions, and so many connections that send in turn."""

    def __init__(self, folder: Path, partitions: int, connections: int, stack: ExitStack) -> None:
        slots = {"max.incremental.fetch.session.cache.slots": str(connections + 1)}
        process = stack.enter_context(KlammProcess(folder / "data", properties=slots))
        self.pid = process.pid
        opened = [
            stack.enter_context(connect(process.port, TIMEOUT_S)) for _ in range(connections + 1)
        ]
        self._connections = opened[:connections]
        made = ask(opened[0], frames.create_topics(TOPIC, partitions))
        check(made, frames.create_topics_error_at(TOPIC))
        batch = frames.record_batch(records=1, value_bytes=RECORD_BYTES)
        self._produce = frames.produce(TOPIC, 0, batch, acks=1)
        self._end = 0
        self.produce(FILLED_RECORDS)
        self._readers = [Session(connection, 1) for connection in self._connections]
        # While its fetch waits, another connection has to write.
        self._reader_of_all = Session(opened[connections], partitions)

    def produce(self, count: int) -> None:
        for number in range(count):
            time.sleep(PAUSE_S)
            self._append(self._connections[number % len(self._connections)])

    def _append(self, connection: socket.socket) -> None:
        check(ask(connection, self._produce), PRODUCE_ERROR_AT)
        self._end += 1

    def fetch(self, count: int) -> None:
        for number in range(count):
            time.sleep(PAUSE_S)
            reader = self._readers[number % len(self._readers)]
            reader.send_fetch(number % FILLED_RECORDS)
            reader.read_record()

    def fetch_of_all(self, count: int) -> None:
        for number in range(count):
            time.sleep(PAUSE_S)
            self._reader_of_all.send_fetch(number % FILLED_RECORDS)
            self._reader_of_all.read_record()

    def wake(self, count: int) -> None:
        for _ in range(count):
            self._reader_of_all.send_fetch(self._end, PARKED_MS)
            time.sleep(PARKED_AFTER_S)
            self._append(self._connections[0])
            self._reader_of_all.read_record()

    def cost_us(self, act: Callable[[Subject, int], None], count: int) -> float:
        """CPU microseconds of the broker for each time that an act is done."""
        before_ns = cpu_ns(self.pid)
        act(self, count)
        return (cpu_ns(self.pid) - before_ns) / count / 1000


@dataclass(frozen=True)
class Row:
    """What is done at each size."""

    name: str
    act: Callable[[Subject, int], None]
    subjects: Sequence[Subject]
    # Requests in a turn, for the sake of time: some are few because they cost more.
    count: int


def measure(rows: Sequence[Row], turns: int) -> list[list[float]]:
    """The medians of each row, size by size."""
    found: list[list[list[float]]] = [[[] for _ in row.subjects] for row in rows]
    # The first turn warms up and does not count.
    for turn in range(turns + 1):
        for row, series in zip(rows, found, strict=True):
            for subject, values in zip(row.subjects, series, strict=True):
                cost = subject.cost_us(row.act, row.count)
                if turn:
                    values.append(cost)
        print(f"turn {turn} of {turns}", file=sys.stderr, flush=True)
    return [[statistics.median(values) for values in series] for series in found]


def table(
    thing: str, sizes: Sequence[int], rows: Sequence[Row], medians: Sequence[Sequence[float]]
) -> str:
    headings = ["CPU µs", *(f"{size:,} {thing}{'s' * (size > 1)}" for size in sizes)]
    lines = [
        [*headings, "max ÷ min", f"flat (≤ {FLAT:g})"],
        ["---", *["---:"] * len(sizes), "---:", "---"],
    ]
    for row, costs in zip(rows, medians, strict=True):
        ratio = max(costs) / min(costs)
        cells = [f"{cost:,.1f}" for cost in costs]
        lines.append([row.name, *cells, f"{ratio:.2f}", "yes" if ratio <= FLAT else "no"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def run(turns: int, count: int) -> str:
    """Both tables."""
    allow_many_files()
    shapes = [
        *((partitions, 1) for partitions in PARTITIONS),
        *((1, connections) for connections in CONNECTIONS[1:]),
    ]
    with tempfile.TemporaryDirectory(prefix="klamm-growth-") as folder, ExitStack() as stack:
        subjects = {
            shape: Subject(Path(folder) / f"{shape[0]}-{shape[1]}", *shape, stack)
            for shape in shapes
        }
        by_partitions = [subjects[partitions, 1] for partitions in PARTITIONS]
        by_connections = [subjects[1, connections] for connections in CONNECTIONS]
        session = "fetch, session of all partitions, data in one"
        of_partitions = [
            Row("produce", Subject.produce, by_partitions, count),
            Row("fetch", Subject.fetch, by_partitions, count),
            Row(session, Subject.fetch_of_all, by_partitions, count // 5),
            Row("produce and the waiting fetch of all", Subject.wake, by_partitions, count // 5),
        ]
        of_connections = [
            Row("produce", Subject.produce, by_connections, count),
            Row("fetch", Subject.fetch, by_connections, count),
        ]
        medians = measure([*of_partitions, *of_connections], turns)
    return "\n\n".join(
        [
            table("partition", PARTITIONS, of_partitions, medians[: len(of_partitions)]),
            table("connection", CONNECTIONS, of_connections, medians[len(of_partitions) :]),
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument(
        "--turns", type=int, default=9, help="measurements of each cell (default 9)"
    )
    parser.add_argument(
        "--requests", type=int, default=2_000, help="in each measurement (default 2000)"
    )
    parser.add_argument("--no-results", action="store_true", help="do not write growth.md")
    args = parser.parse_args()
    tables = run(args.turns, args.requests)
    print(tables)
    if not args.no_results:
        now = datetime.datetime.now(datetime.UTC)
        RESULTS.write_text(
            "# What a request costs as the broker grows\n\n"
            f"{now:%Y-%m-%d}, {machine_kind()}; klamm alone, by `make bench-growth`.\n"
            f"What the rows mean: docs/benchmarks.md. The length of the log: disk.md.\n\n{tables}\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
