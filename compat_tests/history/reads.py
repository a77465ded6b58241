"""The rules of what consumers see and are told: I6, I8, I13 and I14.

What those see who see committed records only is judged in transactions.py.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise

from compat_tests.history.book import Book, PartitionBook
from compat_tests.history.events import Event


def order_of_polls(book: Book) -> Iterator[str]:
    """I6: within an assignment offsets grow from its start, and no record between is left out.

    The same holds for the log as it is read at the end.
    """
    for partition in book.partitions.values():
        offsets = sorted({offset for offset, _, _ in partition.places()})
        if partition.is_compacted:
            # Whatever is left out may have been removed meanwhile.
            offsets = []
        last = {reader: start - 1 for reader, start in partition.starts.items()}
        for event in partition.polls:
            reader = (event.process, event.assignment)
            before = last.get(reader)
            who = f"{partition.name}: {event.process or 'a consumer'}"
            yield from step(who, offsets, before, event.offset)
            last[reader] = event.offset
        before = None
        for event in partition.reads:
            yield from step(f"{partition.name}: at the end", offsets, before, event.offset)
            before = event.offset
        yield from _holes(partition)


def step(who: str, offsets: list[int], before: int | None, offset: int) -> Iterator[str]:
    if before is None:
        return
    if offset <= before:
        yield f"{who} read {offset} after {before}"
        return
    following = bisect_right(offsets, before)
    skipped = offsets[following] if following < len(offsets) else offset
    if skipped < offset:
        yield f"{who} read {offset} after {before} and left out {skipped}"


def _holes(partition: PartitionBook) -> Iterator[str]:
    """Without compaction, and without markers of transactions, each offset has its record."""
    has_markers = any(send.invoked.transaction for send in partition.sends.values())
    if partition.end is None or partition.is_compacted or has_markers:
        return
    there = {event.offset for event in partition.reads}
    missing = [
        offset for offset in range(partition.log_start, partition.end) if offset not in there
    ]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        yield f"{partition.name}: at the end there is nothing at {missing[0]}{more}"


_MARKS = ("log_start", "last_stable", "high_watermark", "log_end")


def watermarks(book: Book) -> Iterator[str]:
    """I8: stable offset and high watermark never go back in an epoch, and the log start never:
    whoever was told that records are deleted does not see them again."""
    for partition in book.partitions.values():
        highest: dict[tuple[int, str], int] = {}
        for event in partition.watermarks:
            yield from _order_of_marks(partition, event)
            for name in _MARKS[:3]:
                mark = getattr(event, name)
                if mark < 0:
                    continue
                key = (-1 if name == "log_start" else event.leader_epoch, name)
                before = highest.get(key, -1)
                if mark < before:
                    yield (
                        f"{partition.name}: {name} went back from {before} to {mark}"
                        f" in epoch {event.leader_epoch}"
                    )
                highest[key] = max(mark, before)


def _order_of_marks(partition: PartitionBook, event: Event) -> Iterator[str]:
    known = [(name, getattr(event, name)) for name in _MARKS if getattr(event, name) >= 0]
    for (low, lower), (high, higher) in pairwise(known):
        if lower > higher:
            yield f"{partition.name}: {low} {lower} is above {high} {higher}"


def compaction(book: Book) -> Iterator[str]:
    """I13: of each key, the last value is there; a null in its place may be gone."""
    for partition in book.partitions.values():
        if not partition.is_compacted or partition.end is None:
            continue
        sent = {send.value: send.invoked.key for send in partition.sends.values()}
        newest: dict[str, tuple[int, str]] = {}
        for offset, value, _ in partition.places():
            key = sent.get(value)
            if key is not None and offset >= newest.get(key, (-1, ""))[0]:
                newest[key] = (offset, value)
        there = {(event.offset, event.value or "") for event in partition.reads}
        for key, place in newest.items():
            if place not in there and not place[1].startswith(TOMBSTONE):
                yield (
                    f"{partition.name}: the last value of {key!r}, {place[1]!r} at {place[0]}, is"
                    " not in the log"
                )


# The name of a null value in a history, where every value has to be its own.
TOMBSTONE = "null "


def leader_epochs(book: Book) -> Iterator[str]:
    """I14: leader epochs do not go back along the offsets, and an offset has one epoch."""
    for partition in book.partitions.values():
        epochs: dict[int, int] = {}
        for event in partition.seen():
            if event.leader_epoch < 0:
                continue
            known = epochs.setdefault(event.offset, event.leader_epoch)
            if known != event.leader_epoch:
                yield (
                    f"{partition.name}: offset {event.offset} is of epoch {known}"
                    f" and of epoch {event.leader_epoch}"
                )
        last = (-1, -1)
        for offset, epoch in sorted(epochs.items()):
            if epoch < last[1]:
                yield (
                    f"{partition.name}: epoch {epoch} at {offset} behind epoch {last[1]}"
                    f" at {last[0]}"
                )
            last = (offset, epoch)
