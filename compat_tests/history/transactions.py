"""The rules of transactions: I9 to I12.

A transaction is committed when its producer was told so, and aborted when the producer was told
that, or never tried to commit it. In between, nobody knows: it may be there or not, but whole.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from compat_tests.history.book import Book, PartitionBook, Send
from compat_tests.history.events import Event
from compat_tests.history.reads import step


def isolation(book: Book) -> Iterator[str]:
    """I9: whoever sees committed records only sees nothing that is open or aborted, nothing above
    the last stable offset, everything else, and all that in order."""
    for partition in book.partitions.values():
        committed = partition.committed
        for event, place in zip(committed.polls, committed.places, strict=True):
            yield from _visible(book, partition, event, place)
        for event in committed.reads:
            yield from _visible(book, partition, event, len(book.events))
        yield from _below_stable_offset(partition)
        yield from _in_order(book, partition)


def _visible(book: Book, partition: PartitionBook, event: Event, place: int) -> Iterator[str]:
    send = partition.sends.get(event.value or "")
    if send is None or not send.invoked.transaction:
        return
    transaction = book.transactions[send.invoked.transaction]
    where = f"{partition.name}: {event.value!r} at {event.offset}, of {transaction.name!r},"
    if transaction.outcome == "aborted":
        yield f"{where} was seen and is not committed"
    elif transaction.commit_place is None or place < transaction.commit_place:
        yield f"{where} was seen before anybody wanted to commit it"


def _below_stable_offset(partition: PartitionBook) -> Iterator[str]:
    """The stable offset never goes back: what it has not reached later was not stable before."""
    furthest = -1
    polls = iter(partition.committed.polls)
    poll = next(polls, None)
    for event in partition.watermarks:
        while poll is not None and poll.time <= event.time:
            furthest = max(furthest, poll.offset)
            poll = next(polls, None)
        if 0 <= event.last_stable <= furthest:
            yield (
                f"{partition.name}: {furthest} was seen, and later only what is below"
                f" {event.last_stable} was stable"
            )
            return


def _in_order(book: Book, partition: PartitionBook) -> Iterator[str]:
    sure = {send.value for send in partition.sends.values() if book.is_committed(send)}
    places = partition.places()
    offsets = sorted({offset for offset, value, _ in places if value in sure})
    last: dict[tuple[str, str], int] = {}
    for event in partition.committed.polls:
        reader = (event.process, event.assignment)
        yield from step(
            f"{partition.name}: {event.process}", offsets, last.get(reader), event.offset
        )
        last[reader] = event.offset
    for before, after in pairwise(partition.committed.reads):
        yield from step(f"{partition.name}: at the end", offsets, before.offset, after.offset)


def all_or_none(book: Book) -> Iterator[str]:
    """I9: at the end, what is committed is there; what nobody knows is there as a whole or not."""
    read: dict[tuple[str, int], set[str]] = {
        key: {event.value or "" for event in partition.committed.reads}
        for key, partition in book.partitions.items()
        if partition.committed.end is not None
    }
    for partition in book.partitions.values():
        there = read.get((partition.topic, partition.partition))
        for send in partition.sends.values():
            if there is None or send.invoked.transaction or not send.is_acknowledged:
                continue
            if send.value not in there:
                yield f"{partition.name}: {send.value!r} was acknowledged and nobody sees it"
    for transaction in book.transactions.values():
        known = [send for send in transaction.sends if _place(send) in read]
        seen = [send for send in known if send.value in read[_place(send)]]
        missing = len(known) - len(seen)
        if missing and (seen or transaction.outcome == "committed"):
            yield (
                f"{transaction.name!r} is {transaction.outcome}, and {missing} of its"
                f" {len(known)} records are not there"
            )


def _place(send: Send) -> tuple[str, int]:
    return send.invoked.topic, send.invoked.partition


def copies(book: Book) -> Iterator[str]:
    """I10: a copy has each record of what it is a copy of once, and in its order."""
    for topic, source in _promised(book, "copy_of"):
        if any(p.committed.end is None for p in _partitions(book, topic, source)):
            continue
        there = Counter(
            event.value or "" for p in _partitions(book, source) for event in p.committed.reads
        )
        copied = Counter(
            _sent(p, event).invoked.origin
            for p in _partitions(book, topic)
            for event in p.committed.reads
            if event.value in p.sends
        )
        for value, count in ((there - copied) + (copied - there)).items():
            yield f"{topic}: {value!r} of {source} is there {copied[value]} times ({count} wrong)"
        yield from _order_of_copies(book, topic, source)


def _order_of_copies(book: Book, topic: str, source: str) -> Iterator[str]:
    """Each partition is copied to the one of the same number."""
    for partition in _partitions(book, topic):
        original = book.partitions.get((source, partition.partition))
        if original is None:
            continue
        offsets = {event.value: event.offset for event in original.committed.reads}
        places = [
            offsets.get(_sent(partition, event).invoked.origin, -1)
            for event in partition.committed.reads
            if event.value in partition.sends
        ]
        for before, after in pairwise(places):
            if after < before:
                yield f"{partition.name}: the copy of {after} stands behind that of {before}"


def totals(book: Book) -> Iterator[str]:
    """I11: the sum over all keys is always the same, for everybody who sees whole transactions."""
    for topic, total in _promised(book, "total"):
        partitions = list(_partitions(book, topic))
        sends = {value: send for p in partitions for value, send in p.sends.items()}
        readers: defaultdict[tuple[str, str], list[tuple[int, Event]]] = defaultdict(list)
        for partition in partitions:
            committed = partition.committed
            for event, place in zip(committed.polls, committed.places, strict=True):
                readers[event.process, event.assignment].append((place, event))
        for (process, _), polled in readers.items():
            polled.sort(key=lambda one: one[0])
            seen = [sends[e.value] for _, e in polled if e.value in sends]
            keys = {send.invoked.key for send in sends.values()}
            yield from _sums(book, f"{topic}: {process}", seen, total, len(keys))
        if all(partition.committed.end is not None for partition in partitions):
            last = [e.value for p in partitions for e in p.committed.reads]
            amounts = {
                sends[value].invoked.key: sends[value].invoked.amount
                for value in last
                if value in sends
            }
            if sum(amounts.values()) != total:
                yield f"{topic}: at the end there is {sum(amounts.values())} and not {total}"


def _sums(book: Book, who: str, seen: Sequence[Send], total: int, keys: int) -> Iterator[str]:
    """Whenever a reader has no transaction in part, it knows everything up to some moment; once it
    knows each of the keys."""
    amounts: dict[str | None, int] = {}
    in_part: Counter[str] = Counter()
    for send in seen:
        name = send.invoked.transaction
        amounts[send.invoked.key] = send.invoked.amount
        in_part[name] += 1
        if in_part[name] == len(book.transactions[name].sends):
            del in_part[name]
        if not in_part and len(amounts) == keys and sum(amounts.values()) != total:
            yield f"{who} saw {sum(amounts.values())} and not {total} after {send.value!r}"
            return


def fencing(book: Book) -> Iterator[str]:
    """I12: once a process has written with a transactional id, no earlier one writes any more."""
    for partition in book.partitions.values():
        newest: dict[str, tuple[int, int]] = {}
        for event in sorted(partition.reads, key=lambda event: event.offset):
            send = partition.sends.get(event.value or "")
            if send is None or not send.invoked.transactional_id:
                continue
            name = send.invoked.transactional_id
            generation, offset = newest.get(name, (-1, -1))
            if send.invoked.generation < generation:
                yield (
                    f"{partition.name}: at {event.offset} generation {send.invoked.generation} of"
                    f" {name!r} writes, behind generation {generation} at {offset}"
                )
            else:
                newest[name] = (send.invoked.generation, event.offset)


def _promised(book: Book, field: str) -> Iterator[tuple[str, Any]]:
    for event in book.events:
        if event.action == "topic" and getattr(event, field) not in ("", -1):
            yield event.topic, getattr(event, field)


def _partitions(book: Book, *topics: str) -> Iterator[PartitionBook]:
    for partition in book.partitions.values():
        if partition.topic in topics:
            yield partition


def _sent(partition: PartitionBook, event: Event) -> Send:
    return partition.sends[event.value or ""]
