"""Apache Kafka's command line tools, by the names of its own scripts."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from compat_tests.apache_kafka.jars import HERE, jars, java

_PACKAGE = "org.apache.kafka.tools"

TOOLS = {
    "kafka-acls": f"{_PACKAGE}.AclCommand",
    "kafka-broker-api-versions": f"{_PACKAGE}.BrokerApiVersionsCommand",
    "kafka-cluster": f"{_PACKAGE}.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": f"{_PACKAGE}.consumer.ConsoleConsumer",
    "kafka-console-producer": f"{_PACKAGE}.ConsoleProducer",
    "kafka-console-share-consumer": f"{_PACKAGE}.consumer.ConsoleShareConsumer",
    "kafka-consumer-groups": f"{_PACKAGE}.consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": f"{_PACKAGE}.ConsumerPerformance",
    "kafka-delete-records": f"{_PACKAGE}.DeleteRecordsCommand",
    "kafka-dump-log": f"{_PACKAGE}.DumpLogSegments",
    "kafka-e2e-latency": f"{_PACKAGE}.EndToEndLatency",
    "kafka-features": f"{_PACKAGE}.FeatureCommand",
    "kafka-get-offsets": f"{_PACKAGE}.GetOffsetShell",
    "kafka-groups": f"{_PACKAGE}.GroupsCommand",
    "kafka-leader-election": f"{_PACKAGE}.LeaderElectionCommand",
    "kafka-log-dirs": f"{_PACKAGE}.LogDirsCommand",
    "kafka-metadata-quorum": f"{_PACKAGE}.MetadataQuorumCommand",
    "kafka-producer-perf-test": f"{_PACKAGE}.ProducerPerformance",
    "kafka-reassign-partitions": f"{_PACKAGE}.reassign.ReassignPartitionsCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-topics": f"{_PACKAGE}.TopicCommand",
    "kafka-transactions": f"{_PACKAGE}.TransactionsCommand",
    "kafka-verifiable-consumer": f"{_PACKAGE}.VerifiableConsumer",
    "kafka-verifiable-producer": f"{_PACKAGE}.VerifiableProducer",
}


def java_command(
    main_class: str,
    *args: str,
    options: Sequence[str] = (),
    log_level: str = "WARN",
    classes: Sequence[Path] = (),
) -> list[str]:
    """The command line that runs one main class out of Apache Kafka's jars, or beside them.

    Args:
        classes: further folders in which classes are found.
    """
    class_path = ":".join([*map(str, classes), f"{jars()}/*"])
    return [
        *(java(), *options, "-Djava.awt.headless=true", f"-Dkafka.log.level={log_level}"),
        f"-Dlog4j2.configurationFile={HERE / 'log4j2.xml'}",
        *("-cp", class_path, main_class, *args),
    ]


def tool_command(name: str, *args: str, heap: str = "512M") -> list[str]:
    """The command line of a tool, for callers that run the process themselves.

    Java is told to start fast: most tools send a few requests and end.

    Args:
        name: a key of `TOOLS`, or a class name.
    """
    options = (f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
    return java_command(TOOLS.get(name, name), *args, options=options)


def tool(
    name: str, *args: str, input: str | None = None, timeout: float = 60, heap: str = "512M"
) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end; the caller judges its exit code and output."""
    return subprocess.run(
        tool_command(name, *args, heap=heap),
        input=input,
        stdin=subprocess.DEVNULL if input is None else None,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
