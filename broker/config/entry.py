"""One setting as it is shown to clients: its value, and where that comes from."""

import enum
from typing import NamedTuple

from klamm.broker.config.definition import ConfigType


class ConfigSource(enum.IntEnum):
    """Where a value comes from, by its number in DescribeConfigs and CreateTopics responses."""

    UNKNOWN = 0
    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class SynonymValue(NamedTuple):
    """A value that counts, or would count if the ones before it were not set."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One setting of a resource; the value of a secret is never in it."""

    name: str
    value: str | None
    config_source: ConfigSource
    config_type: ConfigType = ConfigType.UNKNOWN
    synonyms: tuple[SynonymValue, ...] = ()
    documentation: str | None = None
    read_only: bool = False
    is_sensitive: bool = False
