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
class PartitionBook:
    """What happened in one partition.

    Attributes:
        sends: by value, in the order in which they were tried.
        polls: what consumers were handed, in the order of time.
        starts: where each consumer began to read, by its name and that of its assignment.
        reads: what was in the log at the end, in the order in which it was read.
        end: of the log at the end; None when it was not read.
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


@dataclass(slots=True)
class Book:
    """The whole history.

    Attributes:
        problems: what makes a history worthless: events that can't follow each other.
    """

    events: Sequence[Event]
    partitions: dict[tuple[str, int], PartitionBook] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def open_book(events: Sequence[Event]) -> Book:
    """Sort a history."""
    book = Book(events)
    compacted = {event.topic for event in events if event.action == "topic" and event.compacted}
    owners: dict[str, tuple[str, int]] = {}
    for place, event in enumerate(events):
        if not event.topic:
            continue
        key = (event.topic, event.partition)
        partition = book.partitions.get(key)
        if partition is None:
            partition = book.partitions[key] = PartitionBook(*key)
            partition.is_compacted = event.topic in compacted
        if event.action == "send":
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
    elif send is None:
        book.problems.append(f"{partition.name}: the send of {value!r} ends and never began")
    elif send.ended is not None and send.ended != event:
        book.problems.append(f"{partition.name}: the send of {value!r} ends twice")
    else:
        send.ended = event
