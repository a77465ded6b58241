"""A bank: transfers money between its accounts, each transfer in a transaction.

    python -m compat_tests.transactions.bank BOOTSTRAP TOPIC PARTITIONS BANK GENERATION LIBRARY

A record is an account's new balance. A bank reads its balances when it begins, once nobody else can
write with its transactional id any more, and keeps them in memory from then on: whoever writes
behind its back, and whatever it reads that was not committed, makes the sum wrong for ever.
"""

from __future__ import annotations

import random
import sys

from compat_tests.clients.java_client import JavaProcess
from compat_tests.clients.model import READ_COMMITTED
from compat_tests.history.events import Event
from compat_tests.transactions.libraries import Java, Library, library_named
from compat_tests.transactions.reading import read_topic
from compat_tests.transactions.scope import Identity, Scope, content
from compat_tests.transactions.telling import die, stop_when_asked, stopping, tell_ready

ACCOUNTS_PER_BANK = 6
OPENING_BALANCE = 100
TRANSACTION_TIMEOUT_MS = 8_000
ABORTED_OF_TEN = 1


def accounts_of(bank: str) -> list[str]:
    return [f"{bank} {number}" for number in range(ACCOUNTS_PER_BANK)]


def main(
    bootstrap: str, topic: str, partitions: str, bank: str, generation: str, library: str
) -> None:
    stop_when_asked()
    identity = Identity(bank, int(generation))
    chance = random.Random(f"{bank} {generation}")
    numbers = range(int(partitions))
    homes = {account: at % len(numbers) for at, account in enumerate(accounts_of(bank))}
    try:
        producer = find_library(library).open(bootstrap, bank, TRANSACTION_TIMEOUT_MS)
        tell_ready()
        balances: dict[str, int] = {}
        for _, _, value in read_topic(bootstrap, topic, numbers, READ_COMMITTED):
            name, balance = content(value).split("=")
            if name in homes:
                balances[name] = int(balance)
        while not stopping.is_set():
            if balances:
                after = transfer(balances, chance)
            else:
                after = dict.fromkeys(homes, OPENING_BALANCE)
            scope = Scope(producer, identity)
            for account, amount in after.items():
                place = Event(
                    "invoke",
                    "send",
                    topic=topic,
                    partition=homes[account],
                    key=account,
                    amount=amount,
                )
                scope.send(place, f"{account}={amount}")
            if balances and chance.randrange(10) < ABORTED_OF_TEN:
                scope.abort()
            else:
                scope.commit()
                balances |= after
    except Exception as error:
        die(repr(error))


def find_library(name: str) -> Library:
    """Java gets a process of this bank alone, which ends when this one does."""
    return Java(JavaProcess()) if name == Java.name else library_named(name)


def transfer(balances: dict[str, int], chance: random.Random) -> dict[str, int]:
    one, other = chance.sample(sorted(balances), 2)
    moved = chance.randrange(1, 10)
    return {one: balances[one] - moved, other: balances[other] + moved}


if __name__ == "__main__":
    main(*sys.argv[1:])
