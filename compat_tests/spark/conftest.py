"""One Spark session for all tests of this folder, and what they write to and read from Kafka by."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from compat_tests.clients.fixtures import Broker, make_topic, own_broker, topic_names
from compat_tests.spark.connector import SMALL_QUERIES, Connector, Read, Write
from spark_examples.session import spark_session

__all__ = ["make_topic", "own_broker", "topic_names"]

# Idle triggers are reported at once, not every ten seconds, and real time may have short batches.
QUICK_PROGRESS = {
    "spark.sql.streaming.noDataProgressEventInterval": "100",
    "spark.sql.streaming.realTimeMode.minBatchDuration": "1000",
}
# The first test pays for the start of the JVM, and perhaps for the download of the connector.
FIRST_TEST_TIMEOUT_S = 300


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(FIRST_TEST_TIMEOUT_S))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = spark_session("klamm-tests", conf=SMALL_QUERIES | QUICK_PROGRESS)
    yield session
    session.stop()


@pytest.fixture
def kafka(spark: SparkSession, broker: Broker, tmp_path: Path) -> Iterator[Connector]:
    """The connector, pointed to the broker under test."""
    with closing(Connector(spark, broker.bootstrap, tmp_path / "checkpoint")) as connector:
        yield connector


@pytest.fixture
def transactional(kafka: Connector, topic_names: Iterator[str]) -> Producer:
    """A producer that is ready for its first transaction."""
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap, "transactional.id": next(topic_names)}
    )
    producer.init_transactions(60)
    return producer


@pytest.fixture(params=["batch", "stream"])
def read(request: pytest.FixtureRequest, kafka: Connector) -> Read:
    """The source, for what it does alike in both: all rows, in the order of the log."""
    return kafka.read if request.param == "batch" else kafka.drain


@pytest.fixture(params=["batch", "stream"])
def write(request: pytest.FixtureRequest, kafka: Connector) -> Write:
    """The sink, for what it does alike in both."""
    return kafka.save if request.param == "batch" else kafka.save_as_stream
