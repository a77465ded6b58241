"""What one connection can cost: replies owed, bytes unsent, bodies that wait for memory."""

from __future__ import annotations

import struct
import tempfile
from functools import partial

import pytest

from klamm.broker import connection as connection_module
from klamm.broker.budget import MemoryBudget
from klamm.broker.connection import (
    CHUNKS_AT_ONCE_MAX,
    PIPELINE_MAX,
    UNRESERVED_BYTES_MAX,
    UNSENT_BYTES_MAX,
    UNSENT_MEMORY_MAX,
)
from klamm.broker.reactor import READABLE, RECEIVE_BYTES
from klamm.broker.tests.in_trio import in_trio
from klamm.broker.tests.wired import (
    BUDGET_BYTES,
    FRAME_BYTES_MAX,
    FakeFile,
    Wired,
    framed,
    settle,
    wired,
    wired_many,
)

LARGE = b"x" * (UNRESERVED_BYTES_MAX * 2)


@in_trio
async def test_no_more_requests_are_handled_than_replies_may_be_owed() -> None:
    bodies = [b"%d" % number for number in range(PIPELINE_MAX * 2 + 5)]
    async with wired() as wire:
        await wire.send(framed(*bodies))
        assert wire.frames == bodies[:PIPELINE_MAX]
        # One answer makes room for one request.
        wire.answer(0, b"first")
        await settle()
        assert wire.frames == bodies[: PIPELINE_MAX + 1]
        # An answer whose turn has not come makes no room.
        wire.answer(5, b"sixth")
        await settle()
        assert wire.frames == bodies[: PIPELINE_MAX + 1]
        for number in [*range(1, 5), *range(6, PIPELINE_MAX + 1)]:
            wire.answer(number, b"x")
        await settle()
        assert wire.frames == bodies[: PIPELINE_MAX * 2 + 1]


@in_trio
async def test_a_reply_in_many_pieces_leaves_room_for_others() -> None:
    """Each of them is a system call: a fetch of thousands of partitions has as many."""
    pieces = [b"%d," % number for number in range(CHUNKS_AT_ONCE_MAX * 3)]
    async with wired() as wire:
        await wire.send(framed(b"request"))
        wire.slots[0].fill(pieces)
        assert wire.peer.recv(65_536) == b"".join(pieces[:CHUNKS_AT_ONCE_MAX])
        assert await wire.receive() == b"".join(pieces[CHUNKS_AT_ONCE_MAX:])
        assert wire.connection.is_idle


async def send_until_blocked(wire: Wired, data: bytes) -> None:
    """Send again and again, until nobody takes it any more."""
    for _ in range(100_000):
        try:
            wire.peer.send(data)
        except BlockingIOError:
            return
        await settle()
    raise AssertionError("all of it was taken")


@in_trio
async def test_a_peer_that_is_not_read_is_held_back_by_tcp() -> None:
    async with wired() as wire:
        requests = framed(*[b"x" * 1000] * PIPELINE_MAX)
        await wire.send(requests)
        assert len(wire.frames) == PIPELINE_MAX
        await send_until_blocked(wire, requests)
        # Not more than the kernel holds and one read.
        assert wire.connection.partial_frame_bytes <= RECEIVE_BYTES
        assert len(wire.frames) == PIPELINE_MAX
        for number in range(PIPELINE_MAX):
            wire.answer(number)
        await settle()
        assert len(wire.frames) == PIPELINE_MAX * 2


@in_trio
async def test_a_peer_that_sends_and_never_reads_stays_bounded() -> None:
    reply = b"r" * 100_000
    async with wired() as wire:
        wire.on_frame = lambda frame, slot: slot.fill([framed(reply)])
        await send_until_blocked(wire, framed(*[b"request" * 20] * 50))
        # One reply may bring it over the limit, no second one.
        assert wire.connection._unsent_memory > UNSENT_MEMORY_MAX
        assert wire.connection._unsent_memory <= UNSENT_MEMORY_MAX + len(framed(reply))
        handled = len(wire.frames)
        # It goes on as soon as the peer reads.
        received = await wire.receive()
        assert len(received) > handled * len(reply)
        assert len(wire.frames) > handled


@in_trio
async def test_files_that_are_not_taken_count_by_their_size() -> None:
    size = UNSENT_BYTES_MAX // 2
    released: list[object] = []
    with tempfile.TemporaryFile() as file:
        file.truncate(size)
        async with wired() as wire:
            wire.on_frame = lambda frame, slot: slot.fill(
                [b"begin", FakeFile(file, 0, size, released)]
            )
            await wire.send(framed(*[b"fetch"] * 10))
            # The kernel takes a part of the first, the third brings it over the limit.
            assert len(wire.frames) == 3
            wire.peer.close()
            await settle()
    assert len(released) == 3


@in_trio
async def test_replies_that_wait_for_their_turn_count_too() -> None:
    async with wired() as wire:

        def answer_all_but_the_first(frame: bytes, slot: connection_module.ReplySlot) -> None:
            if frame != b"first":
                slot.fill([framed(b"r" * (UNSENT_MEMORY_MAX // 4))])

        wire.on_frame = answer_all_but_the_first
        await wire.send(framed(b"first", *[b"next"] * 20))
        assert len(wire.frames) == 5
        wire.answer(0, b"at last")
        await wire.receive()
        assert len(wire.frames) == 21


@in_trio
async def test_room_for_a_large_body_is_reserved_before_it_is_read() -> None:
    budget = MemoryBudget(BUDGET_BYTES)
    async with wired(budget) as wire:
        await wire.send(struct.pack(">i", len(LARGE)) + LARGE[:10])
        assert budget.bytes_reserved == len(LARGE)
        assert wire.frames == []
        await wire.send(LARGE[10:])
        assert wire.frames == [LARGE]
        # It is given back with the reply, because the request may point into it until then.
        assert budget.bytes_reserved == len(LARGE)
        wire.answer(0, b"done")
        await settle()
        assert budget.bytes_reserved == 0


@in_trio
async def test_a_body_without_room_waits_while_others_go_on() -> None:
    budget = MemoryBudget(len(LARGE))
    async with wired_many(3, budget) as (first, second, third):
        await first.send(framed(LARGE))
        # It is not read: what the kernel does not hold stays with the peer.
        second.peer.send(struct.pack(">i", len(LARGE)) + LARGE[:1000])
        await settle()
        await third.send(framed(b"small"))
        assert (first.frames, second.frames, third.frames) == ([LARGE], [], [b"small"])
        assert second.connection._body is None
        first.answer(0, b"done")
        await settle()
        await second.send(LARGE[1000:])
        assert second.frames == [LARGE]
        assert budget.bytes_reserved == len(LARGE)
        second.answer(0, b"done")


@in_trio
async def test_an_event_that_came_before_the_wait_for_room_reads_nothing() -> None:
    """Events are served some time after the kernel has reported them."""
    budget = MemoryBudget(len(LARGE))
    async with wired(budget) as wire:
        assert budget.reserve(len(LARGE), lambda: None)
        await wire.send(framed(LARGE)[:1000])
        wire.peer.send(framed(LARGE)[1000:2000])
        wire.connection.on_events(READABLE)
        budget.release(len(LARGE))
        await wire.send(framed(LARGE)[2000:])
        assert wire.frames == [LARGE]


@in_trio
async def test_bodies_get_room_in_the_order_in_which_they_asked() -> None:
    budget = MemoryBudget(len(LARGE))
    order: list[int] = []

    def note(number: int, frame: bytes, slot: connection_module.ReplySlot) -> None:
        order.append(number)

    async with wired_many(5, budget) as wires:
        for number, wire in enumerate(wires):
            wire.on_frame = partial(note, number)
            wire.peer.send(framed(LARGE)[:50_000])
            await settle()
        for wire in wires:
            await wire.send(framed(LARGE)[50_000:])
            wire.answer(0, b"done")
            await settle()
    assert order == [0, 1, 2, 3, 4]


@in_trio
async def test_one_that_goes_while_it_waits_makes_room_for_the_next() -> None:
    budget = MemoryBudget(len(LARGE))
    async with wired_many(3, budget) as (first, second, third):
        await first.send(framed(LARGE))
        for wire in (second, third):
            wire.peer.send(framed(LARGE)[:1000])
            await settle()
        second.connection.close()
        first.answer(0, b"done")
        await settle()
        await third.send(framed(LARGE)[1000:])
        assert third.frames == [LARGE]
        assert second.frames == []


@in_trio
async def test_one_that_goes_with_half_a_body_gives_its_room_back() -> None:
    budget = MemoryBudget(BUDGET_BYTES)
    async with wired(budget) as wire:
        await wire.send(framed(LARGE)[:-1])
        assert budget.bytes_reserved == len(LARGE)
        wire.peer.close()
        await settle()
        assert wire.connection.closed
        assert budget.bytes_reserved == 0


@in_trio
async def test_one_that_goes_before_its_answer_gives_its_room_back() -> None:
    budget = MemoryBudget(BUDGET_BYTES)
    async with wired(budget) as wire:
        await wire.send(framed(LARGE, LARGE))
        assert budget.bytes_reserved == 2 * len(LARGE)
        wire.peer.close()
        await settle()
        assert budget.bytes_reserved == 0


@in_trio
async def test_a_body_larger_than_the_whole_budget_is_served_alone() -> None:
    budget = MemoryBudget(len(LARGE) // 2)
    async with wired_many(2, budget) as (first, second):
        await first.send(framed(LARGE))
        assert first.frames == [LARGE]
        second.peer.send(framed(LARGE)[:1000])
        await settle()
        assert second.connection._body is None
        first.answer(0, b"done")
        await settle()
        await second.send(framed(LARGE)[1000:])
        assert second.frames == [LARGE]


@in_trio
async def test_a_whole_body_waits_for_memory_and_those_behind_it_for_their_turn() -> None:
    """It came with one call, together with what follows."""
    budget = MemoryBudget(len(LARGE))
    async with wired_many(2, budget) as (first, second):
        await first.send(framed(LARGE))
        await second.send(framed(b"before", LARGE, b"behind"))
        assert second.frames == [b"before"]
        assert not second.connection.is_idle
        first.answer(0, b"done")
        await settle()
        assert second.frames == [b"before", LARGE, b"behind"]
        assert budget.bytes_reserved == len(LARGE)
        for number in range(3):
            second.answer(number, b"%d" % number)
        assert await second.receive() == framed(b"0", b"1", b"2")


@in_trio
async def test_a_connection_that_closes_between_its_grant_and_its_turn_gives_the_room_back() -> (
    None
):
    budget = MemoryBudget(len(LARGE))
    async with wired_many(2, budget) as (first, second):
        await first.send(framed(LARGE))
        await second.send(framed(LARGE))
        first.answer(0, b"done")
        second.connection.close()
        await settle()
        assert second.frames == []
        assert budget.bytes_reserved == 0


@in_trio
async def test_small_bodies_need_no_reservation() -> None:
    budget = MemoryBudget(1)
    async with wired(budget) as wire:
        await wire.send(framed(b"x" * (UNRESERVED_BYTES_MAX - 4), b"y" * UNRESERVED_BYTES_MAX))
        assert [len(frame) for frame in wire.frames] == [
            UNRESERVED_BYTES_MAX - 4,
            UNRESERVED_BYTES_MAX,
        ]
        assert budget.bytes_reserved == 0


@in_trio
async def test_a_declared_size_alone_costs_nothing_until_there_is_room() -> None:
    """Many peers that declare much and send nothing."""
    budget = MemoryBudget(FRAME_BYTES_MAX)
    async with wired_many(50, budget) as wires:
        for wire in wires:
            await wire.send(struct.pack(">i", FRAME_BYTES_MAX))
        assert budget.bytes_reserved == FRAME_BYTES_MAX
        assert sum(wire.connection._body is not None for wire in wires) == 1


@in_trio
async def test_requests_that_wait_for_their_turn_are_not_piled_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("klamm.broker.reactor.TURN_SECONDS_MAX", 0.0)
    async with wired() as wire:
        waiting: list[int] = []

        def handle(frame: bytes, slot: connection_module.ReplySlot) -> None:
            waiting.append(len(wire.connection._buffer))
            slot.fill(())

        wire.on_frame = handle
        await wire.send(framed(*[b"x" * 1000] * 2000))
        assert len(wire.frames) == 2000
        assert max(waiting) <= 2 * RECEIVE_BYTES


@in_trio
async def test_a_peer_with_many_requests_lets_others_have_their_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("klamm.broker.reactor.TURN_SECONDS_MAX", 0.0)
    order: list[str] = []
    async with wired_many(2) as (busy, quiet):

        def handle_busy(frame: bytes, slot: connection_module.ReplySlot) -> None:
            if len(order) == 3:
                quiet.peer.send(framed(b"quiet"))
            order.append("busy")
            slot.fill([framed(b"done")])

        busy.on_frame = handle_busy
        quiet.on_frame = lambda frame, slot: order.append("quiet")
        await busy.send(framed(*[b"busy"] * 50))
        assert order.count("busy") == 50
        # It was not the last to be served, by far.
        assert order.index("quiet") < 10
        assert await busy.receive() == framed(*[b"done"] * 50)
