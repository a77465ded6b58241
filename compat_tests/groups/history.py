"""What the members of a group did and saw, and the rules that it must obey.

The checker knows nothing of the broker. It is told everything that members were assigned, polled
and committed, with times of one clock, what is stored, and what the broker says is committed.
"""

from __future__ import annotations

import bisect
import collections
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from compat_tests.history import rules as checker
from compat_tests.history.events import Event

Partition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Assigned:
    """A member has these partitions, and did not have them in this way before.

    Attributes:
        generation: of the group, or the member's epoch; -1 where its library does not tell.
        noticed: since when it is sure that it has no others.
    """

    at: float
    member: str
    partitions: frozenset[Partition]
    generation: int = -1
    noticed: float = 0.0


@dataclass(frozen=True, slots=True)
class Polled:
    """A record was handed to an application."""

    at: float
    member: str
    topic: str
    partition: int
    offset: int
    value: str


@dataclass(frozen=True, slots=True)
class Commit:
    """An offset that a member is `committing`, has `committed`, or was `refused`."""

    at: float
    member: str
    outcome: str
    topic: str
    partition: int
    offset: int
    error: str = ""


@dataclass(frozen=True)
class History:
    """All events of a group; those of one member are in the order in which they happened."""

    assignments: Sequence[Assigned]
    polled: Sequence[Polled]
    commits: Sequence[Commit]


def violations(
    history: History,
    stored: Mapping[Partition, Sequence[str]],
    committed: Mapping[Partition, int],
) -> list[str]:
    """What is wrong with a history; an empty list when all rules are kept.

    Args:
        stored: the values of each partition by offset, read when all is over.
        committed: the offset of each partition that the broker has at the end, or -1.
    """
    return [
        *_lost(history, stored, committed),
        *_changed(history, stored),
        *_forgotten(history),
        *_wrongly_committed(history, committed),
        *checker.violations(owners(history)),
    ]


def owners(history: History) -> list[Event]:
    """Who had which partition in which generation, as the checker of histories wants it told.

    A member that is killed gives nothing up: in a generation nobody else gets what it had.
    """
    events: list[Event] = []
    had: dict[str, Assigned] = {}
    for now in history.assignments:
        before = had.get(now.member, Assigned(now.at, now.member, frozenset()))
        for topic, partition in before.partitions:
            if now.generation != before.generation or (topic, partition) not in now.partitions:
                place = _place(before, topic, partition)
                events.append(replace(place, action="revoke", time=now.noticed))
        for topic, partition in now.partitions:
            if now.generation != before.generation or (topic, partition) not in before.partitions:
                events.append(_place(now, topic, partition))
        had[now.member] = now
    # Where the generation is not known, nothing can be said.
    told = (event for event in events if event.generation >= 0)
    return sorted(told, key=lambda event: event.time)


def _place(held: Assigned, topic: str, partition: int) -> Event:
    return Event(
        "ok",
        "assign",
        held.member,
        time=held.at,
        topic=topic,
        partition=partition,
        group="group",
        generation=held.generation,
    )


def _lost(
    history: History, stored: Mapping[Partition, Sequence[str]], committed: Mapping[Partition, int]
) -> Iterator[str]:
    """Every record was handed to somebody, at least once."""
    seen = {(one.topic, one.partition, one.offset) for one in history.polled}
    for (topic, partition), values in stored.items():
        for offset, value in enumerate(values):
            if (topic, partition, offset) not in seen:
                behind = offset < committed.get((topic, partition), -1)
                how = "lost behind a commit" if behind else "lost"
                yield f"{how}: nobody was handed {value} at {topic}-{partition} {offset}"


def _changed(history: History, stored: Mapping[Partition, Sequence[str]]) -> Iterator[str]:
    for one in history.polled:
        values = stored.get((one.topic, one.partition), ())
        there = values[one.offset] if one.offset < len(values) else None
        if there != one.value:
            yield f"changed: {one.topic}-{one.partition} {one.offset} was {one.value}, is {there}"


def _forgotten(history: History) -> Iterator[str]:
    """Who begins with a partition begins at the last commit that was acknowledged, or later."""
    times: dict[Partition, list[float]] = collections.defaultdict(list)
    newest: dict[Partition, list[int]] = collections.defaultdict(list)
    acknowledged = (one for one in history.commits if one.outcome == "committed")
    for commit in sorted(acknowledged, key=lambda one: one.at):
        where = (commit.topic, commit.partition)
        times[where].append(commit.at)
        newest[where].append(max([commit.offset, *newest[where][-1:]]))
    for member, where, began, first in beginnings(history):
        count = bisect.bisect_left(times[where], began)
        if count and first < newest[where][count - 1]:
            known = newest[where][count - 1]
            yield f"forgotten: {member} began with {where} at {first}, {known} was committed"


def beginnings(history: History) -> Iterator[tuple[str, Partition, float, int]]:
    """Each time that a member got a partition, when, and the first offset that it then polled."""
    steps: dict[str, list[Assigned | Polled]] = collections.defaultdict(list)
    for assigned in history.assignments:
        steps[assigned.member].append(assigned)
    for polled in history.polled:
        steps[polled.member].append(polled)
    for member, events in steps.items():
        # An assignment has the time at which its poll began, so it comes before what that gave.
        events.sort(key=lambda event: event.at)
        had: frozenset[Partition] = frozenset()
        new: dict[Partition, float] = {}
        for event in events:
            if isinstance(event, Assigned):
                new = {one: new[one] for one in new if one in event.partitions}
                new |= dict.fromkeys(event.partitions - had, event.at)
                had = event.partitions
            else:
                began = new.pop((event.topic, event.partition), None)
                if began is not None:
                    yield member, (event.topic, event.partition), began, event.offset


def _wrongly_committed(history: History, committed: Mapping[Partition, int]) -> Iterator[str]:
    """The broker has the last offset that it acknowledged, or a later one that was tried."""
    tried: dict[Partition, int] = collections.defaultdict(lambda: -1)
    acknowledged: dict[Partition, int] = collections.defaultdict(lambda: -1)
    for one in history.commits:
        where = (one.topic, one.partition)
        if one.outcome == "committing":
            tried[where] = max(tried[where], one.offset)
        elif one.outcome == "committed":
            acknowledged[where] = max(acknowledged[where], one.offset)
    for where, offset in committed.items():
        if offset < acknowledged[where]:
            yield f"lost commit: {where} has {offset}, {acknowledged[where]} was acknowledged"
        elif offset > max(tried[where], acknowledged[where]):
            yield f"phantom commit: {where} has {offset}, nobody tried more than {tried[where]}"
