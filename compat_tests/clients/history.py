"""What clients did and saw while a broker was disturbed, and the rules that it must obey.

A history is a list of events of one partition: every send as it is tried (invoke) and as it ends
(ok, or unknown when the client gave up), and every record that a consumer was handed (poll). The
checker knows nothing of the broker; values are unique, so each record can be told from all others.
"""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["invoke", "ok", "unknown", "poll"]

WAIT_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that a client did or saw. The offset is -1 where it is not known."""

    kind: Kind
    value: str
    offset: int = -1


class History:
    """Events in the order in which they happened; several threads may add to it."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._counts: collections.Counter[str] = collections.Counter()
        self._changed = threading.Condition()
        self._failure: BaseException | None = None

    def add(self, kind: Kind, value: str, offset: int = -1) -> None:
        with self._changed:
            self._events.append(Event(kind, value, offset))
            self._counts[kind] += 1
            self._changed.notify_all()

    def fail(self, failure: BaseException) -> None:
        """A client broke off; whoever waits gets its error."""
        with self._changed:
            self._failure = failure
            self._changed.notify_all()

    def events(self) -> list[Event]:
        with self._changed:
            return list(self._events)

    def count(self, kind: Kind) -> int:
        with self._changed:
            return self._counts[kind]

    def wait_for(self, kind: Kind, count: int) -> None:
        """Wait until there are ``count`` events of a kind in all.

        Raises:
            TimeoutError: when they do not come.
        """
        self._wait(lambda: self._counts[kind] >= count, f"{count} events {kind!r}")

    def wait_for_more(self, kind: Kind, count: int) -> None:
        """Wait until there are ``count`` events of a kind beyond those of now."""
        self.wait_for(kind, self.count(kind) + count)

    def has_within(self, kind: Kind, count: int, seconds: float) -> bool:
        """Whether there are ``count`` events of a kind in all, now or within some seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._counts[kind] >= count, seconds)

    def wait_for_value(self, kind: Kind, value: str) -> None:
        """Wait until there is an event of a kind with this value."""
        self._wait(
            lambda: any(event.kind == kind and event.value == value for event in self._events),
            f"{kind!r} of {value!r}",
        )

    def _wait(self, condition: Callable[[], bool], wanted: str) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._failure is not None or condition(), WAIT_TIMEOUT_S)
            if self._failure is not None:
                raise self._failure
            if not condition():
                raise TimeoutError(f"waited for {wanted}; there are {dict(self._counts)}")


def violations(
    events: Sequence[Event], stored: Sequence[tuple[int, str]], *, idempotent: bool
) -> list[str]:
    """What is wrong with a history; an empty list when all rules are kept.

    Args:
        events: of the producers and of one consumer that read from the beginning.
        stored: offset and value of every record in the partition, read when all is over.
        idempotent: whether the producers promise that each value is stored once and in order.
    """
    found = [
        *_lost(events, stored),
        *_two_values_at_one_offset(events, stored),
        *_phantoms(events, stored),
        *_gaps("stored", [offset for offset, _ in stored]),
        *_gaps("polled", [event.offset for event in events if event.kind == "poll"]),
    ]
    if idempotent:
        found += _doubled(stored)
        found += _out_of_order(events, stored)
    return found


def _lost(events: Sequence[Event], stored: Sequence[tuple[int, str]]) -> Iterable[str]:
    """Every acknowledged record is there, and at the offset that the client was told."""
    values = {value for _, value in stored}
    pairs = set(stored)
    for event in events:
        if event.kind == "ok" and event.value not in values:
            yield f"lost: {event.value} was acknowledged at {event.offset}"
        elif event.kind == "ok" and event.offset >= 0 and (event.offset, event.value) not in pairs:
            yield f"moved: {event.value} was acknowledged at {event.offset}"


def _two_values_at_one_offset(
    events: Sequence[Event], stored: Sequence[tuple[int, str]]
) -> Iterable[str]:
    known = dict(stored)
    for event in events:
        if event.kind == "poll" and known.get(event.offset, event.value) != event.value:
            yield f"changed: {event.offset} was {event.value} and is {known[event.offset]}"


def _phantoms(events: Sequence[Event], stored: Sequence[tuple[int, str]]) -> Iterable[str]:
    sent = {event.value for event in events if event.kind == "invoke"}
    seen = [event.value for event in events if event.kind == "poll"]
    for value in [*seen, *(value for _, value in stored)]:
        if value not in sent:
            yield f"phantom: nobody sent {value}"


def _gaps(who: str, offsets: Sequence[int]) -> Iterable[str]:
    """Offsets begin at 0 and follow each other: nothing was skipped, nothing handed out twice."""
    for expected, offset in enumerate(offsets):
        if offset != expected:
            yield f"gap: {who} {offset} instead of {expected}"
            return


def _doubled(stored: Sequence[tuple[int, str]]) -> Iterable[str]:
    counts = collections.Counter(value for _, value in stored)
    for value, count in counts.items():
        if count > 1:
            yield f"doubled: {value} is stored {count} times"


def _out_of_order(events: Sequence[Event], stored: Sequence[tuple[int, str]]) -> Iterable[str]:
    """Records are stored in the order in which they were sent."""
    order = {event.value: place for place, event in enumerate(events) if event.kind == "invoke"}
    last = -1
    for offset, value in stored:
        place = order.get(value, last)
        if place < last:
            yield f"out of order: {value} at {offset}"
        last = max(last, place)
