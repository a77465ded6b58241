"""Replies leave in the order of requests, whenever they are ready."""

from __future__ import annotations

import socket
import tempfile
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.broker.connection import PIPELINE_MAX
from klamm.broker.tests.in_trio import in_trio
from klamm.broker.tests.wired import FakeFile, framed, settle, wired


@in_trio
async def test_a_reply_that_is_ready_early_waits_for_its_turn() -> None:
    async with wired() as wire:
        await wire.send(framed(b"slow", b"quick", b"none", b"quick too"))
        wire.answer(3, b"quick too")
        wire.answer(2)
        wire.answer(1, b"quick")
        assert await wire.receive() == b""
        wire.answer(0, b"slow")
        assert await wire.receive() == framed(b"slow", b"quick", b"quick too")


@given(st.permutations(range(12)), st.sets(st.integers(0, 11)))
def test_any_order_of_completion(order: list[int], without_reply: set[int]) -> None:
    bodies = [b"%d" % number for number in range(12)]

    @in_trio
    async def run() -> None:
        async with wired() as wire:
            await wire.send(framed(*bodies))
            received = b""
            done: set[int] = set()
            for number in order:
                if number in without_reply:
                    wire.answer(number)
                else:
                    wire.answer(number, bodies[number])
                done.add(number)
                received += await wire.receive()
                ready = next(each for each in range(13) if each not in done)
                expected = [bodies[each] for each in range(ready) if each not in without_reply]
                assert received == framed(*expected)

    run()


@pytest.mark.interpreted
@in_trio
async def test_replies_that_are_ready_together_leave_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("klamm.broker.reactor.TURN_SECONDS_MAX", 60.0)
    async with wired() as wire:
        wire.on_frame = lambda frame, slot: slot.fill([framed(frame)])
        sends: list[str] = []
        send = wire.connection._send

        def count_and_send() -> None:
            sends.append("once")
            send()

        monkeypatch.setattr(wire.connection, "_send", count_and_send)
        await wire.send(framed(*[b"x"] * 20))
        assert await wire.receive() == framed(*[b"x"] * 20)
        assert sends == ["once"]


@in_trio
async def test_a_request_on_hold_keeps_later_ones_from_being_handled() -> None:
    async with wired() as wire:

        def hold_the_first(frame: bytes, slot: object) -> None:
            if frame == b"barrier":
                wire.connection.hold()

        wire.on_frame = hold_the_first
        await wire.send(framed(b"before", b"barrier", b"after"))
        await wire.send(framed(b"later"))
        assert wire.frames == [b"before", b"barrier"]
        wire.answer(1, b"done")
        await settle()
        assert wire.frames == [b"before", b"barrier"]
        wire.connection.proceed()
        await settle()
        assert wire.frames == [b"before", b"barrier", b"after", b"later"]


@in_trio
async def test_two_holds_need_two_proceeds() -> None:
    async with wired() as wire:
        wire.connection.hold()
        wire.connection.hold()
        await wire.send(framed(b"first", b"second"))
        wire.connection.proceed()
        await settle()
        assert wire.frames == []
        wire.connection.proceed()
        await settle()
        assert wire.frames == [b"first", b"second"]


@in_trio
async def test_what_waits_when_the_connection_goes_is_told() -> None:
    told: list[int] = []
    async with wired() as wire:
        await wire.send(framed(b"0", b"1", b"2"))
        for number in (0, 2):
            wire.slots[number].on_close = partial(told.append, number)
        wire.answer(1, b"ready")
        wire.peer.close()
        await settle()
        assert told == [0, 2]
        wire.answer(0, b"nobody reads this")
        wire.answer(2, b"nor this")
    assert told == [0, 2]


@in_trio
async def test_files_are_sent_between_bytes_and_given_back() -> None:
    content = bytes(range(256)) * 4096
    released: list[object] = []
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        async with wired() as wire:
            await wire.send(framed(b"fetch"))
            wire.slots[0].fill([b"begin", FakeFile(file, 0, len(content), released), b"end"])
            assert await wire.receive() == b"begin" + content + b"end"
            assert released == [file]


@in_trio
async def test_files_of_replies_that_are_never_sent_are_given_back() -> None:
    released: list[object] = []
    with tempfile.TemporaryFile() as file:
        file.write(b"x" * 1024)
        file.flush()
        async with wired() as wire:
            await wire.send(framed(b"0", b"1", b"2"))
            # Behind one that is not ready, and one that comes after the end.
            wire.slots[1].fill([b"begin", FakeFile(file, 0, 1024, released)])
            wire.peer.close()
            await settle()
            assert released == [file]
            wire.slots[2].fill([b"begin", FakeFile(file, 0, 1024, released)])
            assert released == [file, file]


@in_trio
async def test_a_file_that_is_half_sent_is_given_back() -> None:
    released: list[object] = []
    size = 8 * 1024 * 1024
    with tempfile.TemporaryFile() as file:
        file.truncate(size)
        async with wired() as wire:
            await wire.send(framed(b"fetch"))
            wire.slots[0].fill([b"begin", FakeFile(file, 0, size, released)])
            await settle()
            assert wire.connection.is_sending
            assert released == []
            wire.peer.close()
            await settle()
            assert wire.connection.closed
        assert released == [file]


@in_trio
async def test_a_file_that_is_too_short_ends_the_connection() -> None:
    released: list[object] = []
    with tempfile.TemporaryFile() as file:
        file.write(b"x" * 10)
        file.flush()
        async with wired() as wire:
            await wire.send(framed(b"fetch"))
            wire.slots[0].fill([b"begin", FakeFile(file, 0, 1024, released)])
            await settle()
            assert wire.connection.closed
        assert released == [file]


@in_trio
async def test_more_requests_than_fit_into_the_pipeline_are_all_answered() -> None:
    count = PIPELINE_MAX * 5 + 7
    bodies = [b"%d" % number for number in range(count)]
    async with wired() as wire:
        wire.on_frame = lambda frame, slot: slot.fill([framed(frame)])
        await wire.send(framed(*bodies))
        assert await wire.receive() == framed(*bodies)
        assert wire.frames == bodies


@in_trio
async def test_a_peer_that_only_stops_writing_gets_what_it_can_and_the_connection_ends() -> None:
    async with wired() as wire:
        wire.on_frame = lambda frame, slot: slot.fill([framed(frame)])
        await wire.send(framed(b"last words"))
        wire.peer.shutdown(socket.SHUT_WR)
        assert await wire.receive() == framed(b"last words")
        assert wire.connection.closed
