"""The layers a broker setting may come from, and how they merge.

Highest first: what was set at run time for this broker, what was set at run time for the whole
cluster, what the broker was started with, and the default.
"""

from collections.abc import Mapping
from typing import NamedTuple

from klamm.broker.config.entry import ConfigSource
from klamm.broker.config.synonyms import broker_synonyms


class Layers(NamedTuple):
    """The three layers of explicitly given texts; the defaults are in the tables."""

    static: Mapping[str, str]
    dynamic_default: Mapping[str, str] = {}
    dynamic_broker: Mapping[str, str] = {}

    def merged(self) -> dict[str, str]:
        """Returns the text that counts for every setting that is given anywhere.

        A higher layer replaces a setting under all its names: `log.retention.hours` set at run
        time wins over `log.retention.ms` in the file.
        """
        merged = dict(self.static)
        for layer in (self.dynamic_default, self.dynamic_broker):
            for name, text in layer.items():
                for synonym in broker_synonyms(name):
                    merged.pop(synonym, None)
                merged[name] = text
        return merged

    def by_source(self) -> tuple[tuple[ConfigSource, Mapping[str, str]], ...]:
        """Returns the layers with the name that clients know each by, highest first."""
        return (
            (ConfigSource.DYNAMIC_BROKER_CONFIG, self.dynamic_broker),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, self.dynamic_default),
            (ConfigSource.STATIC_BROKER_CONFIG, self.static),
        )
