"""What a history is checked for, by number; each rule says in its own words what must hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from compat_tests.history import broker, groups, reads, sends, transactions
from compat_tests.history.book import Book, open_book
from compat_tests.history.events import Event

Rule = Callable[[Book], Iterator[str]]

RULES: tuple[tuple[str, Rule], ...] = (
    ("I1 lost", sends.acknowledged_is_there),
    ("I2 two values", sends.one_value_per_offset),
    ("I3 doubled", sends.one_offset_per_value),
    ("I4 out of order", sends.order_of_sends),
    ("I5 phantom", sends.no_phantoms),
    ("I6 gap", reads.order_of_polls),
    ("I7 commit", groups.commits),
    ("I7 two owners", groups.one_owner),
    ("I8 watermark", reads.watermarks),
    ("I9 isolation", transactions.isolation),
    ("I9 all or none", transactions.all_or_none),
    ("I10 copy", transactions.copies),
    ("I11 money", transactions.totals),
    ("I12 zombie", transactions.fencing),
    ("I13 compaction", reads.compaction),
    ("I14 leader epoch", reads.leader_epochs),
    ("I15 replay", broker.replayed_state),
    ("I16 recovery", broker.offline_check),
    ("I17 liveness", broker.liveness),
    ("I18 unknown", sends.unknown_is_there_once),
)


def violations(events: Sequence[Event]) -> list[str]:
    """Return what is wrong with a history; an empty list when all rules are kept."""
    book = open_book(events)
    found = [f"history: {problem}" for problem in book.problems]
    for name, rule in RULES:
        found += [f"{name}: {what}" for what in rule(book)]
    return found
