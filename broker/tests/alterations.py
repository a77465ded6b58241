"""Altering configs, and asking for them, over a raw connection."""

from __future__ import annotations

from collections.abc import Mapping

from klamm.broker.metadata.config_values import Operation
from klamm.broker.tests.raw_client import RawClient
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from klamm.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
NODE_ID = "1"
Changes = Mapping[str, str | None]


def resource(kind: int, name: str, changes: Changes) -> AlterConfigsResource:
    """Values to set; None takes one back."""
    return AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            AlterableConfig(
                name=config,
                config_operation=Operation.DELETE if value is None else Operation.SET,
                value=value,
            )
            for config, value in changes.items()
        ],
    )


def alter(client: RawClient, kind: int, name: str, changes: Changes) -> ErrorCode:
    request = IncrementalAlterConfigsRequest(resources=[resource(kind, name, changes)])
    (response,) = client.call(request).responses
    return ErrorCode(response.error_code)


def value_of(client: RawClient, kind: int, name: str, config: str) -> str | None:
    """What DescribeConfigs says; None where it does not list the config."""
    asked = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=[config]
    )
    (result,) = client.call(DescribeConfigsRequest(resources=[asked])).results
    return next((entry.value for entry in result.configs), None)
