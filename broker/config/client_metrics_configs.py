"""Client metrics configs: what one subscription to the metrics of clients may set."""

from klamm.broker.config.definition import ConfigType, Definition
from klamm.broker.config.validators import ListOf

TELEMETRY = "klamm collects no client metrics."

DEFINITIONS: tuple[Definition, ...] = (
    Definition(
        "metrics",
        ConfigType.LIST,
        "",
        "Prefixes of the metrics to push.",
        ignored=TELEMETRY,
        valid=ListOf(),
    ),
    Definition(
        "interval.ms",
        ConfigType.INT,
        "300000",
        "Pause between two pushes of a client.",
        ignored=TELEMETRY,
    ),
    Definition(
        "match",
        ConfigType.LIST,
        "",
        "Rules that choose the clients, as key=regular expression.",
        ignored=TELEMETRY,
        valid=ListOf(),
    ),
)
