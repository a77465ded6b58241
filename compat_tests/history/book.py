"""A history, sorted by partition and by what the rules ask for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from compat_tests.history.events import Event


@dataclass(slots=True)
class Send:
    """One send: how it was tried and how it ended. place is its turn among all events."""

    invoked: Event
    place: int
    ended: Event | None = None

    @property
    def value(self) -> str:
        return self.invoked.value or ""

    @property
    def outcome(self) -> str:
        return "unknown" if self.ended is None else self.ended.type

    @property
    def is_acknowledged(self) -> bool:
        return self.outcome == "ok"

    @property
    def offset(self) -> int:
        return -1 if self.ended is None else self.ended.offset


@dataclass(slots=True)
class Committed:
    """What those have seen of a partition who see committed records only.

    Attributes:
        polls, reads, end: see PartitionBook.
        places: of each poll, its turn among all events.
    """

    polls: list[Event] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    reads: list[Event] = field(default_factory=list)
    end: int | None = None

    def seen(self) -> Iterator[Event]:
        yield from self.polls
        yield from self.reads


@dataclass(slots=True)
class Transaction:
    """One transaction: what was sent in it, and how it ended.

    Attributes:
        commit_place: when somebody first tried to commit it, among all events.
        outcome: "committed", "aborted", or "unknown".
    """

    name: str
    sends: list[Send] = field(default_factory=list)
    commit_place: int | None = None
    outcome: str = "aborted"


@dataclass(slots=True)
class PartitionBook:
    """What happened in one partition.

    Attributes:
        sends: by value, in the order in which they were tried.
        polls: what consumers were handed, in the order of time.
        starts: where each consumer began to read, by its name and that of its assignment.
        reads: what was in the log at the end, in the order in which it was read.
        end: of the log at the end; None when it was not read.
        committed: the same of whoever sees committed records only.
        log_start: the highest that anybody was told.
    """

    topic: str
    partition: int
    sends: dict[str, Send] = field(default_factory=dict)
    polls: list[Event] = field(default_factory=list)
    starts: dict[tuple[str, str], int] = field(default_factory=dict)
    reads: list[Event] = field(default_factory=list)
    watermarks: list[Event] = field(default_factory=list)
    end: int | None = None
    log_start: int = 0
    is_compacted: bool = False
    committed: Committed = field(default_factory=lambda: Committed())

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    def seen(self) -> Iterator[Event]:
        """Every record that anybody has seen."""
        yield from self.polls
        yield from self.reads

    def places(self) -> Iterator[tuple[int, str, str]]:
        """(offset, value, who says so) of everything whose place is known."""
        for send in self.sends.values():
            if send.is_acknowledged and send.offset >= 0:
                yield send.offset, send.value, "acknowledged"
        for event in self.polls:
            yield event.offset, event.value or "", f"polled by {event.process or 'a consumer'}"
        for event in self.reads:
            yield event.offset, event.value or "", "read at the end"
        for event in self.committed.seen():
            yield event.offset, event.value or "", "seen as committed"


@dataclass(slots=True)
class Book:
    """The whole history.

    Attributes:
        problems: what makes a history worthless: events that can't follow each other.
    """

    events: Sequence[Event]
    partitions: dict[tuple[str, int], PartitionBook] = field(default_factory=dict)
    transactions: dict[str, Transaction] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def is_committed(self, send: Send) -> bool:
        """Whether everybody may and must see it."""
        name = send.invoked.transaction
        return not name or self.transactions[name].outcome == "committed"


def open_book(events: Sequence[Event]) -> Book:
    """Sort a history."""
    book = Book(events)
    compacted = {event.topic for event in events if event.action == "topic" and event.compacted}
    owners: dict[str, tuple[str, int]] = {}
    for place, event in enumerate(events):
        if event.action == "transaction":
            _add_end(book, event, place)
        if not event.topic:
            continue
        key = (event.topic, event.partition)
        partition = book.partitions.get(key)
        if partition is None:
            partition = book.partitions[key] = PartitionBook(*key)
            partition.is_compacted = event.topic in compacted
        if event.isolation:
            _add_committed(partition.committed, event, place)
        elif event.action == "send":
            _add_send(book, partition, event, place, owners)
        elif event.action == "poll":
            partition.polls.append(event)
        elif event.action == "assign" and event.offset >= 0:
            partition.starts[event.process, event.assignment] = event.offset
        elif event.action == "read":
            partition.reads.append(event)
        elif event.action == "end":
            partition.end = event.offset
        elif event.action == "watermarks":
            partition.watermarks.append(event)
            partition.log_start = max(partition.log_start, event.log_start)
    return book


def _add_send(
    book: Book,
    partition: PartitionBook,
    event: Event,
    place: int,
    owners: dict[str, tuple[str, int]],
) -> None:
    value = event.value or ""
    key = (partition.topic, partition.partition)
    send = partition.sends.get(value)
    if event.type == "invoke":
        if owners.setdefault(value, key) != key or send is not None:
            book.problems.append(f"{partition.name}: {value!r} is sent twice; values are unique")
            return
        partition.sends[value] = Send(event, place)
        if event.transaction:
            transaction = book.transactions.setdefault(
                event.transaction, Transaction(event.transaction)
            )
            transaction.sends.append(partition.sends[value])
    elif send is None:
        book.problems.append(f"{partition.name}: the send of {value!r} ends and never began")
    elif send.ended is not None and send.ended != event:
        book.problems.append(f"{partition.name}: the send of {value!r} ends twice")
    else:
        send.ended = event


def _add_committed(committed: Committed, event: Event, place: int) -> None:
    if event.action == "poll":
        committed.polls.append(event)
        committed.places.append(place)
    elif event.action == "read":
        committed.reads.append(event)
    elif event.action == "end":
        committed.end = event.offset


# How a transaction stands after an attempt to commit it has ended so.
_OUTCOMES = {"ok": "committed", "fail": "aborted", "unknown": "unknown"}


def _add_end(book: Book, event: Event, place: int) -> None:
    transaction = book.transactions.get(event.transaction)
    if transaction is None:
        book.problems.append(f"{event.transaction!r} ends, and nothing was sent in it")
    elif event.name == "commit" and event.type == "invoke":
        transaction.commit_place = place
        transaction.outcome = "unknown"
    elif event.name == "commit":
        transaction.outcome = _OUTCOMES[event.type]
    elif event.type == "ok" and transaction.outcome == "committed":
        book.problems.append(f"{event.transaction!r} was committed and then aborted")
    elif event.type == "ok":
        transaction.outcome = "aborted"
