"""A listener without a broker, in virtual time: deadlines of minutes pass in no time."""

from __future__ import annotations

import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio

from klamm.broker.budget import MemoryBudget
from klamm.broker.config import load
from klamm.broker.connection import Connection, ReplySlot
from klamm.broker.listener import Listener, bind
from klamm.broker.reactor import Reactor
from klamm.broker.timers import Timers

PATIENCE_S = 10.0


class Listening:
    """What a listener needs of a broker; requests are kept and answered by the test."""

    def __init__(self, properties: dict[str, str], listeners: int) -> None:
        self.config = load(None, {"listeners": "PLAINTEXT://127.0.0.1:0", **properties})
        self.budget = MemoryBudget(1024 * 1024)
        self.reactor = Reactor()
        self.timers = Timers()
        self.slots: list[ReplySlot] = []
        self.on_request: Callable[[ReplySlot], None] = lambda slot: None
        self.listeners: list[Listener] = []
        broker: Any = self
        for number in range(listeners):
            sock = bind("127.0.0.1", 0)
            self.listeners.append(Listener(f"LISTENER{number}", sock, broker))

    def dispatcher(self, frame: memoryview, slot: ReplySlot) -> None:
        self.slots.append(slot)
        self.on_request(slot)

    @property
    def connections(self) -> set[Connection]:
        return set().union(*(listener.connections for listener in self.listeners))

    def connect(self, number: int = 0, **options: int) -> socket.socket:
        peer = socket.socket()
        if "receive_buffer" in options:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, options["receive_buffer"])
        peer.settimeout(PATIENCE_S)
        peer.connect(("127.0.0.1", self.listeners[number].port))
        return peer

    async def accept(self, number: int = 0, **options: int) -> tuple[socket.socket, Connection]:
        """Connect, and wait until the listener has taken the connection."""
        before = self.connections
        peer = self.connect(number, **options)
        await until(lambda: len(self.connections) > len(before))
        (connection,) = self.connections - before
        return peer, connection


async def until(condition: Callable[[], bool]) -> None:
    """Wait in real time, while the virtual clock stands still."""
    gives_up_at = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < gives_up_at, "it did not happen"
        time.sleep(0.0005)  # noqa: ASYNC251 - a task that sleeps in trio would let the clock jump
        await trio.lowlevel.checkpoint()


@asynccontextmanager
async def listening(
    properties: dict[str, str] | None = None, *, listeners: int = 1
) -> AsyncIterator[Listening]:
    broker = Listening(properties or {}, listeners)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(broker.reactor.run)
        nursery.start_soon(broker.timers.run)
        for listener in broker.listeners:
            nursery.start_soon(listener.watch)
        yield broker
        nursery.cancel_scope.cancel()
    for listener in broker.listeners:
        listener.close()
    broker.reactor.close()
    assert broker.budget.bytes_reserved == 0
