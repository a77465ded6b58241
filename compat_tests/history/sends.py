"""The rules of what producers were promised: I1 to I5 and I18."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from compat_tests.history.book import Book, PartitionBook, Send


def acknowledged_is_there(book: Book) -> Iterator[str]:
    """I1: what was acknowledged is seen by whoever reads past it, and at the end by everybody."""
    for partition in book.partitions.values():
        seen = {event.value for event in partition.seen()}
        read = {event.value for event in partition.reads}
        furthest = max((event.offset for event in partition.seen()), default=-1)
        for send in partition.sends.values():
            if not send.is_acknowledged or _may_be_gone(partition, send):
                continue
            where = f"{partition.name}: {send.value!r} was acknowledged at {send.offset}"
            if partition.end is not None and send.value not in read:
                yield f"{where} and is not in the log"
            elif send.value not in seen and 0 <= send.offset <= furthest:
                yield f"{where}, somebody read up to {furthest}, nobody saw it"
        if partition.end is not None and partition.end <= furthest:
            yield f"{partition.name}: {furthest} was seen, and the log ends at {partition.end}"


def _may_be_gone(partition: PartitionBook, send: Send) -> bool:
    """Whether retention or compaction may have removed it."""
    return partition.is_compacted or 0 <= send.offset < partition.log_start


def one_value_per_offset(book: Book) -> Iterator[str]:
    """I2: an offset has one value, for whoever and whenever."""
    for partition in book.partitions.values():
        known: dict[int, tuple[str, str]] = {}
        for offset, value, source in partition.places():
            first = known.setdefault(offset, (value, source))
            if first[0] != value:
                yield (
                    f"{partition.name}: offset {offset} is {first[0]!r} ({first[1]})"
                    f" and {value!r} ({source})"
                )


def one_offset_per_value(book: Book) -> Iterator[str]:
    """I3: what an idempotent producer sent stands at one offset."""
    for partition in book.partitions.values():
        for send, offsets in _doubled(partition):
            if send.outcome != "unknown":
                yield f"{partition.name}: {send.value!r} stands at {offsets}"


def unknown_is_there_once(book: Book) -> Iterator[str]:
    """I18: what ended unknown is there once or not at all."""
    for partition in book.partitions.values():
        for send, offsets in _doubled(partition):
            if send.outcome == "unknown":
                yield f"{partition.name}: {send.value!r}, given up, stands at {offsets}"


def _doubled(partition: PartitionBook) -> Iterator[tuple[Send, list[int]]]:
    for value, offsets in _offsets(partition).items():
        send = partition.sends.get(value)
        if len(offsets) > 1 and send is not None and send.invoked.idempotent:
            yield send, sorted(offsets)


def _offsets(partition: PartitionBook) -> dict[str, set[int]]:
    offsets: defaultdict[str, set[int]] = defaultdict(set)
    for offset, value, _ in partition.places():
        offsets[value].add(offset)
    return offsets


def order_of_sends(book: Book) -> Iterator[str]:
    """I4: an idempotent producer's records stand in the order in which it sent them.

    Also within what the log says itself: sequences of a producer id and epoch grow.
    """
    for partition in book.partitions.values():
        first = {value: min(offsets) for value, offsets in _offsets(partition).items()}
        last: dict[str, tuple[int, str]] = {}
        for value, send in partition.sends.items():
            if not send.invoked.idempotent or value not in first:
                continue
            before = last.get(send.invoked.process)
            if before is not None and first[value] <= before[0]:
                yield (
                    f"{partition.name}: {value!r} stands at {first[value]}, and {before[1]!r},"
                    f" which was sent before it, at {before[0]}"
                )
            last[send.invoked.process] = (first[value], value)
        yield from _order_of_sequences(partition)


def _order_of_sequences(partition: PartitionBook) -> Iterator[str]:
    last: dict[tuple[int, int], tuple[int, int]] = {}
    for event in sorted(partition.reads, key=lambda event: event.offset):
        if event.producer_id < 0 or event.sequence < 0:
            continue
        producer = (event.producer_id, event.producer_epoch)
        before = last.get(producer)
        if before is not None and event.sequence <= before[0]:
            yield (
                f"{partition.name}: sequence {event.sequence} of producer {producer[0]} at"
                f" {event.offset}, and {before[0]} before it at {before[1]}"
            )
        last[producer] = (event.sequence, event.offset)


def no_phantoms(book: Book) -> Iterator[str]:
    """I5: what is seen was sent, and what was refused is never seen."""
    for partition in book.partitions.values():
        told: set[str] = set()
        for event in (*partition.seen(), *partition.committed.seen()):
            value = event.value or ""
            if value in told:
                continue
            send = partition.sends.get(value)
            if send is None:
                told.add(value)
                yield f"{partition.name}: nobody sent {value!r}, which is at {event.offset}"
            elif send.outcome == "fail":
                told.add(value)
                yield f"{partition.name}: {value!r} was refused and is at {event.offset}"
