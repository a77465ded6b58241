"""The measurements of transactions, one after the other by one producer."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.bench import Bench, settle
from benchmarks.brokers import Durability, Server
from benchmarks.clients import Figures
from benchmarks.loads import run_process

FIRST = 20
MOST = 5_000


@dataclass(frozen=True)
class Transactions:
    """Transactions of so many records of 100 bytes, each to one partition and committed."""

    records: int

    def run(self, bench: Bench, server: Server, durability: Durability) -> Figures:
        figures: Figures = {}
        with server.topic(1, durability) as topic:

            def once(count: int) -> float:
                done = run_process(
                    *("confluent_client", "transactions", f"--bootstrap={server.bootstrap}"),
                    *(f"--topic={topic}", f"--transactions={count}", f"--records={self.records}"),
                )
                rate = done["transactions"] / done["seconds"]
                figures.update({"transactions/s": rate, "records/s": rate * self.records})
                settle()
                return rate

            bench.sized(
                (self, server.broker), bench.sizes.throughput_s, first=FIRST, most=MOST, run=once
            )
        return figures
