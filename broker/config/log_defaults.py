"""The log settings of a topic: its own configs over the broker's over the defaults."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from klamm.broker.config import tables
from klamm.broker.config.errors import ConfigError, shown
from klamm.broker.config.synonyms import TOPIC_SYNONYMS
from klamm.broker.config.validators import ConfigValue
from klamm.broker.config.values import parse_value
from klamm.log.config import LogConfig

if TYPE_CHECKING:
    from klamm.broker.config.server_config import ServerConfig

_LOG_ATTRIBUTES = frozenset(attribute.name for attribute in fields(LogConfig))


def broker_log_config(values: Mapping[str, ConfigValue]) -> LogConfig:
    """Returns what topics without configs follow, from the broker's typed settings.

    Raises:
        ConfigError: A time is zero or negative where that means nothing, or two contradict.
    """
    attributes: dict[str, Any] = {}
    for topic_name in TOPIC_SYNONYMS:
        value = broker_value(topic_name, values)
        if value is not None:
            _put(attributes, topic_name, value)
    config = LogConfig(**attributes)
    _check_times(config)
    check_together(config)
    return config


def broker_value(topic_name: str, values: Mapping[str, ConfigValue]) -> ConfigValue:
    """Returns the broker's value for a topic config in the topic's unit, None where it has none."""
    for synonym in TOPIC_SYNONYMS.get(topic_name, ()):
        value = values.get(synonym.name)
        if value is None:
            continue
        if isinstance(value, int) and not isinstance(value, bool):
            value *= synonym.factor
            if topic_name == "retention.ms" and value < 0:
                return -1
        return value
    return None


def topic_log_config(server: "ServerConfig", overrides: Mapping[str, str]) -> LogConfig:
    """Returns the settings of one topic's logs.

    Args:
        server: The broker's settings as they are now.
        overrides: The configs of the topic, as they are stored.

    Raises:
        ConfigError: A config does not parse. That it fits to the others was checked when it was
            set; the broker's may have changed since, and then the topic's own still counts.
    """
    if not overrides:
        return server.log_defaults
    attributes: dict[str, Any] = {}
    for name, text in overrides.items():
        definition = tables.topic_definitions().get(name)
        if definition is None:
            raise ConfigError(f"unknown topic config {shown(name)}")
        _put(attributes, name, parse_value(definition, text))
    small_segment = attributes.pop("internal_segment_bytes", None)
    if small_segment is not None:
        attributes["segment_bytes"] = small_segment
    return replace(server.log_defaults, **attributes)


def _put(attributes: dict[str, Any], topic_name: str, value: ConfigValue) -> None:
    attribute = topic_name.replace(".", "_")
    if attribute in _LOG_ATTRIBUTES or attribute == "internal_segment_bytes":
        attributes[attribute] = frozenset(value) if isinstance(value, list) else value


def check_together(config: LogConfig) -> None:
    """Checks what no config can be asked alone."""
    if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
        raise ConfigError(
            f"min.compaction.lag.ms={config.min_compaction_lag_ms} is above "
            f"max.compaction.lag.ms={config.max_compaction_lag_ms}; lower it"
        )


def _check_times(config: LogConfig) -> None:
    # The broker's own names carry no range in Kafka, because several of them may be absent.
    if config.segment_ms < 1:
        raise ConfigError("log.roll.ms must be at least 1")
    if config.segment_jitter_ms < 0:
        raise ConfigError("log.roll.jitter.ms must be at least 0")
    if config.retention_ms == 0:
        raise ConfigError("log.retention.ms must be at least 1, or -1 to keep data for ever")
    if config.flush_ms < 0:
        raise ConfigError("log.flush.interval.ms must be at least 0")
