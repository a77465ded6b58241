"""The measurements of groups: commits, rebalances, heartbeats."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.bare import small_requests
from benchmarks.bench import Bench
from benchmarks.brokers import Durability, Server
from benchmarks.clients import Figures
from benchmarks.loads import run_process


@dataclass(frozen=True)
class OffsetCommits:
    """Commits of one partition; the durability is that of the topic that keeps them."""

    connections: int
    depth: int

    def run(self, bench: Bench, server: Server, durability: Durability) -> Figures:
        with server.topic(1) as topic, server.offsets_kept(durability):
            return small_requests(
                bench, server, topic, "offset-commit", self.connections, self.depth
            )


@dataclass(frozen=True)
class Rebalance:
    """Ten members join a group at the same time, then one of them leaves."""

    protocol: str
    members: int = 10

    def run(self, bench: Bench, server: Server, durability: Durability) -> Figures:
        with server.topic(self.members, durability) as topic:
            return run_process(
                *("group_client", "rebalance", f"--bootstrap={server.bootstrap}"),
                *(f"--topic={topic}", f"--members={self.members}", f"--protocol={self.protocol}"),
            )


@dataclass(frozen=True)
class Heartbeats:
    """A thousand groups with one member each, which send a heartbeat once in a second."""

    groups: int = 1_000

    def run(self, bench: Bench, server: Server, durability: Durability) -> Figures:
        return run_process(
            *("group_client", "heartbeat", f"--port={server.port}"),
            *(f"--pid={server.pid}", f"--groups={self.groups}"),
        )
