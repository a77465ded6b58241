"""How much a history gives to each rule: a rule that has nothing to judge finds nothing wrong.

`fed` counts for each rule the things that it has judged, so that a test which claims that a promise
was kept can show that it was put to the test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from compat_tests.history.book import Book, PartitionBook, Send, open_book
from compat_tests.history.events import Event

Feed = Callable[[Book], int]


def fed(events: Sequence[Event]) -> Counter[str]:
    """Return for each rule, by its name in rules.py, how many things a history lets it judge."""
    book = open_book(events)
    return Counter({name: count(book) for name, count in FEEDS.items()})


def unfed(events: Sequence[Event], rules: Iterable[str]) -> list[str]:
    """Return those of the rules that a history gives nothing to."""
    counts = fed(events)
    return [rule for rule in rules if not counts[rule]]


def _in_partitions(count: Callable[[PartitionBook], int]) -> Feed:
    return lambda book: sum(count(partition) for partition in book.partitions.values())


def _events(matches: Callable[[Event], bool]) -> Feed:
    return lambda book: sum(1 for event in book.events if matches(event))


def _acknowledged(partition: PartitionBook) -> int:
    """What was acknowledged where the log was read at the end."""
    if partition.end is None:
        return 0
    return sum(send.is_acknowledged for send in partition.sends.values())


def _told_twice(partition: PartitionBook) -> int:
    """Offsets of which two have told the value."""
    told = Counter(offset for offset, _, _ in partition.places())
    return sum(count > 1 for count in told.values())


def _placed(partition: PartitionBook) -> list[Send]:
    """What idempotent producers sent and somebody has seen."""
    there = {value for _, value, _ in partition.places()}
    return [
        send for send in partition.sends.values() if send.invoked.idempotent and send.value in there
    ]


def _seen(partition: PartitionBook) -> int:
    return sum(1 for _ in (*partition.seen(), *partition.committed.seen()))


_MARKS = ("log_start", "last_stable", "high_watermark")


def _marks_that_moved(partition: PartitionBook) -> int:
    """Of the three marks, the one that moved least within the epochs of leaders: how often."""
    moves = Counter(dict.fromkeys(_MARKS, 0))
    last: dict[tuple[int, str], int] = {}
    for event in partition.watermarks:
        for name in _MARKS:
            mark, key = getattr(event, name), (event.leader_epoch, name)
            moves[name] += mark > last.get(key, mark)
            last[key] = max(mark, last.get(key, mark))
    return min(moves.values())


def _compacted_away(partition: PartitionBook) -> int:
    """What was acknowledged in a compacted topic and is gone at the end."""
    if not partition.is_compacted or partition.end is None:
        return 0
    there = {event.offset for event in partition.reads}
    return sum(
        send.is_acknowledged and send.offset >= 0 and send.offset not in there
        for send in partition.sends.values()
    )


def _unknown(partition: PartitionBook) -> int:
    return sum(send.outcome == "unknown" for send in partition.sends.values())


def _whole_transactions(book: Book) -> int:
    """Transactions of several records, in partitions that were read at the end."""
    read = {
        key for key, partition in book.partitions.items() if partition.committed.end is not None
    }
    return sum(
        len([1 for send in one.sends if (send.invoked.topic, send.invoked.partition) in read]) > 1
        for one in book.transactions.values()
    )


def _copied(book: Book) -> int:
    copies = {event.topic for event in book.events if event.action == "topic" and event.copy_of}
    return _committed_reads(book, copies)


def _summed(book: Book) -> int:
    bank = {event.topic for event in book.events if event.action == "topic" and event.total >= 0}
    return _committed_reads(book, bank)


def _committed_reads(book: Book, topics: set[str]) -> int:
    return sum(len(one.committed.reads) for one in book.partitions.values() if one.topic in topics)


def _successors(partition: PartitionBook) -> int:
    """How often a process has written that came after another with its transactional id."""
    first: dict[str, int] = {}
    found = 0
    for event in partition.reads:
        send = partition.sends.get(event.value or "")
        if send is not None and send.invoked.transactional_id:
            name, generation = send.invoked.transactional_id, send.invoked.generation
            found += generation > first.setdefault(name, generation)
    return found


def _is_owned(event: Event) -> bool:
    return event.action == "assign" and event.group != "" and event.generation >= 0


FEEDS: dict[str, Feed] = {
    "I1 lost": _in_partitions(_acknowledged),
    "I2 two values": _in_partitions(_told_twice),
    "I3 doubled": _in_partitions(lambda partition: len(_placed(partition))),
    "I4 out of order": _in_partitions(lambda partition: max(len(_placed(partition)) - 1, 0)),
    "I5 phantom": _in_partitions(_seen),
    "I6 gap": _in_partitions(lambda partition: max(len(partition.polls) - 1, 0)),
    "I7 commit": _events(lambda event: event.action == "committed" and event.offset >= 0),
    "I7 two owners": _events(_is_owned),
    "I8 watermark": _in_partitions(_marks_that_moved),
    "I9 isolation": _in_partitions(lambda partition: len(partition.committed.polls)),
    "I9 all or none": _whole_transactions,
    "I10 copy": _copied,
    "I11 money": _summed,
    "I12 zombie": _in_partitions(_successors),
    "I13 compaction": _in_partitions(_compacted_away),
    "I14 leader epoch": _events(lambda event: event.action == "poll" and event.leader_epoch > 0),
    "I15 replay": _events(lambda event: event.action == "state" and event.phase == "replayed"),
    "I16 recovery": _events(lambda event: event.action == "check"),
    "I17 liveness": _events(lambda event: event.action == "fault" and event.type == "ok"),
    "I18 unknown": _in_partitions(_unknown),
}
