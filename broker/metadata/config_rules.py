"""What the configs of each kind of resource must be, all of them together.

The order is that of Kafka's controller: the name of the resource, the configs as they will be, and
then whether there is such a topic. Groups and client metrics need not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from klamm.broker.config import ConfigError, ServerConfig, tables, validate_topic_configs
from klamm.broker.config.errors import shown
from klamm.broker.config.groups import validate_group_configs
from klamm.broker.config.loggers import LEVELS, ROOT, logger_names
from klamm.broker.config.values import parse_value
from klamm.broker.metadata.image import MetadataImage, ResourceType
from klamm.broker.metadata.resources import check_named
from klamm.broker.metadata.topics import Refused, check_topic_name
from klamm.wire.errors import ErrorCode

PUSH_INTERVAL_MS = range(100, 3_600_001)
# What a client can be chosen by.
MATCHED = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)


def check_configs(
    resource_type: int,
    name: str,
    configs: Mapping[str, str],
    server: ServerConfig,
    image: MetadataImage,
) -> None:
    """Checks a resource that is not a broker.

    Args:
        configs: as they will be.

    Raises:
        Refused: the alteration is not made.
    """
    try:
        RULES[resource_type](name, configs, server, image)
    except ConfigError as error:
        raise Refused(ErrorCode.INVALID_CONFIG, str(error)) from None


def _check_topic(
    name: str, configs: Mapping[str, str], server: ServerConfig, image: MetadataImage
) -> None:
    check_named(name, "topic")
    check_topic_name(name)
    validate_topic_configs(configs, server)
    if image.topic(name) is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name!r}.")


def _check_group(
    name: str, configs: Mapping[str, str], server: ServerConfig, image: MetadataImage
) -> None:
    check_named(name, "group")
    validate_group_configs(configs, server)


def _check_client_metrics(
    name: str, configs: Mapping[str, str], server: ServerConfig, image: MetadataImage
) -> None:
    check_named(name, "client metrics subscription")
    definitions = tables.client_metrics_definitions()
    for key in configs:
        if key not in definitions:
            raise Refused(ErrorCode.INVALID_REQUEST, f"unknown client metrics config {shown(key)}")
    values = {key: parse_value(definitions[key], text) for key, text in configs.items()}
    interval_ms = values.get("interval.ms", PUSH_INTERVAL_MS[0])
    if interval_ms not in PUSH_INTERVAL_MS:
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            f"interval.ms={interval_ms} is not from 100 to 3600000, which is an hour",
        )
    patterns = values.get("match", [])
    assert isinstance(patterns, list)
    for pattern in patterns:
        # The expression itself is not looked at: nobody is ever matched with it, and Kafka takes
        # Java's syntax, of which no library here knows all.
        parts = [part.strip() for part in pattern.rstrip("=").split("=")]
        if len(parts) != 2 or parts[0] not in MATCHED:
            raise ConfigError(f"match: {shown(pattern)} must be key=expression")


RULES: Mapping[int, Callable[[str, Mapping[str, str], ServerConfig, MetadataImage], None]] = {
    ResourceType.TOPIC: _check_topic,
    ResourceType.GROUP: _check_group,
    ResourceType.CLIENT_METRICS: _check_client_metrics,
}


def check_level(logger: str, level: str | None) -> None:
    """Checks the level that a logger of this process shall have; None is that of the one above."""
    if logger not in logger_names():
        raise Refused(ErrorCode.INVALID_CONFIG, f"There is no logger {shown(logger)}.")
    if level is None and logger == ROOT:
        raise Refused(ErrorCode.INVALID_REQUEST, "No logger is above the root.")
    if level is not None and level not in LEVELS:
        raise Refused(ErrorCode.INVALID_CONFIG, f"A level is one of {', '.join(LEVELS)}.")
