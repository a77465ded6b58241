"""Configuration under Kafka's own names: tables, parsing, layers, description.

`load` makes the `ServerConfig` of a broker; `topic_log_config`, `validate_topic_configs` and
`effective_topic_configs` are for topics; `klamm.broker.config.describe` answers DescribeConfigs.
"""

from klamm.broker.config.effective import effective_topic_configs
from klamm.broker.config.errors import ConfigError
from klamm.broker.config.listeners import Listener
from klamm.broker.config.load import from_properties, load, read_file
from klamm.broker.config.log_defaults import topic_log_config
from klamm.broker.config.server_config import ServerConfig
from klamm.broker.config.topics import validate_topic_configs

__all__ = [
    "ConfigError",
    "Listener",
    "ServerConfig",
    "effective_topic_configs",
    "from_properties",
    "load",
    "read_file",
    "topic_log_config",
    "validate_topic_configs",
]
