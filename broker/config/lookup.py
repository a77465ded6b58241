"""Finding the definition of a setting by its name, without building more tables than needed."""

from klamm.broker.config import tables
from klamm.broker.config.definition import Definition
from klamm.broker.config.errors import ConfigError, shown
from klamm.broker.config.synonyms import TOPIC_SYNONYMS

LISTENER_PREFIX = "listener.name."
# What may be set for one listener alone and concerns only listeners that klamm refuses.
_SECURITY_PREFIXES = ("ssl.", "sasl.", "principal.builder.class", "connections.max.reauth.ms")
# These also take the name of the mechanism before them: listener.name.x.plain.sasl.jaas.config.
_PER_MECHANISM = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
# Settings of Kafka's plug-ins for tiered storage; with it switched off they have no reader.
_PLUGIN_PREFIXES = ("rsm.config.", "rlmm.config.")


def base_name(name: str) -> str:
    """Returns the setting that a listener's own setting (`listener.name.x.…`) stands for."""
    if not name.startswith(LISTENER_PREFIX):
        return name
    base = name[len(LISTENER_PREFIX) :].partition(".")[2]
    for setting in _PER_MECHANISM:
        if base.endswith("." + setting):
            return setting
    return base


def is_plugin_setting(name: str) -> bool:
    """True for a setting that only a plug-in would read, whose meaning klamm cannot know."""
    return name.startswith(_PLUGIN_PREFIXES)


def broker_definition(name: str) -> Definition | None:
    """Returns the definition of a broker setting, or None where there is none."""
    base = base_name(name)
    if base != name and not base.startswith(_SECURITY_PREFIXES):
        return None
    return tables.find_broker_definition(base)


def unknown_property(name: str) -> ConfigError:
    """Returns the refusal of a setting that does not exist; the text names the nearest one."""
    return ConfigError(f"unknown property {shown(name)}; {_suggestion(name)}")


def _suggestion(name: str) -> str:
    if name in TOPIC_SYNONYMS:
        return f"did you mean {TOPIC_SYNONYMS[name][0].name}?"
    base = base_name(name)
    if base != name and tables.find_broker_definition(base) is not None:
        return f"set {base} for all listeners instead"
    import difflib

    near = difflib.get_close_matches(name, tables.broker_definitions(), 1)
    return f"did you mean {near[0]}?" if near else "remove it, or see docs/configuration.md"
