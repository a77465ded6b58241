"""Checks of the configs that a group is altered with."""

from collections.abc import Mapping

from klamm.broker.config import tables
from klamm.broker.config.errors import ConfigError, shown
from klamm.broker.config.server_config import ServerConfig
from klamm.broker.config.validators import ConfigValue
from klamm.broker.config.values import parse_value

# Where the name of the limit does not follow from that of the config.
_LIMITS = {("streams.num.standby.replicas", "max"): "group.streams.max.standby.replicas"}
_KINDS = ("consumer", "share", "streams")


def validate_group_configs(overrides: Mapping[str, str], server: ServerConfig) -> None:
    """Checks all configs of a group as they will be.

    Args:
        overrides: The configs by name.
        server: The broker's settings, which bound what a group may set.

    Raises:
        ConfigError: The change must be refused with INVALID_CONFIG and this text.
    """
    definitions = tables.group_definitions()
    for name in overrides:
        if name not in definitions:
            raise ConfigError(f"unknown group config {shown(name)}")
    values = {name: parse_value(definitions[name], text) for name, text in overrides.items()}
    for name, value in values.items():
        if isinstance(value, int) and not isinstance(value, bool):
            _check_limits(name, value, server)
    for kind in _KINDS:
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if _effective(session, values, server) <= _effective(heartbeat, values, server):
            raise ConfigError(f"{session} must be above {heartbeat}")


def _check_limits(name: str, value: int, server: ServerConfig) -> None:
    kind, _, rest = name.partition(".")
    for end in ("min", "max"):
        limit_name = _LIMITS.get((name, end), f"group.{kind}.{end}.{rest}")
        limit = _broker_number(limit_name, server)
        if limit is None:
            continue
        if value < limit if end == "min" else value > limit:
            raise ConfigError(f"{name}={value} is outside of {limit_name}={limit}")


def _effective(name: str, values: Mapping[str, ConfigValue], server: ServerConfig) -> int:
    value = values.get(name, _broker_number(f"group.{name}", server))
    assert isinstance(value, int)
    return value


def _broker_number(name: str, server: ServerConfig) -> int | None:
    definition = tables.broker_definitions().get(name)
    if definition is None:
        return None
    value = server.value_of(definition)
    assert isinstance(value, int)
    return value
