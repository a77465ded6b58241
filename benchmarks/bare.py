"""The measurements over bare sockets, and those of the process itself: start, memory."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks import memory
from benchmarks.bench import Bench, BrokerCpu, settle
from benchmarks.brokers import Durability, Server
from benchmarks.clients import Figures
from benchmarks.loads import run_process
from benchmarks.machine import resident_bytes
from benchmarks.startup import measure_startup

# What a second of batches brings.
BULK_BYTES_MAX = 2_000_000_000


@dataclass(frozen=True)
class SmallRequests:
    """One small request after the other, `depth` of them under way on each connection."""

    kind: str
    connections: int
    depth: int

    def run(self, bench: Bench, server: Server, durability: Durability) -> Figures:
        with server.topic(1, durability) as topic:
            return small_requests(bench, server, topic, self.kind, self.connections, self.depth)


def small_requests(
    bench: Bench, server: Server, topic: str, kind: str, connections: int, depth: int
) -> Figures:
    """How many requests of a kind, about one topic, are answered in a second."""
    done = run_process(
        *("raw_client", "small", f"--port={server.port}", f"--topic={topic}", f"--kind={kind}"),
        *(f"--connections={connections}", f"--depth={depth}"),
        f"--seconds={bench.sizes.requests_s}",
    )
    return {"requests/s": done["requests"] / done["seconds"]}


@dataclass(frozen=True)
class BulkProduce:
    """Pre-encoded batches of 100 KiB, acks=1, five under way on each connection."""

    connections: int

    def run(self, bench: Bench, server: Server, durability: Durability) -> Figures:
        memory.make_ready(bench.folder, BULK_BYTES_MAX)
        with server.topic(self.connections, durability) as topic:
            with BrokerCpu(server) as cpu:
                done = run_process(
                    *("raw_client", "produce", f"--port={server.port}", f"--topic={topic}"),
                    *(f"--connections={self.connections}", f"--seconds={bench.sizes.requests_s}"),
                )
            settle()
        return _bulk_figures(done, cpu)


@dataclass(frozen=True)
class BulkFetch:
    """Fetches of 1 MiB, one under way on each connection, from the page cache."""

    connections: int

    def run(self, bench: Bench, server: Server, durability: Durability) -> Figures:
        batches = f"--batches={bench.sizes.bulk_batches}"
        if "bulk" not in server.filled:
            topic = server.create_topic(1)
            run_process("raw_client", "fill", f"--port={server.port}", f"--topic={topic}", batches)
            settle()
            server.filled["bulk"] = topic
        with BrokerCpu(server) as cpu:
            done = run_process(
                *("raw_client", "fetch", f"--port={server.port}"),
                *(f"--topic={server.filled['bulk']}", batches),
                *(f"--connections={self.connections}", f"--seconds={bench.sizes.requests_s}"),
            )
        return _bulk_figures(done, cpu)


def _bulk_figures(done: dict[str, float], cpu: BrokerCpu) -> Figures:
    return {
        "MB/s": done["bytes"] / done["seconds"] / 1e6,
        "CPU s/GB": cpu.seconds / (done["bytes"] / 1e9),
    }


@dataclass(frozen=True)
class Startup:
    """A second process of the broker on a fresh directory, up to its first replies."""

    def run(self, bench: Bench, server: Server, durability: Durability) -> Figures:
        return measure_startup(server.broker, bench.folder / f"start-{server.broker}")


@dataclass(frozen=True)
class MemoryAfterLoad:
    """Resident memory of the broker that all the other measurements have loaded."""

    def run(self, bench: Bench, server: Server, durability: Durability) -> Figures:
        return {"loaded MB": resident_bytes(server.pid) / 1e6}
