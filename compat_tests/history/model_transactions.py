"""The part of a good history that is about transactions: a bank, and a topic and its copy."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count

from compat_tests.history.events import Event

BANK = "bank"
SOURCE = "source"
COPY = "copy"
# By the partition that they are in.
ACCOUNTS = (("a", "b"), ("c", "d"))
TOTAL = 40
# How a transaction may end, and whether it is there afterwards.
ENDS = (
    *(("commit", "ok", True),) * 4,
    ("abort", "ok", False),
    ("commit", "unknown", True),
    ("commit", "unknown", False),
    ("crash", "", False),
)

Add = Callable[[Event], None]


class _Transactions:
    """Transactions one after the other, by a producer that crashes now and then.

    Attributes:
        logs: by topic and partition, each offset's value and whether it is committed; a marker has
            no value.
    """

    def __init__(self, chance: random.Random, add: Add) -> None:
        self.chance = chance
        self.add = add
        self.logs: dict[tuple[str, int], list[tuple[str | None, bool]]] = {}
        self.polled: dict[tuple[str, int], int] = {}
        self._numbers = count()
        self._generation = 0

    def run(self, sends: Sequence[Event], end: tuple[str, str, bool]) -> bool:
        """Send all of it in one transaction; return whether it is committed."""
        how, outcome, is_committed = end
        name = f"transaction {next(self._numbers)}"
        process = f"producer {self._generation}"
        for event in sends:
            invoked = replace(
                event,
                process=process,
                transaction=name,
                transactional_id="producer",
                generation=self._generation,
                idempotent=True,
            )
            self.add(invoked)
            log = self.logs.setdefault((event.topic, event.partition), [])
            self.add(replace(event, type="ok", process=process, offset=len(log)))
            log.append((event.value, is_committed))
        if how == "crash":
            self._generation += 1
        else:
            tried = Event("invoke", "transaction", process, transaction=name, name=how)
            self.add(tried)
            assert outcome in ("ok", "unknown")
            self.add(replace(tried, type="ok" if outcome == "ok" else "unknown"))
        for place in {(event.topic, event.partition) for event in sends}:
            self.logs[place].append((None, False))
        return is_committed

    def poll(self) -> None:
        """A consumer gets everything that is committed."""
        for (topic, partition), log in self.logs.items():
            for offset in range(self.polled.get((topic, partition), 0), len(log)):
                value, is_committed = log[offset]
                if value is not None and is_committed:
                    self.add(
                        Event(
                            "ok",
                            "poll",
                            "reader",
                            topic=topic,
                            partition=partition,
                            offset=offset,
                            value=value,
                            isolation="committed",
                        )
                    )
            self.polled[topic, partition] = len(log)
            self.add(
                Event(
                    "ok",
                    "watermarks",
                    topic=topic,
                    partition=partition,
                    leader_epoch=0,
                    last_stable=len(log),
                )
            )

    def read_all(self) -> None:
        for (topic, partition), log in self.logs.items():
            for isolation in ("", "committed"):
                end = Event(
                    "ok",
                    "end",
                    topic=topic,
                    partition=partition,
                    offset=len(log),
                    isolation=isolation,
                )
                for offset, (value, is_committed) in enumerate(log):
                    if value is not None and (is_committed or not isolation):
                        self.add(replace(end, action="read", offset=offset, value=value))
                self.add(end)


def run_transactions(chance: random.Random, add: Add) -> None:
    """Transfer money, and copy a topic, with everything that may happen at least once."""
    add(Event("ok", "topic", topic=BANK, total=TOTAL))
    add(Event("ok", "topic", topic=COPY, copy_of=SOURCE))
    transactions = _Transactions(chance, add)
    ends = [*ENDS, *chance.choices(ENDS, k=3)]
    chance.shuffle(ends)
    _transfer(transactions, ends)
    chance.shuffle(ends)
    _copy(transactions, ends)
    transactions.poll()
    transactions.read_all()


def _transfer(transactions: _Transactions, ends: Sequence[tuple[str, str, bool]]) -> None:
    chance = transactions.chance
    numbers = count()
    places = {name: index for index, names in enumerate(ACCOUNTS) for name in names}

    def send(account: str, amount: int) -> Event:
        return Event(
            "invoke",
            "send",
            topic=BANK,
            partition=places[account],
            key=account,
            amount=amount,
            value=f"{account}={amount} ({next(numbers)})",
        )

    balances = dict.fromkeys(places, TOTAL // len(places))
    transactions.run([send(*one) for one in balances.items()], ENDS[0])
    # Behind the last crash its successor writes at least twice to some partition.
    for end in (*ends, ENDS[0], ENDS[0]):
        one, other = chance.sample(sorted(balances), 2)
        moved = chance.randrange(1, 5)
        after = {one: balances[one] - moved, other: balances[other] + moved}
        if transactions.run([send(*each) for each in after.items()], end):
            balances |= after
        if chance.random() < 0.5:
            transactions.poll()


def _copy(transactions: _Transactions, ends: Sequence[tuple[str, str, bool]]) -> None:
    numbers = count()
    source = transactions.logs.setdefault((SOURCE, 0), [])
    for number in range(len(ends)):
        value = f"source {number}"
        sent = Event("invoke", "send", "writer", topic=SOURCE, value=value, idempotent=True)
        transactions.add(sent)
        transactions.add(replace(sent, type="ok", idempotent=False, offset=number))
        source.append((value, True))
    copied = 0
    for end in (*ends, ENDS[0]):
        size = len(ends) if end is ENDS[0] else transactions.chance.randrange(1, 3)
        taken = [value for value, _ in source[copied : copied + size]]
        if not taken:
            break
        sends = [
            Event("invoke", "send", topic=COPY, value=f"{value} ({next(numbers)})", origin=value)
            for value in taken
            if value is not None
        ]
        if transactions.run(sends, end):
            copied += len(taken)
