"""Writes of one producer go on in the order in which they came, whoever has to wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from klamm.broker.transactions.writes import TransactionalWrite, WriteStart
from klamm.coordinator.transaction.coordinator import ProducerIdentity
from klamm.log.producer_state import VerificationGuard


class Coordinators:
    """Stands for `Transactions`: asks nobody until it is told to."""

    def __init__(self) -> None:
        self.undecided: dict[str, deque[WriteStart]] = {}
        self.asked: list[Callable[[], None]] = []
        self.broker = SimpleNamespace(clock=SimpleNamespace(now_ms=lambda: 0))

    def when_not_ending(self, transactional_id: str, call: Callable[[], None]) -> None:
        self.asked.append(call)

    def shard_of(self, transactional_id: str) -> Any:
        return SimpleNamespace(
            coordinator=SimpleNamespace(add_partitions=lambda *_: None),
            when_durable=lambda call: call(),
        )


def write(guard: VerificationGuard | None) -> TransactionalWrite:
    producers = SimpleNamespace(start_verification=lambda *_, **__: guard)
    partition: Any = SimpleNamespace(topic="t", index=0, log=SimpleNamespace(producers=producers))
    return TransactionalWrite(partition)


def announce(coordinators: Any, needs_answer: bool, done: Callable[[], None]) -> None:
    start = WriteStart(coordinators, "id", ProducerIdentity(1, 0), add=True, done=done)
    start.start([write(VerificationGuard() if needs_answer else None)])


def test_who_needs_no_answer_does_not_overtake() -> None:
    coordinators = Coordinators()
    order: list[str] = []
    announce(coordinators, True, lambda: order.append("first"))
    announce(coordinators, True, lambda: order.append("second"))
    announce(coordinators, False, lambda: order.append("third"))
    first, second = coordinators.asked
    second()
    assert order == []
    first()
    assert order == ["first", "second", "third"]
    assert coordinators.undecided == {}


def test_who_comes_while_others_go_on_is_the_last() -> None:
    coordinators = Coordinators()
    order: list[str] = []

    def go_on() -> None:
        announce(coordinators, False, lambda: order.append("third"))
        order.append("first")

    announce(coordinators, True, go_on)
    announce(coordinators, False, lambda: order.append("second"))
    coordinators.asked[0]()
    assert order == ["first", "second", "third"]
    assert coordinators.undecided == {}


def test_alone_nobody_waits() -> None:
    order: list[str] = []
    announce(Coordinators(), False, lambda: order.append("only"))
    assert order == ["only"]
