"""Where the value of a broker setting comes from: every place that says something about it."""

from klamm.broker.config import lookup, tables
from klamm.broker.config.entry import ConfigSource, SynonymValue
from klamm.broker.config.server_config import ServerConfig
from klamm.broker.config.synonyms import broker_synonyms


def synonym_values(
    server: ServerConfig, name: str, *, is_sensitive: bool = False
) -> tuple[SynonymValue, ...]:
    """Returns what a setting is set to in each layer, under all its names, highest first.

    What stands above the first value under `name` itself is left out, as in Kafka: with
    `log.retention.hours` in the file, `log.retention.ms` has no synonyms.
    """
    base = lookup.base_name(name)
    names = broker_synonyms(name) if base == name else (name, base)
    found = [
        SynonymValue(synonym, None if is_sensitive else text, source)
        for source, layer in server.layers.by_source()
        for synonym in names
        if (text := layer.get(synonym)) is not None
    ]
    for synonym in names:
        definition = tables.broker_definitions().get(synonym)
        if definition is not None and definition.default is not None:
            default = None if is_sensitive else definition.default
            found.append(SynonymValue(synonym, default, ConfigSource.DEFAULT_CONFIG))
    while found and found[0].name != name:
        del found[0]
    return tuple(found)


def source_of(synonyms: tuple[SynonymValue, ...]) -> ConfigSource:
    """Returns where the value that counts comes from; without synonyms it is the default."""
    return synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
