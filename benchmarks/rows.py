"""The table: which load each row is about, which figure of it, in which mode, with which target.

Targets are ratios klamm ÷ Kafka. They stand here and nowhere else, and they rise with the project.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from benchmarks.bare import BulkFetch, BulkProduce, MemoryAfterLoad, SmallRequests, Startup
from benchmarks.bench import Bench
from benchmarks.brokers import KAFKA, KLAMM, Durability, Server, canonical
from benchmarks.clients import Consume, Figures, Latency, Produce
from benchmarks.groups import Heartbeats, Rebalance
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
        target: the ratio klamm ÷ Kafka to reach, None where none is set yet.
    """

    name: str
    load: Load
    figure: str
    unit: str
    target: float | None = None
    klamm: Durability = Durability.STOCK
    kafka: Durability = Durability.STOCK

    @property
    def lower_is_better(self) -> bool:
        return self.unit in LOWER_IS_BETTER

    def durability(self, broker: str) -> Durability:
        return canonical(broker, self.klamm if broker == KLAMM else self.kafka)


BROKERS = (KAFKA, KLAMM)

_MODES = (
    # name, klamm's topics, Kafka's topics, target
    ("page cache", Durability.PAGE_CACHE, Durability.STOCK, 0.7),
    ("stock: klamm synced, Kafka not", Durability.STOCK, Durability.STOCK, 0.7),
    ("both synced", Durability.SYNCED, Durability.SYNCED, 0.7),
)


def _size(size: int) -> str:
    return f"{size} B" if size < 1024 else f"{size // 1024} KiB"


def _count(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def _producer_rows(client: str, sizes: tuple[int, ...], counts: tuple[int, ...]) -> list[Row]:
    rows = []
    for size in sizes:
        for partitions in counts:
            shape = f"produce {client} {_size(size)}, {_count(partitions, 'partition')}"
            load = Produce(client, size, "1", partitions)
            rows.append(Row(f"{shape}, acks=1", load, "MB/s", "MB/s", target=0.7))
            for mode, klamm, kafka, target in _MODES:
                load = Produce(client, size, "all", partitions)
                name = f"{shape}, acks=all, {mode}"
                rows.append(Row(name, load, "MB/s", "MB/s", target, klamm, kafka))
    return rows


def _consumer_rows() -> list[Row]:
    rows = [
        Row(f"consume {client} 1 KiB, {_count(count, 'partition')}", load, "MB/s", "MB/s", 0.7)
        for client in ("Java", "confluent")
        for count in (1, 6)
        for load in (Consume(client, count),)
    ]
    three = Consume("Java", 6, readers=3)
    rows.append(Row("consume Java 1 KiB, 6 partitions, 3 readers", three, "MB/s", "MB/s", 0.7))
    rows.append(
        Row(
            "consume Java 1 KiB, 6 partitions, group (kafka-consumer-perf-test)",
            *(Consume("Java group", 6), "MB/s", "MB/s", 0.7),
        )
    )
    return rows


def _bare_rows() -> list[Row]:
    rows = [
        Row(
            f"{kind}, {_count(connections, 'connection')}, depth {depth}",
            *(SmallRequests(kind, connections, depth), "requests/s", "requests/s", 0.5),
        )
        for kind in ("api-versions", "metadata", "produce", "offset-commit")
        for connections, depth in ((1, 1), (1, 5), (50, 1))
    ]
    for count in (1, 6):
        name = f"bulk produce 100 KiB, {_count(count, 'connection')}"
        rows.append(Row(name, BulkProduce(count), "MB/s", "MB/s", 0.7))
    for count in (1, 3):
        name = f"bulk fetch 1 MiB, {_count(count, 'connection')}"
        rows.append(Row(name, BulkFetch(count), "MB/s", "MB/s", 0.7))
    return rows


def _group_rows() -> list[Row]:
    rows = []
    for protocol in ("classic", "consumer"):
        load = Rebalance(protocol)
        rows.append(Row(f"10 {protocol} members join until all own", load, "join s", "s", 1.0))
        rows.append(Row(f"one of 10 {protocol} members leaves", load, "leave s", "s", 1.0))
    name = "broker CPU, a heartbeat of 1,000 groups"
    rows.append(Row(name, Heartbeats(), "CPU µs/heartbeat", "CPU µs"))
    return rows


def _transaction_rows() -> list[Row]:
    one, many = Transactions(1), Transactions(1_000)
    unit = "transactions/s"
    return [
        Row("transactions confluent, 1 record each", one, unit, unit, 0.7),
        Row("transactions confluent, 1,000 records each", many, "records/s", "records/s", 0.7),
    ]


def _latency_rows() -> list[Row]:
    modes = (
        ("acks=1", "1", Durability.STOCK),
        ("acks=all, page cache", "all", Durability.PAGE_CACHE),
        ("acks=all, stock: klamm synced, Kafka not", "all", Durability.STOCK),
    )
    return [
        Row(f"latency {name}, {part}", Latency(acks), f"{part} ms", "ms", None, klamm)
        for name, acks, klamm in modes
        for part in ("p50", "p99")
    ]


def _cpu_rows() -> list[Row]:
    loads: tuple[tuple[str, Load], ...] = (
        ("produce Java 100 B, 6 partitions, acks=1", Produce("Java", 100, "1", 6)),
        ("produce Java 1 KiB, 6 partitions, acks=1", Produce("Java", 1024, "1", 6)),
        ("produce confluent 1 KiB, 6 partitions, acks=1", Produce("confluent", 1024, "1", 6)),
        ("bulk produce 100 KiB, 1 connection", BulkProduce(1)),
        ("consume Java 1 KiB, 6 partitions", Consume("Java", 6)),
        ("consume confluent 1 KiB, 6 partitions", Consume("confluent", 6)),
        ("bulk fetch 1 MiB, 1 connection", BulkFetch(1)),
    )
    return [Row(f"broker CPU, {name}", load, "CPU s/GB", "CPU s/GB") for name, load in loads]


def spark_rows() -> list[Row]:
    """The rows of `make bench-spark`, which has its own table: Spark needs its own ten minutes."""
    loads: tuple[tuple[str, Load], ...] = (
        ("batch write 100 B, 6 partitions", SparkWrite()),
        ("batch read 100 B, 6 partitions", SparkRead()),
        ("AvailableNow, one batch", SparkAvailableNow(1)),
        ("AvailableNow, ten batches", SparkAvailableNow(10)),
    )
    rows = [Row(f"Spark {name}", load, "records/s", "records/s", 1.0) for name, load in loads]
    for part in ("p50", "p99"):
        name = f"Spark topic to topic, a batch every second, {part}"
        rows.append(Row(name, SparkLatency(), f"{part} ms", "ms", 1.0))
    return rows


def all_rows() -> list[Row]:
    """All rows in the order of the table; memory after the load has to come last."""
    return [
        Row("start to first ApiVersions", Startup(), "first reply s", "s", 0.2),
        Row("start to first produce", Startup(), "first produce s", "s", 0.2),
        Row("memory idle", Startup(), "idle MB", "MB", 0.2),
        Row("memory growth by 1,000 idle connections", Startup(), "growth MB", "MB"),
        *_producer_rows("Java", (100, 1024), (1, 6)),
        *_producer_rows("confluent", (100, 1024), (6,)),
        *_consumer_rows(),
        *_bare_rows(),
        *_group_rows(),
        *_transaction_rows(),
        *_latency_rows(),
        *_cpu_rows(),
        Row("memory after the load", MemoryAfterLoad(), "loaded MB", "MB"),
    ]
