"""Checks of the configs that a topic is created or altered with."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.broker.config import tables
from klamm.broker.config.errors import ConfigError, shown
from klamm.broker.config.values import parse_value, value_text

if TYPE_CHECKING:
    from klamm.broker.config.server_config import ServerConfig


def validate_topic_configs(
    overrides: Mapping[str, str | None], server: "ServerConfig | None" = None
) -> None:
    """Checks the configs of a topic as CreateTopics gets them.

    The order is Kafka's: a null value, then an unknown name, then the values, then how they fit
    together, with the broker's settings for what the topic does not set.

    Args:
        overrides: The configs by name.
        server: The broker's settings; the defaults where None.

    Raises:
        ConfigError: The topic must be refused with INVALID_CONFIG and this text.
    """
    from klamm.broker.config.log_defaults import check_together, topic_log_config
    from klamm.broker.config.server_config import ServerConfig

    # There may be tens of thousands of them, until one is unknown.
    if None in overrides.values():
        name = next(name for name, text in overrides.items() if text is None)
        raise ConfigError(f"topic config {shown(name)} has no value; give one or leave it out")
    definitions = tables.topic_definitions()
    for name in overrides:
        if name not in definitions:
            raise ConfigError(f"unknown topic config {shown(name)}{_suggestion(name)}")
    texts = {name: text for name, text in overrides.items() if text is not None}
    for name, text in texts.items():
        definition = definitions[name]
        value = parse_value(definition, text)
        if definition.supported is not None and value_text(value) not in definition.supported:
            raise ConfigError(f"{name}={shown(text)} is not supported: klamm has no tiered storage")
    check_together(topic_log_config(server if server is not None else ServerConfig(), texts))


def _suggestion(name: str) -> str:
    import difflib

    # A name comes from the network: a long one would make the search slow.
    near = difflib.get_close_matches(name[:64], tables.topic_definitions(), 1)
    return f"; did you mean {near[0]}?" if near else ""
