"""What all libraries with transactions offer, in one form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

TIMEOUT_S = 60.0
TIMEOUT_MS = 60_000


class FencedError(Exception):
    """Another producer with the same transactional id has taken over."""


class TransactionError(Exception):
    """Anything else that a library raises."""


class TransactionalProducer(Protocol):
    """A producer that is initialised. Each method may raise one of the errors above."""

    def begin(self) -> None: ...

    def send(self, topic: str, value: str, partition: int = 0) -> None:
        """Hand a record over; commit waits for it."""

    def flush(self) -> None:
        """Wait until everything is acknowledged."""

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None:
        """Go without a word to the broker, as far as the library lets one."""


@dataclass(frozen=True)
class Transform:
    """Read a number of records as a member of a group, write them elsewhere in upper case, and
    commit what was read, all in one transaction."""

    source: str
    target: str
    group_id: str
    transactional_id: str
    count: int
    commits: bool = True


class Library(Protocol):
    name: str

    def open(
        self, bootstrap: str, transactional_id: str, timeout_ms: int = TIMEOUT_MS
    ) -> TransactionalProducer: ...

    def transform(self, bootstrap: str, job: Transform) -> None: ...


def end(producer: TransactionalProducer, job: Transform) -> None:
    # What was not sent yet would be dropped by an abort.
    producer.flush()
    if job.commits:
        producer.commit()
    else:
        producer.abort()
