"""The measurements that Spark takes by its unmodified Kafka connector, in one JVM for both.

Records have 100 bytes. Brokers, Spark and all share the machine, so that a broker that leaves more
of it to Spark is faster here.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks import memory
from benchmarks.bench import Bench, settle
from benchmarks.brokers import Durability, Server
from benchmarks.clients import Figures
from benchmarks.loads import LoadError, run_process

PARTITIONS = 6
RECORD_BYTES = 100
LATENCY_RATE = 1_000
# Before and behind the messages that count: two batches.
UNCOUNTED_S = 2
QUERY_S_MAX = 120


def _session() -> Any:
    """The session, started on first use: only a run of these rows pays for it."""
    from spark_examples.session import spark_session

    return spark_session("benchmarks")


def _write(server: Server, topic: str, records: int) -> None:
    value = f"lpad(cast(id as string), {RECORD_BYTES}, 'x') value"
    rows = _session().range(0, records, numPartitions=2).selectExpr(value)
    rows.write.format("kafka").options(**_options(server), topic=topic).save()


def _options(server: Server) -> dict[str, str]:
    return {"kafka.bootstrap.servers": server.bootstrap}


def _filled_topic(bench: Bench, server: Server) -> str:
    """A topic that Spark has written, made once for each broker."""
    if "spark" not in server.filled:
        topic = server.create_topic(PARTITIONS)
        _write(server, topic, bench.sizes.spark_records)
        settle()
        server.filled["spark"] = topic
    return server.filled["spark"]


_seen: set[object] = set()


def _warmed(load: object, once: Callable[[], Figures]) -> Figures:
    """Measure; the first of a kind is thrown away, because Spark starts and compiles then."""
    if load not in _seen:
        _seen.add(load)
        once()
    return once()


@dataclass(frozen=True)
class SparkWrite:
    """A batch query writes a new topic, with the producer's defaults."""

    def run(self, bench: Bench, server: Server, durability: Durability) -> Figures:
        return _warmed(self, lambda: self._once(bench, server, durability))

    def _once(self, bench: Bench, server: Server, durability: Durability) -> Figures:
        records = bench.sizes.spark_records
        memory.make_ready(bench.folder, records * RECORD_BYTES)
        with server.topic(PARTITIONS, durability) as topic:
            started = time.perf_counter()
            _write(server, topic, records)
            seconds = time.perf_counter() - started
        settle()
        return {"records/s": records / seconds}


@dataclass(frozen=True)
class SparkRead:
    """A batch query reads a whole topic and looks at every value."""

    def run(self, bench: Bench, server: Server, durability: Durability) -> Figures:
        return _warmed(self, lambda: self._once(bench, server))

    def _once(self, bench: Bench, server: Server) -> Figures:
        topic = _filled_topic(bench, server)
        records = bench.sizes.spark_records
        frame = _session().read.format("kafka").options(**_options(server), subscribe=topic).load()
        started = time.perf_counter()
        (row,) = frame.selectExpr("count(*) n", "sum(length(value)) bytes").collect()
        seconds = time.perf_counter() - started
        if (row.n, row.bytes) != (records, records * RECORD_BYTES):
            raise LoadError(f"{row.n} records with {row.bytes} bytes were read")
        return {"records/s": records / seconds}


@dataclass(frozen=True)
class SparkAvailableNow:
    """A new streaming query reads a whole topic, from its start to its end.

    Attributes:
        batches: into so many micro-batches.
    """

    batches: int

    def run(self, bench: Bench, server: Server, durability: Durability) -> Figures:
        return _warmed(self, lambda: self._once(bench, server))

    def _once(self, bench: Bench, server: Server) -> Figures:
        topic = _filled_topic(bench, server)
        records = bench.sizes.spark_records
        options = {"maxOffsetsPerTrigger": str(records // self.batches)}
        with tempfile.TemporaryDirectory(dir=bench.folder) as checkpoint:
            started = time.perf_counter()
            query = _stream(server, topic, options).writeStream.format("noop")
            query = _start(query, checkpoint, availableNow=True)
            if not query.awaitTermination(QUERY_S_MAX):
                query.stop()
                raise LoadError(f"AvailableNow took more than {QUERY_S_MAX} s")
            seconds = time.perf_counter() - started
            seen = sum(one.numInputRows for one in query.recentProgress)
        if seen != records:
            raise LoadError(f"{seen} of {records} records were read")
        return {"records/s": records / seconds}


@dataclass(frozen=True)
class SparkLatency:
    """From a producer through a query with a batch every second to a consumer."""

    def run(self, bench: Bench, server: Server, durability: Durability) -> Figures:
        with (
            server.topic(1, durability) as source,
            server.topic(1, durability) as target,
            tempfile.TemporaryDirectory(dir=bench.folder) as checkpoint,
        ):
            copied = _stream(server, source, {}).selectExpr("value").writeStream.format("kafka")
            copied = copied.options(**_options(server), topic=target)
            query = _start(copied, checkpoint, processingTime="1 second")
            try:
                deadline = time.monotonic() + QUERY_S_MAX
                while query.lastProgress is None:
                    if time.monotonic() > deadline:
                        raise LoadError("the query does not start")
                    time.sleep(0.05)
                done = run_process(
                    *("confluent_client", "latency", "--bootstrap", server.bootstrap),
                    *("--topic", source, "--to", target, f"--rate={LATENCY_RATE}"),
                    f"--seconds={bench.sizes.spark_latency_s}",
                    f"--uncounted-seconds={UNCOUNTED_S}",
                )
            finally:
                query.stop()
        return {"p50 ms": done["p50"], "p99 ms": done["p99"]}


def _stream(server: Server, topic: str, options: Mapping[str, str]) -> Any:
    reader = _session().readStream.format("kafka").options(**_options(server), **options)
    return reader.options(subscribe=topic, startingOffsets="earliest").load()


def _start(writer: Any, checkpoint: str, **trigger: Any) -> Any:
    return writer.option("checkpointLocation", checkpoint).trigger(**trigger).start()
