"""A connection without a broker: a socket pair, a reactor, and a dispatcher that the test plays."""

from __future__ import annotations

import socket
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from klamm.broker.budget import MemoryBudget
from klamm.broker.connection import Connection, ReplySlot
from klamm.broker.reactor import Reactor

BUDGET_BYTES = 1024 * 1024
FRAME_BYTES_MAX = 512 * 1024


def framed(*bodies: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(body)) + body for body in bodies)


class Wired:
    """What the peer does, and what the broker saw of it.

    Attributes:
        frames: the frames that reached the dispatcher.
        slots: where their replies go, in the same order.
        closed: how often the connection said that it is closed.
    """

    def __init__(self, reactor: Reactor, budget: MemoryBudget) -> None:
        self.frames: list[bytes] = []
        self.slots: list[ReplySlot] = []
        self.closed = 0
        self.on_frame: Callable[[bytes, ReplySlot], None] = lambda frame, slot: None
        self.peer, ours = socket.socketpair()
        self.peer.setblocking(False)
        ours.setblocking(False)
        self.connection = Connection(
            ours,
            "the peer",
            "PLAINTEXT",
            reactor=reactor,
            dispatch=self._dispatch,
            budget=budget,
            frame_bytes_max=FRAME_BYTES_MAX,
            on_closed=self._on_closed,
        )

    def _dispatch(self, frame: memoryview, slot: ReplySlot) -> None:
        self.frames.append(bytes(frame))
        self.slots.append(slot)
        self.on_frame(self.frames[-1], slot)

    def _on_closed(self, connection: Connection) -> None:
        self.closed += 1

    def answer(self, number: int, *bodies: bytes) -> None:
        """Fill the slot of a request; without a body there is no reply."""
        self.slots[number].fill([framed(body) for body in bodies])

    async def send(self, data: bytes) -> None:
        """Send all of it, as far as the broker reads it, and let the broker do its part."""
        view = memoryview(data)
        while view:
            try:
                view = view[self.peer.send(view) :]
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self.peer)
        await settle()

    async def receive(self) -> bytes:
        """All that has come."""
        await settle()
        parts = []
        while True:
            try:
                part = self.peer.recv(65_536)
            except BlockingIOError:
                break
            if not part:
                break
            parts.append(part)
            await settle()
        return b"".join(parts)

    def is_hung_up(self) -> bool:
        try:
            return self.peer.recv(1) == b""
        except BlockingIOError:
            return False
        except ConnectionError:
            return True


async def settle() -> None:
    """Wait until nothing moves any more."""
    await wait_all_tasks_blocked()


@asynccontextmanager
async def wired(budget: MemoryBudget | None = None) -> AsyncIterator[Wired]:
    async with wired_many(1, budget) as connections:
        yield connections[0]


@asynccontextmanager
async def wired_many(
    count: int, budget: MemoryBudget | None = None
) -> AsyncIterator[Sequence[Wired]]:
    """Connections that share a reactor and a budget."""
    reactor = Reactor()
    budget = budget or MemoryBudget(BUDGET_BYTES)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(reactor.run)
        connections = [Wired(reactor, budget) for _ in range(count)]
        yield connections
        for each in connections:
            each.connection.close()
            each.peer.close()
        nursery.cancel_scope.cancel()
    reactor.close()
    # However it went, nothing is kept back.
    assert budget.bytes_reserved == 0


class FakeFile:
    """A range of a file, as a fetch hands it over."""

    def __init__(self, file: Any, position: int, size: int, released: list[object]) -> None:
        self._file = file
        self.position = position
        self.size = size
        self._released = released

    def __len__(self) -> int:
        return self.size

    def fileno(self) -> int:
        number: int = self._file.fileno()
        return number

    def __getitem__(self, part: slice) -> FakeFile:
        start, stop, _ = part.indices(self.size)
        return FakeFile(self._file, self.position + start, stop - start, self._released)

    def release(self) -> None:
        self._released.append(self._file)
