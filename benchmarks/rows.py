"""The table: which load each row is about, which figure of it, in which mode, with which target.

Targets are ratios klamm ÷ Kafka. They stand here and nowhere else, and they rise with the project:
a row that has met its first target goes on to the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from benchmarks.bare import BulkFetch, BulkProduce, MemoryAfterLoad, SmallRequests, Startup
from benchmarks.bench import Bench
from benchmarks.brokers import KAFKA, KLAMM, Durability, Server, canonical
from benchmarks.clients import Consume, Figures, Latency, Produce
from benchmarks.groups import Heartbeats, OffsetCommits, Rebalance
from benchmarks.spark import SparkAvailableNow, SparkLatency, SparkRead, SparkWrite
from benchmarks.transactions import Transactions

# Units of which less is better; of all others more is better.
LOWER_IS_BETTER = frozenset(
    {"s", "ms", "MB", "CPU s/GB", "CPU µs"},
)


class Load(Protocol):
    """Something that can be measured on a broker."""

    def run(self, bench: Bench, server: Server, durability: Durability) -> Figures: ...


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        figure: the key in the load's figures.
        target: the ratio klamm ÷ Kafka to reach, None where none is set.
        first_target: the one that the row began with, None where it had none.
    """

    name: str
    load: Load
    figure: str
    unit: str
    target: float | None = None
    klamm: Durability = Durability.STOCK
    kafka: Durability = Durability.STOCK
    first_target: float | None = None

    @property
    def lower_is_better(self) -> bool:
        return self.unit in LOWER_IS_BETTER

    def durability(self, broker: str) -> Durability:
        return canonical(broker, self.klamm if broker == KLAMM else self.kafka)


BROKERS = (KAFKA, KLAMM)

STOCK_NAME = "stock: klamm synced, Kafka not"

_MODES = (
    # name, klamm's topics, Kafka's topics, target of a producer
    ("page cache", Durability.PAGE_CACHE, Durability.STOCK, 1.0),
    (STOCK_NAME, Durability.STOCK, Durability.STOCK, 0.8),
    ("both synced", Durability.SYNCED, Durability.SYNCED, 3.0),
)

# One factor at a time is changed from stock batches without compression to 6 partitions. A linger
# of 20 ms lets large batches fill.
_LARGE_BATCHES = ("batch.size=131072", "linger.ms=20")
_VARIATIONS: tuple[tuple[int, str, tuple[str, ...]], ...] = (
    # partitions, what the name adds, properties of the producer
    (6, "", ()),
    (1, "", ()),
    (100, "", ()),
    (6, ", 128 KiB batches", _LARGE_BATCHES),
    (6, ", lz4", ("compression.type=lz4",)),
)


def _size(size: int) -> str:
    return f"{size} B" if size < 1024 else f"{size // 1024} KiB"


def _count(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def _producer_rows(
    client: str, size: int, partitions: int, more: str = "", properties: tuple[str, ...] = ()
) -> list[Row]:
    """A row for acks=1, and one for each mode of acks=all."""
    shape = f"produce {client} {_size(size)}, {_count(partitions, 'partition')}{more}"
    load = Produce(client, size, "1", partitions, properties)
    rows = [Row(f"{shape}, acks=1", load, "MB/s", "MB/s", 1.0, first_target=0.7)]
    load = Produce(client, size, "all", partitions, properties)
    for mode, klamm, kafka, target in _MODES:
        name = f"{shape}, acks=all, {mode}"
        rows.append(Row(name, load, "MB/s", "MB/s", target, klamm, kafka, first_target=0.7))
    return rows


def _consumer_rows() -> list[Row]:
    loads = {
        f"consume {client} 1 KiB, {_count(count, 'partition')}": Consume(client, count)
        for client in ("Java", "confluent")
        for count in (1, 6)
    }
    loads["consume Java 1 KiB, 6 partitions, 3 readers"] = Consume("Java", 6, readers=3)
    name = "consume Java 1 KiB, 6 partitions, group (kafka-consumer-perf-test)"
    loads[name] = Consume("Java group", 6)
    return [Row(name, load, "MB/s", "MB/s", 1.0, first_target=0.7) for name, load in loads.items()]


def _bare_rows() -> list[Row]:
    unit = "requests/s"
    rows = []
    for kind in ("api-versions", "metadata", "produce"):
        for connections, depth, target in ((1, 1, 1.5), (1, 5, 1.5), (50, 1, 1.0)):
            name = f"{kind}, {_count(connections, 'connection')}, depth {depth}"
            load = SmallRequests(kind, connections, depth)
            rows.append(Row(name, load, unit, unit, target, first_target=0.5))
    rows += _commit_rows()
    for count in (1, 6):
        name = f"bulk produce 100 KiB, {_count(count, 'connection')}"
        rows.append(Row(name, BulkProduce(count), "MB/s", "MB/s", 1.0, first_target=0.7))
    for count in (1, 3):
        name = f"bulk fetch 1 MiB, {_count(count, 'connection')}"
        rows.append(Row(name, BulkFetch(count), "MB/s", "MB/s", 1.0, first_target=0.7))
    return rows


def _commit_rows() -> list[Row]:
    """Commits as both brokers take them, and with klamm leaving them to the page cache, too."""
    shapes = (
        (1, 1, STOCK_NAME, Durability.STOCK),
        (1, 5, STOCK_NAME, Durability.STOCK),
        (50, 1, STOCK_NAME, Durability.STOCK),
        (50, 1, "page cache", Durability.PAGE_CACHE),
    )
    unit = "requests/s"
    return [
        Row(
            f"offset-commit, {_count(connections, 'connection')}, depth {depth}, {mode}",
            *(OffsetCommits(connections, depth), unit, unit, 0.5, klamm),
            first_target=0.5,
        )
        for connections, depth, mode, klamm in shapes
    ]


def _group_rows() -> list[Row]:
    rows = []
    for protocol in ("classic", "consumer"):
        load = Rebalance(protocol)
        for name, figure in (
            (f"10 {protocol} members join until all own", "join s"),
            (f"one of 10 {protocol} members leaves", "leave s"),
        ):
            rows.append(Row(name, load, figure, "s", 1.0, first_target=1.0))
    name = "broker CPU, a heartbeat of 1,000 groups"
    rows.append(Row(name, Heartbeats(), "CPU µs/heartbeat", "CPU µs"))
    return rows


def _transaction_rows() -> list[Row]:
    loads = (
        ("transactions confluent, 1 record each", Transactions(1), "transactions/s"),
        ("transactions confluent, 1,000 records each", Transactions(1_000), "records/s"),
    )
    return [Row(name, load, unit, unit, 0.7, first_target=0.7) for name, load, unit in loads]


def _latency_rows() -> list[Row]:
    modes = (
        ("acks=1", "1", Durability.STOCK, 1.0),
        ("acks=all, page cache", "all", Durability.PAGE_CACHE, 1.0),
        (f"acks=all, {STOCK_NAME}", "all", Durability.STOCK, None),
    )
    return [
        Row(f"latency {name}, {part}", Latency(acks), f"{part} ms", "ms", target, klamm)
        for name, acks, klamm, target in modes
        for part in ("p50", "p99")
    ]


def _cpu_rows() -> list[Row]:
    loads: tuple[tuple[str, Load, float], ...] = (
        ("produce Java 100 B, 6 partitions, acks=1", Produce("Java", 100, "1", 6), 0.7),
        ("produce Java 1 KiB, 6 partitions, acks=1", Produce("Java", 1024, "1", 6), 0.7),
        ("produce confluent 1 KiB, 6 partitions, acks=1", Produce("confluent", 1024, "1", 6), 0.7),
        ("bulk produce 100 KiB, 1 connection", BulkProduce(1), 0.7),
        ("consume Java 1 KiB, 6 partitions", Consume("Java", 6), 1.0),
        ("consume confluent 1 KiB, 6 partitions", Consume("confluent", 6), 1.0),
        ("bulk fetch 1 MiB, 1 connection", BulkFetch(1), 1.0),
    )
    return [
        Row(f"broker CPU, {name}", load, "CPU s/GB", "CPU s/GB", target)
        for name, load, target in loads
    ]


def producer_rows() -> list[Row]:
    """The rows of `make bench-producers`."""
    return [
        row
        for client in ("Java", "confluent")
        for size in (100, 1024)
        for partitions, more, properties in _VARIATIONS
        for row in _producer_rows(client, size, partitions, more, properties)
    ]


def spark_rows() -> list[Row]:
    """The rows of `make bench-spark`, which has its own table: Spark needs its own ten minutes."""
    loads: tuple[tuple[str, Load, Durability], ...] = (
        ("batch write 100 B, 6 partitions, page cache", SparkWrite(), Durability.PAGE_CACHE),
        (f"batch write 100 B, 6 partitions, {STOCK_NAME}", SparkWrite(), Durability.STOCK),
        ("batch read 100 B, 6 partitions", SparkRead(), Durability.STOCK),
        ("AvailableNow, one batch", SparkAvailableNow(1), Durability.STOCK),
        ("AvailableNow, ten batches", SparkAvailableNow(10), Durability.STOCK),
    )
    unit = "records/s"
    rows = [
        Row(f"Spark {name}", load, unit, unit, 1.0, klamm, first_target=1.0)
        for name, load, klamm in loads
    ]
    for part in ("p50", "p99"):
        name = f"Spark topic to topic, a batch every second, {part}"
        rows.append(Row(name, SparkLatency(), f"{part} ms", "ms", 1.0, first_target=1.0))
    return rows


def all_rows() -> list[Row]:
    """All rows in the order of the table; memory after the load has to come last."""
    start, growth = Startup(), "memory growth by 1,000 idle connections"
    return [
        Row("start to first ApiVersions", start, "first reply s", "s", 0.2, first_target=0.2),
        Row("start to first produce", start, "first produce s", "s", 0.1, first_target=0.2),
        Row("memory idle", start, "idle MB", "MB", 0.12, first_target=0.2),
        Row(growth, start, "growth MB", "MB", 2.0),
        *(row for size in (100, 1024) for n in (1, 6) for row in _producer_rows("Java", size, n)),
        *(row for size in (100, 1024) for row in _producer_rows("confluent", size, 6)),
        *_consumer_rows(),
        *_bare_rows(),
        *_group_rows(),
        *_transaction_rows(),
        *_latency_rows(),
        *_cpu_rows(),
        Row("memory after the load", MemoryAfterLoad(), "loaded MB", "MB", 0.2),
    ]
