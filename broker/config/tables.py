"""The tables by name. Each is built on its first use, so that starting stays cheap."""

import importlib
from collections.abc import Mapping
from functools import cache

from klamm.broker.config.definition import Definition

# In Kafka's order of definition, which decides ties in the order of DescribeConfigs.
_BROKER_TABLES = (
    "broker_remote",
    "broker_server",
    "broker_kraft",
    "broker_network",
    "broker_replication",
    "broker_group",
    "broker_share_streams",
    "broker_cleaner",
    "broker_log",
    "broker_share",
    "broker_transaction",
    "broker_quorum",
    "broker_metrics_quota",
    "broker_tls",
    "broker_sasl",
    "broker_tokens",
    "broker_klamm",
)


# Tables with the settings that most starts name, so that a short command line loads few of them.
_FIRST = ("broker_network", "broker_log", "broker_server", "broker_klamm", "broker_kraft")


@cache
def _table(table: str) -> Mapping[str, Definition]:
    return _by_name(table)


def find_broker_definition(name: str) -> Definition | None:
    """Returns one broker setting, loading only the tables up to the one that has it."""
    for table in (*_FIRST, *(table for table in _BROKER_TABLES if table not in _FIRST)):
        definition = _table(table).get(name)
        if definition is not None:
            return definition
    return None


def _by_name(*tables: str) -> dict[str, Definition]:
    definitions: dict[str, Definition] = {}
    for table in tables:
        module = importlib.import_module(f"klamm.broker.config.{table}")
        definitions.update((definition.name, definition) for definition in module.DEFINITIONS)
    return definitions


@cache
def broker_definitions() -> Mapping[str, Definition]:
    """Every setting that may stand in server.properties."""
    return _by_name(*_BROKER_TABLES)


@cache
def dynamic_broker_definitions() -> Mapping[str, Definition]:
    """The settings that a running broker takes and server.properties does not: quotas."""
    return _by_name("broker_dynamic")


@cache
def topic_definitions() -> Mapping[str, Definition]:
    """Every config of a topic."""
    return _by_name("topic_configs")


@cache
def group_definitions() -> Mapping[str, Definition]:
    """Every config of a group."""
    return _by_name("group_configs")


@cache
def client_metrics_definitions() -> Mapping[str, Definition]:
    """Every config of a client metrics subscription."""
    return _by_name("client_metrics_configs")
