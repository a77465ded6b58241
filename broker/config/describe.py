"""What DescribeConfigs tells about each kind of resource, as Kafka 4.3 tells it.

A setting that is hidden (`internal`) is listed only where it is set, before the others; klamm's own
settings come after Kafka's, whose order is Kafka's. A `ServerConfig` never changes, so what
follows from it alone is worked out once.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from klamm.broker.config import lookup, tables
from klamm.broker.config.definition import ConfigType, Definition, Update
from klamm.broker.config.entry import ConfigEntry, ConfigSource, SynonymValue
from klamm.broker.config.log_defaults import broker_value
from klamm.broker.config.order import hash_map_order
from klamm.broker.config.server_config import ServerConfig
from klamm.broker.config.sources import source_of, synonym_values
from klamm.broker.config.synonyms import TOPIC_SYNONYMS
from klamm.broker.config.validators import ConfigValue
from klamm.broker.config.values import parse_value, value_text

_GROUP_PREFIX = "group."
# As many brokers as one process is likely to hold; each keeps its entries between requests.
_SERVERS_MAX = 8

_Entries = Mapping[str, ConfigEntry]


def describe_topic(server: ServerConfig, overrides: Mapping[str, str]) -> tuple[ConfigEntry, ...]:
    """Returns the configs of a topic.

    Args:
        server: The broker's settings as they are now.
        overrides: The configs of the topic, as they are stored.

    Raises:
        ConfigError: A stored config does not parse.
    """
    return _overlaid(
        _topic_entries(server), tables.topic_definitions(), overrides, ConfigSource.TOPIC_CONFIG
    )


def describe_group(server: ServerConfig, overrides: Mapping[str, str]) -> tuple[ConfigEntry, ...]:
    """Returns the configs of a group; arguments and errors as for a topic."""
    return _overlaid(
        _group_entries(server), tables.group_definitions(), overrides, ConfigSource.GROUP_CONFIG
    )


def describe_client_metrics(overrides: Mapping[str, str]) -> tuple[ConfigEntry, ...]:
    """Returns the configs of a client metrics subscription; a broker has none to inherit."""
    definitions = tables.client_metrics_definitions()
    entries = {
        name: _entry(definitions[name], definitions[name].default, ())
        for name in _listed(definitions.values())
    }
    return _overlaid(entries, definitions, overrides, ConfigSource.CLIENT_METRICS_CONFIG)


@lru_cache(_SERVERS_MAX)
def describe_broker(server: ServerConfig) -> tuple[ConfigEntry, ...]:
    """Returns every setting of a broker."""
    definitions = tables.broker_definitions()
    listed = _listed(definitions.values())
    hidden = hash_map_order(server.given.keys() - set(listed))
    return (
        *(_as_given(server, name, server.given[name]) for name in hidden),
        *(_broker_entry(server, definitions[name]) for name in listed),
    )


def describe_broker_defaults(server: ServerConfig) -> tuple[ConfigEntry, ...]:
    """Returns what was set at run time for all brokers, and nothing else."""
    layer = server.layers.dynamic_default
    own = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    entries = (_as_given(server, name, layer[name]) for name in hash_map_order(layer))
    return tuple(
        entry._replace(
            config_source=own, synonyms=tuple(one for one in entry.synonyms if one.source is own)
        )
        for entry in entries
    )


def _listed(definitions: Iterable[Definition]) -> list[str]:
    shown = [definition for definition in definitions if not definition.internal]
    kafkas = hash_map_order(definition.name for definition in shown if not definition.klamm_own)
    return [*kafkas, *(definition.name for definition in shown if definition.klamm_own)]


@lru_cache(_SERVERS_MAX)
def _topic_entries(server: ServerConfig) -> _Entries:
    definitions = tables.topic_definitions()
    return {
        name: _entry(
            definitions[name],
            _inherited(server, definitions[name]),
            synonym_values(server, TOPIC_SYNONYMS[name][0].name) if name in TOPIC_SYNONYMS else (),
        )
        for name in _listed(definitions.values())
    }


def _inherited(server: ServerConfig, definition: Definition) -> str | None:
    """What a topic follows that does not set a config itself."""
    values: dict[str, ConfigValue] = {}
    for synonym in TOPIC_SYNONYMS.get(definition.name, ()):
        text = server.given.get(synonym.name)
        if text is not None:
            values[synonym.name] = parse_value(tables.broker_definitions()[synonym.name], text)
    value = broker_value(definition.name, values)
    return definition.default if value is None else value_text(value)


@lru_cache(_SERVERS_MAX)
def _group_entries(server: ServerConfig) -> _Entries:
    definitions = tables.group_definitions()
    return {name: _group_entry(server, definitions[name]) for name in _listed(definitions.values())}


def _group_entry(server: ServerConfig, definition: Definition) -> ConfigEntry:
    of_broker = tables.broker_definitions().get(_GROUP_PREFIX + definition.name)
    if of_broker is None:
        default = SynonymValue(definition.name, definition.default, ConfigSource.DEFAULT_CONFIG)
        return _entry(definition, definition.default, (default,))
    inherited = _broker_entry(server, of_broker)
    return _entry(definition, inherited.value, inherited.synonyms)


def _overlaid(
    entries: _Entries,
    definitions: Mapping[str, Definition],
    overrides: Mapping[str, str],
    source: ConfigSource,
) -> tuple[ConfigEntry, ...]:
    """Puts what a resource sets itself over what it inherits."""
    changed = dict(entries)
    hidden: list[ConfigEntry] = []
    for name, text in overrides.items():
        definition = definitions.get(name)
        if name not in entries:
            # Stored by a Kafka with settings that are unknown here: it may be a secret.
            value = None if definition is None else text
            own = SynonymValue(name, value, source)
            hidden.append(_of_any_type(name, definition, value, (own,)))
            continue
        assert definition is not None
        value = value_text(parse_value(definition, text))
        own = SynonymValue(name, value, source)
        changed[name] = entries[name]._replace(
            value=value, config_source=source, synonyms=(own, *entries[name].synonyms)
        )
    return (*hidden, *changed.values())


def _broker_entry(server: ServerConfig, definition: Definition) -> ConfigEntry:
    text = server.given.get(definition.name)
    value = definition.default if text is None else value_text(parse_value(definition, text))
    synonyms = synonym_values(server, definition.name, is_sensitive=definition.is_sensitive)
    return _entry(definition, value, synonyms)._replace(
        read_only=definition.update is Update.READ_ONLY
    )


def _as_given(server: ServerConfig, name: str, text: str) -> ConfigEntry:
    """A broker setting as somebody wrote it: hidden, a quota, for one listener, or of a plug-in."""
    definition = tables.dynamic_broker_definitions().get(name) or lookup.broker_definition(name)
    is_sensitive = definition is None or definition.is_sensitive
    synonyms = synonym_values(server, name, is_sensitive=is_sensitive)
    entry = _of_any_type(name, definition, text, synonyms)
    # What is set for one listener counts as fixed, whatever holds for all of them.
    changeable = (
        definition is not None
        and definition.name == name
        and definition.update is not Update.READ_ONLY
    )
    if name not in tables.broker_definitions():
        entry = entry._replace(documentation=None)
    return entry._replace(read_only=not changeable)


def _of_any_type(
    name: str,
    definition: Definition | None,
    value: str | None,
    synonyms: tuple[SynonymValue, ...],
) -> ConfigEntry:
    if definition is None:
        return ConfigEntry(
            name, None, source_of(synonyms), ConfigType.UNKNOWN, synonyms, is_sensitive=True
        )
    return _entry(definition, value, synonyms)._replace(name=name)


def _entry(
    definition: Definition, value: str | None, synonyms: tuple[SynonymValue, ...]
) -> ConfigEntry:
    return ConfigEntry(
        definition.name,
        None if definition.is_sensitive else value,
        source_of(synonyms),
        definition.type,
        synonyms,
        definition.documentation,
        is_sensitive=definition.is_sensitive,
    )
