"""The measurements that real clients take: producers, consumers, end-to-end latency.

Each is a value that names its load; `run` takes one measurement of one broker and returns its
figures by name. MB are 10^6 bytes of record values, without keys, headers and batch overhead.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks import memory
from benchmarks.bench import Bench, BrokerCpu, settle
from benchmarks.brokers import Durability, Server
from benchmarks.loads import run_process

CONSUMED_RECORD_BYTES = 1024
CONSUMED_READ_MIN = 20_000
PRODUCED_BYTES_MAX = 600_000_000
FIRST_BYTES = 10_000_000

Figures = dict[str, float]


def _figures(records_per_s: float, size: int, records: int, cpu: BrokerCpu) -> Figures:
    return {
        "MB/s": records_per_s * size / 1e6,
        "records/s": records_per_s,
        "CPU s/GB": cpu.seconds / (records * size / 1e9),
    }


@dataclass(frozen=True)
class Produce:
    """Records as fast as a producer sends them to a new topic."""

    client: str
    size: int
    acks: str
    partitions: int
    # Of the producer, in the names that both clients know.
    properties: tuple[str, ...] = ()

    def run(self, bench: Bench, server: Server, durability: Durability) -> Figures:
        figures: Figures = {}
        with server.topic(self.partitions, durability) as topic:

            def once(records: int) -> float:
                memory.make_ready(bench.folder, records * self.size)
                with BrokerCpu(server) as cpu:
                    records_per_s = self._send(bench, server, topic, records)
                figures.update(_figures(records_per_s, self.size, records, cpu))
                settle()
                return records_per_s

            bench.sized(
                (self, server.broker, durability),
                bench.sizes.throughput_s,
                first=FIRST_BYTES // max(self.size, 200),
                most=PRODUCED_BYTES_MAX // self.size,
                run=once,
            )
        return figures

    def _send(self, bench: Bench, server: Server, topic: str, records: int) -> float:
        if self.client == "Java":
            return bench.java().produce(
                server.bootstrap,
                topic,
                records=records,
                payload=bench.payload_file(self.size),
                properties=[f"acks={self.acks}", *self.properties],
            )
        done = run_process(
            *("confluent_client", "produce", "--bootstrap", server.bootstrap, "--topic", topic),
            *(f"--records={records}", f"--payload={bench.payload_file(self.size)}"),
            *(f"--acks={self.acks}", *(f"--set={each}" for each in self.properties)),
        )
        return done["records"] / done["seconds"]


@dataclass(frozen=True)
class Consume:
    """Records as fast as consumers read them from the page cache, each reader all of them."""

    client: str
    partitions: int
    readers: int = 1

    def run(self, bench: Bench, server: Server, durability: Durability) -> Figures:
        topic = filled_topic(bench, server, self.partitions)
        figures: Figures = {}

        def once(records: int) -> float:
            memory.make_ready(bench.folder, records * CONSUMED_RECORD_BYTES)
            with BrokerCpu(server) as cpu:
                records_per_s = self._read(bench, server, topic, records)
            read = records * self.readers
            figures.update(_figures(records_per_s, CONSUMED_RECORD_BYTES, read, cpu))
            return records_per_s / self.readers

        bench.sized(
            (self, server.broker),
            bench.sizes.throughput_s,
            first=CONSUMED_READ_MIN,
            most=bench.sizes.consumed_records,
            run=once,
        )
        return figures

    def _read(self, bench: Bench, server: Server, topic: str, records: int) -> float:
        """Records per second of all readers together."""
        if self.client == "Java":
            read_bytes, seconds = bench.java().consume(
                server.bootstrap,
                topic,
                partitions=self.partitions,
                records=records,
                readers=self.readers,
            )
            return read_bytes / CONSUMED_RECORD_BYTES / seconds
        if self.client == "Java group":
            return bench.java().consume_with_group(server.bootstrap, topic, records=records)
        done = run_process(
            *("confluent_client", "consume", "--bootstrap", server.bootstrap, "--topic", topic),
            *(f"--records={records}", f"--partitions={self.partitions}"),
        )
        return done["records"] / done["seconds"]


def filled_topic(bench: Bench, server: Server, partitions: int) -> str:
    """A topic of 1 KiB records in the batches of a Java producer, made once for each broker."""
    key = f"consumed, {partitions} partitions"
    if key not in server.filled:
        topic = server.create_topic(partitions)
        bench.java().produce(
            server.bootstrap,
            topic,
            records=bench.sizes.consumed_records,
            payload=bench.payload_file(CONSUMED_RECORD_BYTES),
            properties=["acks=1"],
        )
        settle()
        server.filled[key] = topic
    return server.filled[key]


@dataclass(frozen=True)
class Latency:
    """End-to-end latency at 500 messages a second, confluent-kafka on both ends."""

    acks: str

    def run(self, bench: Bench, server: Server, durability: Durability) -> Figures:
        with server.topic(1, durability) as topic:
            done = run_process(
                *("confluent_client", "latency", "--bootstrap", server.bootstrap),
                *("--topic", topic, f"--acks={self.acks}"),
                f"--seconds={bench.sizes.latency_s}",
            )
        return {"p50 ms": done["p50"], "p99 ms": done["p99"]}
