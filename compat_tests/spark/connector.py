"""Spark's Kafka source and sink with few words, for one broker."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from compat_tests.clients.librdkafka import ConfluentKafka
from compat_tests.clients.model import DEFAULT_MODE, ProducerMode, Record

DAY_0_MS = 1_767_225_600_000
"""2026-01-01 in UTC."""

WAIT_S_MAX = 90
"""Far above what any query here needs, also on a machine that has much else to do."""

# Many small queries: compiling each to Java, and that to fast machine code, never pays here.
SMALL_QUERIES = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}

FAILURES = (PySparkException, Py4JError)
"""How PySpark says that a query has failed: some errors of the JVM it translates, others not."""

Trigger = Mapping[str, Any]
"""The arguments of DataStreamWriter.trigger."""

AVAILABLE_NOW: Trigger = {"availableNow": True}
EVERY_100_MS: Trigger = {"processingTime": "100 milliseconds"}

Cell = tuple[int, int, str | None]
"""Partition, offset and value of a record."""


class Read(Protocol):
    def __call__(self, **options: object) -> list[Row]: ...


class Write(Protocol):
    def __call__(self, frame: DataFrame, **options: object) -> None: ...


class Connector:
    """Reads and writes a broker by format("kafka"); ends its queries when the test ends."""

    def __init__(self, spark: SparkSession, bootstrap: str, checkpoint: Path) -> None:
        self.spark = spark
        self.bootstrap = bootstrap
        self.checkpoint = checkpoint
        self._queries: list[StreamingQuery] = []
        self._numbers = itertools.count(1)

    def close(self) -> None:
        for query in self._queries:
            query.stop()

    # Batch

    def load(self, **options: object) -> DataFrame:
        """A batch read; options are Spark's, with `__` for the dots in a name."""
        return self.spark.read.format("kafka").options(**self._options(options)).load()

    def read(self, **options: object) -> list[Row]:
        return self.load(**options).orderBy("topic", "partition", "offset").collect()

    def values(self, **options: object) -> list[Cell]:
        return cells(self.read(**options))

    def save(self, frame: DataFrame, **options: object) -> None:
        frame.write.format("kafka").options(**self._options(options)).save()

    def produce(
        self,
        topic: str,
        values: Sequence[str | Record],
        partition: int = 0,
        mode: ProducerMode = DEFAULT_MODE,
    ) -> None:
        """Write by a client that is not Spark's."""
        records = [Record(one.encode()) if isinstance(one, str) else one for one in values]
        ConfluentKafka().produce(self.bootstrap, topic, records, partition=partition, mode=mode)

    # Streams

    def stream(self, **options: object) -> DataFrame:
        return self.spark.readStream.format("kafka").options(**self._options(options)).load()

    def available_now(self, **options: object) -> list[list[Cell]]:
        """Everything up to now, one list for each micro-batch that has records."""
        return self._to_the_end(**options).filled()

    def drain(self, **options: object) -> list[Row]:
        """What `read` gives, by a new stream from the earliest offset to the end of the log."""
        started = {"startingOffsets": "earliest", "checkpoint": self.new_checkpoint(), **options}
        rows = [row for batch in self._to_the_end(**started).rows.values() for row in batch]
        return sorted(rows, key=lambda row: (row.topic, row.partition, row.offset))

    def _to_the_end(self, **options: object) -> Batches:
        batches = Batches()
        ended(self.collect(batches, trigger=AVAILABLE_NOW, **options))
        return batches

    def save_as_stream(self, frame: DataFrame, **options: object) -> None:
        """What `save` does, by a stream: one batch of the rows, which lie in a file."""
        checkpoint = self.new_checkpoint()
        rows = str(checkpoint.with_suffix(".parquet"))
        frame.coalesce(1).write.parquet(rows)
        stream = self.spark.readStream.schema(frame.schema).parquet(rows)
        writer = stream.writeStream.format("kafka").options(**self._options(options))
        ended(self.start(writer, AVAILABLE_NOW, checkpoint))

    def new_checkpoint(self) -> Path:
        return self.checkpoint.with_name(f"{self.checkpoint.name}-{next(self._numbers)}")

    def collect(
        self,
        batches: Batches,
        *,
        trigger: Trigger,
        checkpoint: Any = None,
        **options: object,
    ) -> StreamingQuery:
        """Start a query that gathers its micro-batches in the driver."""
        writer = self.stream(**options).writeStream.foreachBatch(batches.take)
        return self.start(writer, trigger, checkpoint)

    def copy(
        self,
        frame: DataFrame,
        *,
        trigger: Trigger,
        checkpoint: Path | None = None,
        output_mode: str = "append",
        **options: object,
    ) -> StreamingQuery:
        """Start a query that writes into a topic."""
        writer = frame.writeStream.format("kafka").outputMode(output_mode)
        return self.start(writer.options(**self._options(options)), trigger, checkpoint)

    def start(
        self, writer: DataStreamWriter, trigger: Trigger, checkpoint: Path | None = None
    ) -> StreamingQuery:
        """Start a query that ends with the test at the latest."""
        located = writer.option("checkpointLocation", str(checkpoint or self.checkpoint))
        query = located.trigger(**trigger).start()
        self._queries.append(query)
        return query

    @contextmanager
    def setting(self, name: str, value: str) -> Iterator[None]:
        """A setting of the session that holds for a while."""
        self.spark.conf.set(name, value)
        try:
            yield
        finally:
            self.spark.conf.unset(name)

    def _options(self, options: Mapping[str, object]) -> dict[str, str]:
        written = {"kafka.bootstrap.servers": self.bootstrap}
        for name, value in options.items():
            text = json.dumps(value) if isinstance(value, dict | list) else str(value)
            written[name.replace("__", ".")] = text
        return written


class Batches:
    """The micro-batches of a query, by batch id; a batch that is done again replaces itself."""

    def __init__(self) -> None:
        self.rows: dict[int, list[Row]] = {}

    def take(self, frame: DataFrame, batch_id: int) -> None:
        self.rows[batch_id] = frame.collect()

    def filled(self) -> list[list[Cell]]:
        return [cells(rows) for _, rows in sorted(self.rows.items()) if rows]

    def all(self) -> list[Cell]:
        return sorted(cell for batch in self.filled() for cell in batch)


def cells(rows: Sequence[Row]) -> list[Cell]:
    """What most tests compare, in the order of the log."""
    return sorted(
        (row.partition, row.offset, None if row.value is None else row.value.decode())
        for row in rows
    )


def numbered(values: Sequence[str], partition: int = 0, start: int = 0) -> list[Cell]:
    """The cells of values that lie one behind the other."""
    return [(partition, start + index, value) for index, value in enumerate(values)]


def texts(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def wait_until(done: Callable[[], bool], what: str, query: StreamingQuery | None = None) -> None:
    """Poll, within a bound; a query that has failed meanwhile fails the test with its reason."""
    deadline = time.monotonic() + WAIT_S_MAX
    while not done():
        if query is not None and not query.isActive:
            problem = query.exception()
            raise problem if problem is not None else AssertionError(f"ended before {what}")
        assert time.monotonic() < deadline, f"still waiting: {what}"
        time.sleep(0.05)


def ended(query: StreamingQuery) -> None:
    """Wait for the end of a query, which must come; raises what it has failed with."""
    assert query.awaitTermination(WAIT_S_MAX), "the query goes on"


def failure(query: StreamingQuery) -> str:
    """Why a query ended; it must end by itself, and with an error."""
    try:
        ended(query)
    except StreamingQueryException as problem:
        return str(problem)
    raise AssertionError("the query succeeded")
