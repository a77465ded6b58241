"""The rules of a broker that is disturbed and comes back: I15, I16 and I17."""

from __future__ import annotations

from collections.abc import Iterator

from compat_tests.history.book import Book

# Far above what a start takes, and far below what a client would wait for.
LIVENESS_S = 60.0


def replayed_state(book: Book) -> Iterator[str]:
    """I15: what was replayed after a restart is what was there before it."""
    live: dict[str, str | None] = {}
    for event in book.events:
        if event.action != "state":
            continue
        if event.phase == "live":
            live[event.name] = event.value
        elif event.name not in live:
            yield f"{event.name}: there is no state before {event.value!r}"
        elif live[event.name] != event.value:
            yield f"{event.name}: {live[event.name]!r} came back as {event.value!r}"


def offline_check(book: Book) -> Iterator[str]:
    """I16: the broker's own checker finds nothing after a recovery."""
    for event in book.events:
        if event.action == "check" and event.type != "ok":
            yield f"the offline checker: {event.value}"


def liveness(book: Book) -> Iterator[str]:
    """I17: everything that began comes to an end, and after a fault the work goes on in time."""
    for partition in book.partitions.values():
        left = [send.value for send in partition.sends.values() if send.ended is None]
        if left:
            yield f"{partition.name}: {len(left)} sends never ended, the first is {left[0]!r}"
    waiting_since: float | None = None
    name = ""
    for event in book.events:
        if event.action == "fault":
            if event.type == "ok" and waiting_since is None:
                waiting_since, name = event.time, event.name
            elif event.type == "invoke":
                waiting_since = None
        elif event.type == "ok" and event.action == "send" and waiting_since is not None:
            waited = event.time - waiting_since
            if waited > LIVENESS_S:
                yield f"after {name} at {waiting_since:.3f} the first send took {waited:.3f} s"
            waiting_since = None
    if waiting_since is not None and _is_trying_behind(book, waiting_since):
        yield f"after {name} at {waiting_since:.3f} nothing was acknowledged any more"


def _is_trying_behind(book: Book, time: float) -> bool:
    return any(
        event.action == "send" and event.type == "invoke" and event.time >= time
        for event in book.events
    )
