"""What a setting is: its type, its default, what it accepts, and who may change it.

The tables beside this file (`topic_configs`, `group_configs`, `broker_*`) hold one `Definition`
per setting and nothing else, so that parsing, DescribeConfigs and the documentation page all read
the same facts. The order inside a table is Kafka's order of definition: it decides where
DescribeConfigs lists a setting (see `order`).
"""

import enum
from typing import NamedTuple

from klamm.broker.config.validators import Validator


class ConfigType(enum.IntEnum):
    """Types of settings, by their numbers in DescribeConfigs responses."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Update(enum.Enum):
    """Whether a broker setting can be changed while the broker runs, and for whom."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Difference(NamedTuple):
    """A default that differs from Apache Kafka's on purpose."""

    kafka_default: str | None
    reason: str


class Definition(NamedTuple):
    """One setting."""

    name: str
    type: ConfigType
    default: str | None
    meaning: str
    ignored: str | None = None
    """Why klamm accepts the setting and does nothing with it; None where klamm uses it."""
    valid: Validator | None = None
    update: Update = Update.READ_ONLY
    internal: bool = False
    """Kafka's own word for settings that are hidden unless they are set."""
    supported: tuple[str, ...] | None = None
    """The only values that klamm starts with, where ignoring another one would do harm."""
    difference: Difference | None = None
    klamm_own: bool = False
    """True for the few settings that Apache Kafka does not have."""

    @property
    def is_sensitive(self) -> bool:
        """True where the value is a secret, which no answer, log line or repr may show."""
        return self.type is ConfigType.PASSWORD

    @property
    def documentation(self) -> str:
        """The text for DescribeConfigs and for the documentation page."""
        if self.ignored is None:
            return self.meaning
        return f"{self.meaning} Accepted and ignored: {self.ignored}"
