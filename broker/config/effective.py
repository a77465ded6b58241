"""The configs of a new topic, as CreateTopics answers them.

They are the same values as in DescribeConfigs, told by the controller instead of the broker, and
the two differ in small ways: here the list is sorted, a text stays as it was written, and a value
that the broker has in another unit (`log.retention.hours`) counts as the broker's.
"""

from collections.abc import Mapping

from klamm.broker.config import tables
from klamm.broker.config.definition import Definition
from klamm.broker.config.entry import ConfigEntry, ConfigSource
from klamm.broker.config.server_config import ServerConfig
from klamm.broker.config.synonyms import TOPIC_SYNONYMS, Synonym


def effective_topic_configs(
    server: ServerConfig, overrides: Mapping[str, str]
) -> list[ConfigEntry]:
    """Returns the configs that count for a topic.

    Hidden configs are listed only where the topic sets them, and klamm's own only where somebody
    sets them, so that the list of a usual topic is exactly Kafka's.

    Args:
        server: The broker's settings as they are now.
        overrides: The configs of the topic, already checked.
    """
    entries = []
    for name, definition in sorted(tables.topic_definitions().items()):
        if definition.internal and name not in overrides:
            continue
        value, source = _effective(server, overrides, definition)
        if definition.klamm_own and source is ConfigSource.DEFAULT_CONFIG:
            continue
        entries.append(ConfigEntry(name, value, source, definition.type))
    return entries


def _effective(
    server: ServerConfig, overrides: Mapping[str, str], definition: Definition
) -> tuple[str | None, ConfigSource]:
    if definition.name in overrides:
        return overrides[definition.name], ConfigSource.TOPIC_CONFIG
    for source, layer in server.layers.by_source():
        for synonym in TOPIC_SYNONYMS.get(definition.name, ()):
            if synonym.name in layer:
                return _in_unit_of_topic(layer[synonym.name], synonym), source
    return definition.default, ConfigSource.DEFAULT_CONFIG


def _in_unit_of_topic(text: str, synonym: Synonym) -> str:
    return text if synonym.factor == 1 else str(int(text) * synonym.factor)
