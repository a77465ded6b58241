"""What the records of the internal topics mean, which the log itself does not know.

A check is told by somebody who does: whether a record can be understood, and, once the metadata
log has been read, which partitions there should be.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from klamm.wire.records.record import Record


@dataclass(frozen=True, slots=True)
class Owner:
    """What the metadata log says of a partition.

    Attributes:
        compacts: whether records may be missing between others.
        replicas: the nodes that have it.
        directory_ids: the directories that hold its replicas; empty when that is not said.
    """

    topic_id: UUID
    compacts: bool
    replicas: tuple[int, ...]
    directory_ids: frozenset[UUID]

    @property
    def is_alone(self) -> bool:
        """Whether there is one replica, so that everything in the log is committed."""
        return len(self.replicas) == 1


class Contents(Protocol):
    """Who understands records."""

    def understands(self, topic: str) -> bool:
        """Whether `see` wants the records of a topic."""

    def see(self, topic: str, record: Record, *, applies: bool) -> str | None:
        """Look at a record; say what is wrong with it.

        Args:
            applies: False for a record that a metadata snapshot has replaced.
        """

    def owners(self) -> Mapping[tuple[str, int], Owner] | None:
        """The partitions of all topics; None when there was no metadata log."""


class NoContents:
    """Takes records as they are."""

    def understands(self, topic: str) -> bool:
        return False

    def see(self, topic: str, record: Record, *, applies: bool) -> str | None:
        return None

    def owners(self) -> Mapping[tuple[str, int], Owner] | None:
        return None
