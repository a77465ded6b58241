"""What a client may send and what it reads back, in one form for all client libraries.

Each library has its own idea of a message, a null and a timestamp type. The drivers translate into
these classes, so that a record sent by one library can be compared with what another one read.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

Headers = tuple[tuple[str, bytes | None], ...]

# Libraries have different defaults.
READ_UNCOMMITTED = "read_uncommitted"
READ_COMMITTED = "read_committed"

DELIVERY_TIMEOUT_S = 30.0
"""How long a driver waits for messages; far above what any working broker needs."""

OUTAGE_TIMEOUT_MS = 90_000
"""How long a client tries a record again; far above the time for which a test takes the broker
away."""


class TimestampType(enum.Enum):
    """Who wrote the timestamp of a record."""

    CREATE = "create"
    LOG_APPEND = "log append"


@dataclass(frozen=True, slots=True)
class Record:
    """One record as the application wants it stored. No timestamp means: the client's clock."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Received:
    """One record as a consumer saw it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int
    timestamp_type: TimestampType

    @property
    def content(self) -> tuple[bytes | None, bytes | None, Headers]:
        """The part that the producer decides in every library."""
        return self.key, self.value, self.headers


@dataclass(frozen=True, slots=True)
class ProducerMode:
    """The producer settings that change what reaches the broker."""

    codec: str = "none"
    acks: str = "all"
    idempotence: bool = True
    request_bytes_max: int = 1_048_576

    def __str__(self) -> str:
        return f"{self.codec}-acks_{self.acks}-{'idempotent' if self.idempotence else 'plain'}"


DEFAULT_MODE = ProducerMode()


@dataclass(frozen=True, slots=True)
class Delivery:
    """Where an acknowledged record went; acks=0 leaves the offset unknown."""

    partition: int
    offset: int | None


@dataclass(frozen=True, slots=True)
class Positions:
    """What ListOffsets tells about a partition."""

    earliest: int
    latest: int
    for_times: list[int | None]
    """For each timestamp that was asked for, the first offset not older, or None."""


class ProduceError(Exception):
    """A record was refused, by the broker or by the client before sending.

    ``name`` is the client library's own name of the error.
    """

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"{name}: {detail}")
        self.name = name


class Client(Protocol):
    """What every driver offers."""

    @property
    def name(self) -> str: ...

    def produce(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[Record],
        *,
        partition: int | None = 0,
        mode: ProducerMode = ...,
    ) -> list[Delivery]: ...

    def consume(
        self,
        bootstrap: str,
        topic: str,
        count: int,
        *,
        partitions: Sequence[int] = (0,),
        start: int = 0,
        fetch_wait_ms: int = 50,
        fetch_bytes_min: int = 1,
        isolation: str = READ_UNCOMMITTED,
    ) -> list[Received]: ...

    def positions(
        self, bootstrap: str, topic: str, timestamps: Sequence[int] = ()
    ) -> Positions: ...


def contents(records: Sequence[Record]) -> list[tuple[bytes | None, bytes | None, Headers]]:
    """The part of sent records that must come back equal."""
    return [(record.key, record.value, record.headers) for record in records]
