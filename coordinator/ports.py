"""What a coordinator needs from the world: a log to write to, timers, topics, and nothing else.

The broker implements these over its logs and its event loop; tests implement them in memory. A
coordinator never sees a file, a socket or a clock.

The order of a command is always the same: decide from the state, `Journal.append` what was decided,
and only then change what is not in the log (who waits, which timers run) and answer. An append is
all or nothing and comes first, so that a refused one leaves no trace and nothing has to be undone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias, TypeVar
from uuid import UUID

from klamm.wire.records.batch import NO_PRODUCER_ID
from klamm.wire.schema import Message

Response = TypeVar("Response", contravariant=True)
Result = TypeVar("Result")


class CoordinatorRecord(NamedTuple):
    """One record of a coordinator's log; a value of None is a tombstone.

    Args:
        key: the key message, whose record type number is stored in front of it.
        value: the value message.
        value_version: the version in which the value is stored.
        producer_id: whose transaction it is part of; -1 for none.
    """

    key: Message
    value: Message | None
    value_version: int = 0
    producer_id: int = NO_PRODUCER_ID


@dataclass(frozen=True, slots=True)
class TransactionMarker:
    """The end of a transaction in a coordinator's log."""

    producer_id: int
    is_commit: bool


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """As part of which transaction records are written.

    Args:
        guard: what the log wants to see before the first batch of a transaction (KIP-890); of no
            meaning here.
    """

    producer_id: int
    producer_epoch: int
    guard: object | None = None


class Journal(Protocol):
    """The log partition behind a coordinator."""

    def append(
        self,
        records: Sequence[CoordinatorRecord],
        transaction: OpenTransaction | None = None,
    ) -> None:
        """Append the records as one batch, then replay each of them into the state.

        Replies that are given later in the same step leave when the batch is on disk.

        Raises:
            CoordinatorError: the log refuses them; nothing has changed.
        """


class Timers(Protocol):
    """Deadlines by key; they are measured on a clock that never jumps."""

    def schedule(self, key: Hashable, delay_ms: int, expire: Callable[[], None]) -> None:
        """Call `expire` once after the delay; replaces the timer that has the same key."""

    def cancel(self, key: Hashable) -> None:
        """Forget a timer; none with this key is fine."""


class Background(Protocol):
    """Where work goes that could take longer than a step of the event loop may."""

    def run(self, work: Callable[[], Result], done: Callable[[Result], None]) -> None:
        """Call `work`, in a thread if need be, and then `done` with its result as a step of the
        coordinator. Work never touches the state; both are dropped if the coordinator goes away.
        """


class InlineBackground:
    """Does the work at once: for tests, and where nobody waits."""

    def run(self, work: Callable[[], Result], done: Callable[[Result], None]) -> None:
        done(work())


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic as assignors see it; `racks` has one set of rack names for each partition."""

    name: str
    topic_id: UUID
    racks: tuple[frozenset[str], ...]

    @property
    def partition_count(self) -> int:
        return len(self.racks)


class Topics(Protocol):
    """The topics that exist now."""

    @property
    def version(self) -> int:
        """Changes whenever a topic comes, goes or grows."""

    def names(self) -> Iterable[str]: ...
    def find(self, name: str) -> TopicDescription | None: ...
    def find_by_id(self, topic_id: UUID) -> TopicDescription | None: ...


@dataclass(frozen=True, slots=True)
class Client:
    """Who sent a request: the client id of its header, and the host that it came from."""

    client_id: str
    host: str
    api_version: int


# A reply that may come later: JoinGroup and SyncGroup wait for other members.
Reply: TypeAlias = Callable[[Response], None]
