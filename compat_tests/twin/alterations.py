"""Alterations of configs as plain data, and waiting until both brokers obey them."""

from __future__ import annotations

from collections.abc import Sequence

from compat_tests.twin.codec import Plain
from compat_tests.twin.topics import Twin

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
NODE_ID = "1"

# (config, operation, value)
Change = tuple[str, int, str | None]
# (type, name, changes)
Resource = tuple[int, str, Sequence[Change]]


def alter(*resources: Resource, validate_only: bool = False) -> Plain:
    """The body of IncrementalAlterConfigs; without its operations, that of AlterConfigs."""
    return {
        "resources": [
            {
                "resource_type": kind,
                "resource_name": name,
                "configs": [
                    {"name": config, "config_operation": operation, "value": value}
                    for config, operation, value in changes
                ],
            }
            for kind, name, changes in resources
        ],
        "validate_only": validate_only,
    }


def replace(*resources: Resource, validate_only: bool = False) -> Plain:
    """The body of AlterConfigs."""
    body = alter(*resources, validate_only=validate_only)
    for resource in body["resources"]:
        for config in resource["configs"]:
            del config["config_operation"]
    return body


def one(kind: int, name: str, config: str, value: str | None, operation: int = SET) -> Resource:
    return kind, name, [(config, operation, value)]


def describe(kind: int, name: str, *configs: str) -> Plain:
    resource = {
        "resource_type": kind,
        "resource_name": name,
        "configuration_keys": list(configs) or None,
    }
    return {"resources": [resource], "include_synonyms": True, "include_documentation": False}


def wait_until_set(twin: Twin, kind: int, name: str, config: str, value: str | None) -> None:
    """Wait until both brokers show a value: Kafka's controller answers before its broker knows."""

    def is_set(reply: Plain) -> bool:
        (result,) = reply["results"]
        return value in [entry["value"] for entry in result["configs"]] or (
            value is None and not result["configs"]
        )

    twin.wait("describe_configs", 4, describe(kind, name, config), is_set)
