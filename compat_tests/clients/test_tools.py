"""Apache Kafka's own command line tools, unmodified.

Console consumers that are members of a group are in `groups/test_tool.py`.
"""

from __future__ import annotations

import re
import subprocess

import pytest

from compat_tests.apache_kafka import tool
from compat_tests.clients.fixtures import Broker, ClientNamed, MakeTopic
from compat_tests.clients.model import Record

pytestmark = pytest.mark.usefixtures("kafka_jars")


def run(name: str, broker: Broker, *arguments: str, stdin: str | None = None) -> str:
    """Run a tool against the broker; its standard output, when it succeeded."""
    done = tool(name, "--bootstrap-server", broker.bootstrap, *arguments, input=stdin)
    _check(name, done)
    return done.stdout


def _check(name: str, done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"


def test_the_console_producer_and_consumer(broker: Broker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    lines = "".join(f"key {number}:value {number}\n" for number in range(50))
    run(
        *("kafka-console-producer", broker, "--topic", topic),
        *("--reader-property", "parse.key=true", "--reader-property", "key.separator=:"),
        *("--compression-codec", "zstd"),
        stdin=lines,
    )
    whole = run(
        *("kafka-console-consumer", broker, "--topic", topic, "--partition", "0"),
        *("--offset", "earliest", "--max-messages", "50"),
        *("--formatter-property", "print.key=true", "--formatter-property", "key.separator=:"),
    )
    assert whole == lines
    part = run(
        *("kafka-console-consumer", broker, "--topic", topic, "--partition", "0"),
        *("--offset", "47", "--max-messages", "3"),
        *("--formatter-property", "print.offset=true", "--formatter-property", "print.value=true"),
    )
    assert part.split("\n")[:3] == [f"Offset:{number}\tvalue {number}" for number in range(47, 50)]


def test_the_perf_tests(broker: Broker, make_topic: MakeTopic) -> None:
    topic = make_topic(3)
    shown = run(
        *("kafka-producer-perf-test", broker, "--topic", topic, "--num-records", "20000"),
        *("--record-size", "500", "--throughput", "-1"),
        *("--command-property", "acks=all", "--command-property", "compression.type=lz4"),
    )
    assert re.search(r"^20000 records sent, [\d.]+ records/sec", shown, re.MULTILINE), shown
    offsets = run("kafka-get-offsets", broker, "--topic", topic)
    assert sum(int(line.rsplit(":", 1)[1]) for line in offsets.split()) == 20_000
    read = run(
        *("kafka-consumer-perf-test", broker, "--topic", topic, "--num-records", "20000"),
        *("--group", topic, "--timeout", "30000"),
    )
    names, figures = (line.split(", ") for line in read.strip().split("\n")[-2:])
    # It ends with the poll that brings the last record it wants; there are no more.
    assert dict(zip(names, figures, strict=True))["data.consumed.in.nMsg"] == "20000", read


def test_topics_are_made_described_listed_altered_and_deleted(broker: Broker) -> None:
    topic = "made-by-kafka-topics"
    making = ("--create", "--topic", topic, "--partitions", "2", "--config", "retention.ms=12345")
    assert run("kafka-topics", broker, *making) == f"Created topic {topic}.\n"

    described = run("kafka-topics", broker, "--describe", "--topic", topic)
    head, *partitions = described.strip().split("\n")
    assert re.search(r"TopicId: [\w-]{22}\b", head)
    assert "PartitionCount: 2" in head
    assert "ReplicationFactor: 1" in head
    assert "retention.ms=12345" in head
    assert len(partitions) == 2
    assert all(f"Partition: {number}" in line for number, line in enumerate(partitions))
    assert all(re.search(r"Leader: (\d+)\tReplicas: \1\tIsr: \1", line) for line in partitions)

    assert topic in run("kafka-topics", broker, "--list").split()

    run("kafka-topics", broker, "--alter", "--topic", topic, "--partitions", "5")
    offsets = run("kafka-get-offsets", broker, "--topic", topic).split()
    assert offsets == [f"{topic}:{number}:0" for number in range(5)]

    run("kafka-topics", broker, "--delete", "--topic", topic)
    assert topic not in run("kafka-topics", broker, "--list").split()


def test_mistakes_are_explained(broker: Broker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    again = tool(
        *("kafka-topics", "--bootstrap-server", broker.bootstrap, "--create", "--topic", topic)
    )
    assert again.returncode == 1
    assert f"Topic '{topic}' already exists." in again.stdout + again.stderr


def test_get_offsets_knows_the_beginning_and_times(
    broker: Broker, make_topic: MakeTopic, client_named: ClientNamed
) -> None:
    topic = make_topic()
    first_ms = 1_700_000_000_000
    records = [Record(b"x", timestamp_ms=first_ms + number) for number in range(10)]
    client_named("confluent-kafka").produce(broker.bootstrap, topic, records)
    asked = {"-2": 0, str(first_ms + 4): 4}
    for time, offset in asked.items():
        shown = run("kafka-get-offsets", broker, "--topic", topic, "--time", time)
        assert shown.strip() == f"{topic}:0:{offset}"


def test_configs_are_described(broker: Broker, make_topic: MakeTopic) -> None:
    topic = make_topic(config={"max.message.bytes": "54321"})
    shown = run(
        *("kafka-configs", broker, "--describe", "--entity-type", "topics"),
        *("--entity-name", topic),
    )
    assert "max.message.bytes=54321" in shown
    everything = run(
        *("kafka-configs", broker, "--describe", "--all", "--entity-type", "topics"),
        *("--entity-name", topic),
    )
    assert "max.message.bytes=54321 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:" in everything
    assert "cleanup.policy=delete" in everything


def test_the_api_versions_are_shown(broker: Broker) -> None:
    shown = run("kafka-broker-api-versions", broker)
    assert re.search(r"Produce\(0\): 0 to 13 \[usable: 13\]", shown), shown
    assert re.search(r"Fetch\(1\): 4 to 18 \[usable: 18\]", shown), shown
    assert "UNKNOWN" not in shown
