"""The loggers of this process and their levels, under Kafka's names for levels.

A level that is set lasts as long as the process: it is stored nowhere, as in Kafka.
"""

import logging

from klamm.broker.config.entry import ConfigEntry, ConfigSource

ROOT = "root"
_OWN = "klamm"
# Kafka's levels with the lowest of Python's that each stands for, highest first.
LEVELS = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": logging.DEBUG // 2,
}


def describe_loggers() -> tuple[ConfigEntry, ...]:
    """Returns klamm's loggers, each with the level that counts for it, and the root."""
    return tuple(_entry(name) for name in logger_names())


def logger_names() -> list[str]:
    """Returns the names of klamm's loggers, and of the root first."""
    names = sorted(
        name
        for name, logger in logging.root.manager.loggerDict.items()
        if isinstance(logger, logging.Logger) and (name == _OWN or name.startswith(f"{_OWN}."))
    )
    return [ROOT, *names]


def set_level(name: str, level: str | None) -> None:
    """Sets the level of a logger that there is; None gives it back that of the logger above."""
    _logger(name).setLevel(logging.NOTSET if level is None else LEVELS[level])


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(None if name == ROOT else name)


def _entry(name: str) -> ConfigEntry:
    level = _logger(name).getEffectiveLevel()
    shown = next((word for word, lowest in LEVELS.items() if level >= lowest), "TRACE")
    return ConfigEntry(name, shown, ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG, documentation="")
