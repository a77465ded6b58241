"""`python -m benchmarks.disk`: what depends on how much is on the disk. Writes disk.md.

- 1,000 partitions made: from CreateTopics until each of them answers a fetch.
- Start after a clean stop and after a kill: from the launch of the process until it serves, with
  1,000 partitions and 10 GB in them. The kill follows the first start.
- Compaction: bytes compacted in a second. A broker with the cleaner off is filled with keys that
  repeat, and started again with the cleaner on.
- Append and fetch at 50 GiB, klamm alone: one request after the other on a log of that length, in
  turns with the same on one of 1 GiB. Both are sparse files, see sparse_log.py.

It needs some 25 GB of disk and a quarter of an hour, so it is not part of `make bench`.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import random
import shutil
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import frames, memory
from benchmarks.brokers import KAFKA, KLAMM, Server
from benchmarks.loads import LoadError
from benchmarks.sockets import ask, check, connect, read_reply
from benchmarks.sparse_log import lay_out
from compat_tests.apache_kafka import ApacheKafka
from compat_tests.klamm_process import KlammProcess

RESULTS = Path(__file__).with_name("disk.md")
PARTITIONS = 1_000
MAKING_TIMEOUT_S = 120
BATCH_VALUE_BYTES = 1_000
BATCH_RECORDS = 900
UNDER_WAY = 16
# Of each kind, to each log: requests in a series, and series.
REQUESTS = 300
SERIES = 15
ACTS = ("append", "fetch")
COMPACTED_BYTES = 512 * 1024 * 1024
COMPACTION_TIMEOUT_S = 300
KEYS = 500

Process = ApacheKafka | KlammProcess


@dataclass(frozen=True)
class Line:
    """One row: two numbers and the ratio of the second to the first."""

    name: str
    unit: str
    base: float
    klamm: float
    target: float
    lower_is_better: bool = True

    @property
    def ratio(self) -> float:
        return self.klamm / self.base

    @property
    def is_reached(self) -> bool:
        return self.ratio <= self.target if self.lower_is_better else self.ratio >= self.target

    def markdown(self) -> str:
        verdict = "yes" if self.is_reached else "no"
        return (
            f"| {self.name} | {self.unit} | {self.base:.2f} | {self.klamm:.2f} |"
            f" {self.ratio:.2f} | {self.target} | {verdict} |"
        )


def process_for(broker: str, folder: Path, properties: dict[str, str] | None = None) -> Process:
    kind = KlammProcess if broker == KLAMM else ApacheKafka
    return kind(folder / "data", properties=properties or {})


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- many partitions -----------------------------------------------------------------------------


def measure_partitions(broker: str, folder: Path, total_bytes: int) -> dict[str, float]:
    """Make 1,000 partitions, fill them, and start again, after a clean stop and after a kill."""
    folder.mkdir()
    process = process_for(broker, folder)
    process.start()
    try:
        server = Server(broker, process)
        began = time.monotonic()
        topic = server.create_topic(PARTITIONS, timeout_s=MAKING_TIMEOUT_S)
        made_s = time.monotonic() - began
        fill(process.port, topic, total_bytes)
        process.stop()
        process.start()
        clean_s = process.ready_s
        process.kill()
        process.start()
        found = {"made": made_s, "clean": clean_s, "killed": process.ready_s}
    finally:
        process.kill()
    shutil.rmtree(folder)
    say(f"{broker}: {found}")
    return found


def fill(port: int, topic: str, total_bytes: int) -> None:
    """Write large batches to all partitions in turn."""
    batch = frames.record_batch(records=BATCH_RECORDS, value_bytes=BATCH_VALUE_BYTES)
    requests = (
        frames.produce(topic, number % PARTITIONS, batch, acks=1)
        for number in range(total_bytes // len(batch))
    )
    with connect(port, timeout_s=120) as connection:
        pipeline(connection, requests, frames.produce_error_at(topic))


def pipeline(connection: socket.socket, requests: Iterable[bytes], error_at: int) -> None:
    """Send requests, some of them under way at a time."""
    under_way = 0
    for request in requests:
        connection.sendall(request)
        under_way += 1
        if under_way == UNDER_WAY:
            check(read_reply(connection), error_at)
            under_way -= 1
    for _ in range(under_way):
        check(read_reply(connection), error_at)


# --- compaction ----------------------------------------------------------------------------------


def measure_compaction(broker: str, folder: Path, total_bytes: int) -> float:
    """Megabytes that are compacted in a second."""
    folder.mkdir()
    settings = {
        "log.cleaner.backoff.ms": "100",
        "log.cleanup.policy": "compact",
        "log.segment.bytes": str(64 * 1024 * 1024),
        "log.cleaner.min.cleanable.ratio": "0.01",
    }
    process = process_for(broker, folder, {**settings, "log.cleaner.enable": "false"})
    process.start()
    try:
        topic = Server(broker, process).create_topic(1)
        batches = [frames.keyed_batch(KEYS, BATCH_VALUE_BYTES, seed) for seed in range(4)]
        count = total_bytes // len(batches[0])
        requests = (frames.produce(topic, 0, batches[n % 4], acks=1) for n in range(count))
        with connect(process.port, timeout_s=120) as connection:
            pipeline(connection, requests, frames.produce_error_at(topic))
        process.stop()
        process.properties["log.cleaner.enable"] = "true"
        before = bytes_in(folder / "data" / f"{topic}-0")
        memory.make_ready(folder, total_bytes)
        process.start()
        began = time.monotonic()
        while bytes_in(folder / "data" / f"{topic}-0") > before // 4:
            if time.monotonic() > began + COMPACTION_TIMEOUT_S:
                raise LoadError(f"{broker} has not compacted the log")
            time.sleep(0.02)
        rate = before / 1e6 / (time.monotonic() - began)
    finally:
        process.kill()
    shutil.rmtree(folder)
    say(f"{broker}: compaction {rate:.0f} MB/s")
    return rate


def bytes_in(partition: Path) -> int:
    """The size of the segments that are part of a log; some may go while they are counted."""
    total = 0
    for path in partition.glob("*.log"):
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


# --- a long log ----------------------------------------------------------------------------------


def measure_long_logs(folder: Path, sizes: Sequence[int]) -> list[dict[str, float]]:
    """Microseconds for an append and for a fetch anywhere in logs of so many gibibytes.

    In turns, because the machine is not as fast in one minute as in the next.
    """
    with ExitStack() as stack:
        logs = [stack.enter_context(long_log(folder / str(size), size)) for size in sizes]
        times: list[dict[str, list[float]]] = [{act: [] for act in ACTS} for _ in logs]
        for number in range(SERIES + 1):
            for log, found in zip(logs, times, strict=True):
                for act in ACTS:
                    took = microseconds(log[act])
                    # The first series does not count.
                    if number:
                        found[act].append(took)
    return [{act: statistics.median(found[act]) for act in ACTS} for found in times]


@contextmanager
def long_log(folder: Path, segments: int) -> Iterator[dict[str, Callable[[], None]]]:
    """A broker with one log of so many segments, and what can be done to it."""
    folder.mkdir()
    topic = "deep"
    process = KlammProcess(folder / "data", properties={"log.retention.ms": "-1"})
    with process, connect(process.port) as connection:
        made = ask(connection, frames.create_topics(topic, 1))
        check(made, frames.create_topics_error_at(topic))
    end = lay_out(folder / "data", topic, segments)
    with process, connect(process.port) as connection:
        chance = random.Random(segments)
        # The same in every series, so that they are in memory from the second on: a long log has
        # more that is not, and this is about finding, not about reading from the disk.
        offsets = itertools.cycle([chance.randrange(end) for _ in range(REQUESTS)])
        batch = frames.record_batch(records=1, value_bytes=BATCH_VALUE_BYTES)
        appended = frames.produce(topic, 0, batch, acks=1)

        def append() -> None:
            check(ask(connection, appended), frames.produce_error_at(topic))

        def fetch() -> None:
            request = frames.fetch(topic, 0, next(offsets), bytes_max=1, wait_ms=0)
            check(ask(connection, request), frames.fetch_error_at(topic))

        yield dict(zip(ACTS, (append, fetch), strict=True))
    shutil.rmtree(folder)


def microseconds(act: Callable[[], None]) -> float:
    """What each takes of a series."""
    began = time.perf_counter()
    for _ in range(REQUESTS):
        act()
    return (time.perf_counter() - began) / REQUESTS * 1e6


# --- the table -----------------------------------------------------------------------------------


def measure(folder: Path, gigabytes: int, long_gib: int) -> list[Line]:
    short, long = measure_long_logs(folder, (1, long_gib))
    say(f"1 GiB: {short}, {long_gib} GiB: {long}")
    lines = [
        Line(f"{act} at {long_gib} GiB (first: at 1 GiB)", "µs", short[act], long[act], 1.1)
        for act in ("append", "fetch")
    ]
    rates = {
        broker: measure_compaction(broker, folder / f"{broker}-compaction", COMPACTED_BYTES)
        for broker in (KAFKA, KLAMM)
    }
    lines.append(Line("compaction", "MB/s", rates[KAFKA], rates[KLAMM], 0.3, lower_is_better=False))
    found = {
        broker: measure_partitions(broker, folder / broker, gigabytes * 10**9)
        for broker in (KAFKA, KLAMM)
    }
    names = {
        "made": (f"{PARTITIONS:,} partitions made", 1.0),
        "clean": (f"start after a clean stop, {gigabytes} GB", 0.33),
        "killed": (f"start after kill -9, {gigabytes} GB", 1.0),
    }
    lines += [
        Line(name, "s", found[KAFKA][key], found[KLAMM][key], target)
        for key, (name, target) in names.items()
    ]
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.disk", description=__doc__)
    parser.add_argument("--gigabytes", type=int, default=10, help="in the 1,000 partitions")
    parser.add_argument("--long-gib", type=int, default=50, help="of the long log")
    parser.add_argument("--no-results", action="store_true", help="do not write disk.md")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="klamm-disk-") as folder:
        lines = measure(Path(folder), args.gigabytes, args.long_gib)
    header = (
        "| Row | Unit | Kafka | klamm | Ratio | Target | Reached |\n|---|---|---|---|---|---|---|"
    )
    table = "\n".join([header, *(line.markdown() for line in lines), ""])
    print(table)
    if not args.no_results:
        RESULTS.write_text(f"# What depends on the disk\n\nBy `make bench-disk`.\n\n{table}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
