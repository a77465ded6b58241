"""Which log directory a new partition goes to."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from klamm.broker.broker import Broker
    from klamm.broker.config import ServerConfig
    from klamm.log.manager import LogManager

ALL_DIRECTORIES = "*"


def is_cordoned(path: str, config: ServerConfig) -> bool:
    """Whether a directory gets no new partitions (`cordoned.log.dirs`, KIP-1066)."""
    cordoned = config.cordoned_log_dirs
    if not cordoned:
        return False
    return ALL_DIRECTORIES in cordoned or os.path.abspath(path) in map(os.path.abspath, cordoned)


class Placement:
    """A new partition goes to the directory that has the fewest, as in Kafka.

    Directories that are offline or cordoned get none.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        # What is planned and not committed yet.
        self._promised: Counter[UUID] = Counter()

    @property
    def is_possible(self) -> bool:
        """Whether there is any directory for new partitions."""
        return bool(self._directories())

    def next(self) -> UUID:
        """The directory of the next partition."""
        ids = [directory.directory_id for directory in self._directories()]
        if len(ids) == 1:
            return ids[0]
        sizes = self._broker.metadata.image.directory_sizes
        chosen = min(ids, key=lambda each: sizes.get(each, 0) + self._promised[each])
        self._promised[chosen] += 1
        return chosen

    def on_committed(self) -> None:
        """What was promised counts in the metadata now."""
        self._promised.clear()

    def _directories(self) -> list[LogManager]:
        config = self._broker.config
        return [one for one in self._broker.logs.online if not is_cordoned(one.root, config)]
