"""The rules of groups: I7."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from compat_tests.history.book import Book
from compat_tests.history.events import Event


@dataclass(slots=True)
class _Commit:
    """One commit: the offset, and how it ended."""

    offset: int
    outcome: str = "unknown"


def commits(book: Book) -> Iterator[str]:
    """I7: what a group has committed is its last acknowledged commit, or a later attempt."""
    tried: defaultdict[tuple[str, str, int], dict[tuple[str, str], _Commit]] = defaultdict(dict)
    for event in book.events:
        place = (event.group, event.topic, event.partition)
        name = (event.process, event.value or "")
        if event.action == "commit" and event.type == "invoke":
            tried[place][name] = _Commit(event.offset)
        elif event.action == "commit":
            commit = tried[place].get(name)
            if commit is None:
                yield f"{_where(event)}: commit {event.value!r} ends and never began"
            else:
                commit.outcome = event.type
        elif event.action == "committed":
            allowed = _allowed(list(tried[place].values()))
            if event.offset not in allowed:
                yield (
                    f"{_where(event)}: {event.offset} is committed, which should be"
                    f" one of {sorted(allowed)}"
                )


def _allowed(commits: list[_Commit]) -> set[int]:
    """What may be committed: the last that was acknowledged, or what was tried behind it."""
    allowed = {-1}
    for commit in commits:
        if commit.outcome == "ok":
            allowed = {commit.offset}
        elif commit.outcome == "unknown":
            allowed.add(commit.offset)
    return allowed


def one_owner(book: Book) -> Iterator[str]:
    """I7: in a generation of a group, a partition has one owner."""
    owners: dict[tuple[str, int, str, int], str] = {}
    for event in book.events:
        if event.action not in ("assign", "revoke"):
            continue
        place = (event.group, event.generation, event.topic, event.partition)
        if event.action == "revoke":
            if owners.get(place) == event.process:
                del owners[place]
            continue
        owner = owners.setdefault(place, event.process)
        if owner != event.process:
            yield (
                f"{_where(event)}: in generation {event.generation} it is owned by {owner!r}"
                f" and by {event.process!r}"
            )


def _where(event: Event) -> str:
    return f"group {event.group}, {event.topic}-{event.partition}"
