"""Configs altered by unmodified tools and admin clients: set, shown with a source, taken back."""

from __future__ import annotations

import re
from typing import Any

import pytest
from confluent_kafka import admin as confluent_admin
from confluent_kafka.admin import AdminClient
from kafka.admin import ConfigResource as PythonResource
from kafka.admin import ConfigResourceType as PythonType
from kafka.admin import KafkaAdminClient

from compat_tests.clients.fixtures import Broker, MakeTopic
from compat_tests.clients.test_tools import run

# What it exports is not typed as exported.
confluent: Any = confluent_admin
TOPIC, BROKER = confluent.ResourceType.TOPIC, confluent.ResourceType.BROKER
Operation = confluent.AlterConfigOpType

NODE_ID = "1"
TIMEOUT_S = 30
# It does no harm to other tests of the session.
SETTING = "log.cleaner.delete.retention.ms"

# kafka-configs


def configs(broker: Broker, *arguments: str) -> str:
    return run("kafka-configs", broker, *arguments)


def wait(futures: dict[Any, Any]) -> Any:
    """The result of the one future."""
    ((_, future),) = futures.items()
    return future.result(TIMEOUT_S)


@pytest.mark.usefixtures("kafka_jars")
def test_kafka_configs_of_a_topic(broker: Broker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    of_topic = ("--entity-type", "topics", "--entity-name", topic)
    added = "retention.ms=54321,cleanup.policy=[compact,delete]"
    altered = configs(broker, *of_topic, "--alter", "--add-config", added)
    assert altered.strip() == f"Completed updating config for topic {topic}."
    shown = configs(broker, *of_topic, "--describe")
    assert re.search(
        r"^  retention.ms=54321 sensitive=false "
        r"synonyms=\{DYNAMIC_TOPIC_CONFIG:retention.ms=54321",
        shown,
        re.M,
    ), shown
    assert re.search(r"^  cleanup.policy=compact,delete sensitive=false ", shown, re.M), shown
    configs(broker, *of_topic, "--alter", "--delete-config", "retention.ms,cleanup.policy")
    shown = configs(broker, *of_topic, "--describe")
    assert shown.strip() == f"Dynamic configs for topic {topic} are:"


@pytest.mark.usefixtures("kafka_jars")
def test_kafka_configs_of_brokers(broker: Broker) -> None:
    of_all = ("--entity-type", "brokers", "--entity-default")
    of_one = ("--entity-type", "brokers", "--entity-name", NODE_ID)
    configs(broker, *of_all, "--alter", "--add-config", f"{SETTING}=1000000")
    configs(broker, *of_one, "--alter", "--add-config", f"{SETTING}=2000000")
    shown = configs(broker, *of_one, "--describe")
    assert re.search(
        rf"^  {SETTING}=2000000 sensitive=false synonyms="
        rf"\{{DYNAMIC_BROKER_CONFIG:{SETTING}=2000000, "
        rf"DYNAMIC_DEFAULT_BROKER_CONFIG:{SETTING}=1000000, DEFAULT_CONFIG:{SETTING}=86400000\}}",
        shown,
        re.M,
    ), shown
    configs(broker, *of_one, "--alter", "--delete-config", SETTING)
    assert f"  {SETTING}=1000000 " in configs(broker, *of_all, "--describe")
    configs(broker, *of_all, "--alter", "--delete-config", SETTING)


@pytest.mark.usefixtures("kafka_jars")
def test_kafka_configs_of_a_group(broker: Broker) -> None:
    of_group = ("--entity-type", "groups", "--entity-name", "some-group")
    configs(broker, *of_group, "--alter", "--add-config", "consumer.heartbeat.interval.ms=6000")
    shown = configs(broker, *of_group, "--describe")
    assert (
        "  consumer.heartbeat.interval.ms=6000 sensitive=false "
        "synonyms={DYNAMIC_GROUP_CONFIG:consumer.heartbeat.interval.ms=6000" in shown
    )
    listed = configs(broker, "--entity-type", "groups", "--describe")
    assert "some-group" in listed
    configs(broker, *of_group, "--alter", "--delete-config", "consumer.heartbeat.interval.ms")


# confluent-kafka


def entry_of(admin: AdminClient, kind: Any, name: str, config: str) -> Any:
    return wait(admin.describe_configs([confluent.ConfigResource(kind, name)]))[config]


def test_confluent_kafka_alters_a_topic(broker: Broker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})

    def alter(config: str, value: str | None, operation: Any) -> None:
        change = confluent.ConfigEntry(config, value, incremental_operation=operation)
        resource = confluent.ConfigResource(TOPIC, topic, incremental_configs=[change])
        wait(admin.incremental_alter_configs([resource]))

    alter("retention.ms", "54321", Operation.SET)
    alter("cleanup.policy", "compact", Operation.APPEND)
    retention = entry_of(admin, TOPIC, topic, "retention.ms")
    assert (retention.value, confluent.ConfigSource(retention.source)) == (
        "54321",
        confluent.ConfigSource.DYNAMIC_TOPIC_CONFIG,
    )
    policy = entry_of(admin, TOPIC, topic, "cleanup.policy")
    assert policy.value == "delete,compact"
    alter("cleanup.policy", "delete", Operation.SUBTRACT)
    assert entry_of(admin, TOPIC, topic, "cleanup.policy").value == "compact"
    alter("retention.ms", None, Operation.DELETE)
    assert entry_of(admin, TOPIC, topic, "retention.ms").value == "604800000"
    replaced = confluent.ConfigResource(TOPIC, topic, set_config={"segment.ms": "5000"})
    with pytest.warns(DeprecationWarning, match="alter_configs has been deprecated"):
        wait(admin.alter_configs([replaced]))
    assert entry_of(admin, TOPIC, topic, "cleanup.policy").value == "delete"
    assert entry_of(admin, TOPIC, topic, "segment.ms").value == "5000"


def test_confluent_kafka_alters_the_broker(broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})

    def alter(value: str | None, operation: Any) -> Any:
        change = confluent.ConfigEntry(SETTING, value, incremental_operation=operation)
        resource = confluent.ConfigResource(BROKER, NODE_ID, incremental_configs=[change])
        wait(admin.incremental_alter_configs([resource]))
        return entry_of(admin, BROKER, NODE_ID, SETTING)

    altered = alter("3000000", Operation.SET)
    assert altered.value == "3000000"
    assert confluent.ConfigSource(altered.source) == confluent.ConfigSource.DYNAMIC_BROKER_CONFIG
    assert alter(None, Operation.DELETE).value == "86400000"


# kafka-python


@pytest.mark.parametrize("incremental", [True, False])
def test_kafka_python_alters_a_topic(
    broker: Broker, make_topic: MakeTopic, incremental: bool
) -> None:
    topic = make_topic()
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        changed = PythonResource(PythonType.TOPIC, topic, {"retention.ms": "54321"})
        admin.alter_configs([changed], incremental=incremental)
        asked = PythonResource(PythonType.TOPIC, topic, ["retention.ms"])
        assert "54321" in str(admin.describe_configs([asked]))
    finally:
        admin.close()
