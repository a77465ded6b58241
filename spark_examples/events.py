"""The shop: orders, payments and changes of customers, each a function of a seed and a number.

Time goes by in blocks of 400 seconds. A block is the list of the events that arrive in it, in the
order of arrival; it can be made alone, so that every task of Spark makes its own and a check makes
the same once more. As in life, arrival is not occurrence:

- an order or payment arrives some seconds after its event time, one in ten up to ten minutes late;
- one in fifty arrives twice, with the same id;
- a payment follows its order by up to half an hour, and some orders are never paid;
- changes of a customer keep their order, as a database's log does; some are deletions.

Nobody orders much at night.
"""

from __future__ import annotations

import functools
import json
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

BLOCK_MS = 400_000
DAY_MS = 86_400_000
START_MS = 1_767_225_600_000
"""2026-01-01 in UTC, where every shop opens."""

ORDERS_PER_BLOCK_MAX = 140
CHANGES_PER_BLOCK = 20
CUSTOMERS = 2_000
LATE_MS_MAX = 600_000
PAYMENT_MS_MAX = 1_800_000
DOUBLED_MS_MAX = 60_000

# An event is in the block of its event time, or in one of so many behind it.
BLOCKS_BEHIND = 1 + (LATE_MS_MAX + PAYMENT_MS_MAX + DOUBLED_MS_MAX) // BLOCK_MS

CITIES = ("Bern", "Brig", "Chur", "Genf", "Sion", "Thun", "Zug")
PRODUCTS = ("rope", "boots", "map", "lamp", "stove", "tent")

ORDERS, PAYMENTS, CUSTOMER_CHANGES = "orders", "payments", "customers"


@dataclass(frozen=True, slots=True)
class Event:
    """One record to be: `stream` is the topic without its prefix; no value is a tombstone."""

    stream: str
    key: str
    value: str | None
    headers: tuple[tuple[str, bytes], ...]


def block_events(seed: int, block: int) -> Iterator[Event]:
    """All events that arrive in a block, in the order of their arrival."""
    begin = START_MS + block * BLOCK_MS
    arrivals = [
        (arrival, event)
        for earlier in range(max(0, block - BLOCKS_BEHIND), block + 1)
        for arrival, event in _sales(seed, earlier)
        if begin <= arrival < begin + BLOCK_MS
    ]
    arrivals.extend(_customer_changes(seed, block))
    arrivals.sort(key=lambda one: one[0])
    return (event for _, event in arrivals)


@functools.lru_cache(maxsize=2 * BLOCKS_BEHIND)
def _sales(seed: int, block: int) -> tuple[tuple[int, Event], ...]:
    """Orders of a block and their payments, each with the time of its arrival."""
    chance = random.Random(f"{seed}/{block}")
    arrivals: list[tuple[int, Event]] = []

    def arrive(time_ms: int, event: Event) -> None:
        late = chance.random() < 0.1
        arrival = time_ms + chance.randrange(LATE_MS_MAX if late else 5_000)
        arrivals.append((arrival, event))
        if chance.random() < 0.02:
            arrivals.append((arrival + chance.randrange(DOUBLED_MS_MAX), event))

    for number in range(ORDERS_PER_BLOCK_MAX):
        time_ms = START_MS + block * BLOCK_MS + number * BLOCK_MS // ORDERS_PER_BLOCK_MAX
        if chance.random() > _demand(time_ms):
            continue
        order_id = f"o-{block}-{number}"
        amount = chance.randrange(500, 20_000)
        order = {
            "order_id": order_id,
            "customer_id": f"c-{chance.randrange(CUSTOMERS)}",
            "product": chance.choice(PRODUCTS),
            "amount_cents": amount,
            "event_time_ms": time_ms,
        }
        arrive(time_ms, _event(ORDERS, order_id, order, order_id))
        if chance.random() < 0.95:
            paid_ms = time_ms + chance.randrange(1, PAYMENT_MS_MAX)
            payment = {
                "payment_id": f"p-{block}-{number}",
                "order_id": order_id,
                "amount_cents": amount,
                "event_time_ms": paid_ms,
            }
            arrive(paid_ms, _event(PAYMENTS, order_id, payment, f"p-{block}-{number}"))
    return tuple(arrivals)


def _customer_changes(seed: int, block: int) -> Iterator[tuple[int, Event]]:
    chance = random.Random(f"{seed}/customers/{block}")
    for number in range(CHANGES_PER_BLOCK):
        time_ms = START_MS + block * BLOCK_MS + number * BLOCK_MS // CHANGES_PER_BLOCK
        customer_id = f"c-{chance.randrange(CUSTOMERS)}"
        change = {
            "customer_id": customer_id,
            "name": f"customer {chance.randrange(10_000)}",
            "city": chance.choice(CITIES),
            "event_time_ms": time_ms,
        }
        deleted = chance.random() < 0.1
        change_id = f"{customer_id}@{time_ms}"
        yield time_ms, _event(CUSTOMER_CHANGES, customer_id, None if deleted else change, change_id)


def _event(stream: str, key: str, value: dict[str, object] | None, identity: str) -> Event:
    headers = (("event-id", identity.encode()), ("source", b"shop"))
    return Event(stream, key, None if value is None else json.dumps(value), headers)


def _demand(time_ms: int) -> float:
    """Between 0.1 at four in the morning and 1.0 at four in the afternoon."""
    return 0.55 - 0.45 * math.cos(2 * math.pi * (time_ms / DAY_MS - 4 / 24))
