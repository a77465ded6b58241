"""The loggers of this process and their levels, under Kafka's names for levels."""

import logging

from klamm.broker.config.entry import ConfigEntry, ConfigSource

_ROOT = "root"
_OWN = "klamm"
# Kafka's levels with the lowest of Python's that each stands for, highest first.
_LEVELS = (
    (logging.CRITICAL, "FATAL"),
    (logging.ERROR, "ERROR"),
    (logging.WARNING, "WARN"),
    (logging.INFO, "INFO"),
    (logging.DEBUG, "DEBUG"),
)


def describe_loggers() -> tuple[ConfigEntry, ...]:
    """Returns klamm's loggers, each with the level that counts for it, and the root."""
    names = sorted(
        name
        for name, logger in logging.root.manager.loggerDict.items()
        if isinstance(logger, logging.Logger) and (name == _OWN or name.startswith(f"{_OWN}."))
    )
    return tuple(_entry(name) for name in (_ROOT, *names))


def _entry(name: str) -> ConfigEntry:
    level = logging.getLogger(None if name == _ROOT else name).getEffectiveLevel()
    shown = next((word for lowest, word in _LEVELS if level >= lowest), "TRACE")
    return ConfigEntry(name, shown, ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG, documentation="")
