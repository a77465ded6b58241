"""Connections that stand still are closed; those that move, however slowly, are not."""

from __future__ import annotations

import struct
from functools import partial

import pytest
import trio

from klamm.broker.connection import Connection
from klamm.broker.listener import ARRIVAL_BYTES_PER_S_MIN
from klamm.broker.tests.in_trio import in_virtual_time
from klamm.broker.tests.listening import Listening, listening, until
from klamm.broker.tests.wired import framed

IDLE_S = 600
PROGRESS_S = 30
# The watch looks every five seconds at the latest.
WATCH_S = 5.01


def is_open(connection: Connection) -> bool:
    return not connection.closed


async def answer(broker: Listening, *chunks: bytes) -> None:
    """Wait for the next request and answer it."""
    await until(lambda: bool(broker.slots))
    broker.slots.pop(0).fill(chunks)


@in_virtual_time
async def test_an_idle_connection_is_closed_without_a_word(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with listening() as broker:
        peer, connection = await broker.accept()
        await trio.sleep(IDLE_S - 1)
        assert is_open(connection)
        await trio.sleep(1 + WATCH_S)
        assert not is_open(connection)
        assert peer.recv(1) == b""
        peer.close()
    assert caplog.records == []


@in_virtual_time
async def test_a_connection_that_speaks_now_and_then_is_not_idle() -> None:
    async with listening() as broker:
        peer, connection = await broker.accept()
        for _ in range(5):
            await trio.sleep(IDLE_S - 10)
            peer.sendall(framed(b"hello"))
            await answer(broker, b"reply")
        assert is_open(connection)
        peer.close()


@in_virtual_time
async def test_one_that_waits_for_an_answer_is_not_idle() -> None:
    """A long poll may be longer than the time after which a connection counts as idle."""
    async with listening() as broker:
        peer, connection = await broker.accept()
        peer.sendall(framed(b"long poll"))
        await until(lambda: bool(broker.slots))
        await trio.sleep(IDLE_S * 3)
        assert is_open(connection)
        await answer(broker, b"at last")
        assert peer.recv(100) == b"at last"
        await trio.sleep(IDLE_S + WATCH_S)
        assert not is_open(connection)
        peer.close()


@in_virtual_time
async def test_a_negative_idle_time_closes_nobody() -> None:
    async with listening({"connections.max.idle.ms": "-1"}) as broker:
        peer, connection = await broker.accept()
        await trio.sleep(IDLE_S * 10)
        assert broker.connections == {connection}
        peer.close()


@in_virtual_time
async def test_the_idle_time_is_the_configured_one() -> None:
    async with listening({"connections.max.idle.ms": "1000"}) as broker:
        peer, connection = await broker.accept()
        await trio.sleep(0.9)
        assert is_open(connection)
        await trio.sleep(0.5)
        assert not is_open(connection)
        peer.close()


@pytest.mark.parametrize("part", [framed(b"x" * 100)[:2], framed(b"x" * 100)[:50]])
def test_half_a_request_and_silence_is_closed(
    part: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    @in_virtual_time
    async def run() -> None:
        async with listening() as broker:
            peer, connection = await broker.accept()
            peer.sendall(part)
            await until(lambda: connection.partial_frame_bytes == len(part))
            await trio.sleep(PROGRESS_S - 1)
            assert is_open(connection)
            await trio.sleep(1 + WATCH_S)
            assert not is_open(connection)
            peer.close()

    run()
    (record,) = caplog.records
    assert "half a request after 30 s" in record.getMessage()


@in_virtual_time
async def test_a_request_that_dribbles_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    request = framed(b"x" * 1000)
    async with listening() as broker:
        peer, connection = await broker.accept()

        def has_arrived(count: int) -> bool:
            return connection.closed or connection.partial_frame_bytes == count

        # A byte each second does not count as progress.
        for sent in range(PROGRESS_S - 1):
            peer.sendall(request[sent : sent + 1])
            await until(partial(has_arrived, sent + 1))
            await trio.sleep(1)
        assert is_open(connection)
        await trio.sleep(1 + WATCH_S)
        assert not is_open(connection)
        peer.close()
    assert len(caplog.records) == 1


@in_virtual_time
async def test_a_second_request_that_dribbles_has_a_time_of_its_own() -> None:
    async with listening() as broker:
        peer, connection = await broker.accept()
        for _ in range(4):
            request = framed(b"x" * 100)
            peer.sendall(request[:50])
            await until(lambda: connection.partial_frame_bytes == 50)
            await trio.sleep(PROGRESS_S - 5)
            peer.sendall(request[50:])
            await answer(broker, b"reply")
        assert is_open(connection)
        peer.close()


@in_virtual_time
async def test_a_large_request_over_a_slow_line_is_let_through() -> None:
    size = 40 * ARRIVAL_BYTES_PER_S_MIN
    request = framed(b"x" * size)
    piece = ARRIVAL_BYTES_PER_S_MIN
    async with listening() as broker:
        peer, connection = await broker.accept()

        def has_arrived(size: int) -> bool:
            return connection.partial_frame_bytes == size or bool(broker.slots)

        for position in range(0, len(request), piece):
            peer.sendall(request[position : position + piece])
            arrived = min(position + piece, len(request)) - 4
            await until(partial(has_arrived, arrived))
            await trio.sleep(1)
        await answer(broker, b"reply")
        assert is_open(connection)
        peer.close()


@in_virtual_time
async def test_a_large_request_that_stops_is_closed_and_gives_its_memory_back() -> None:
    async with listening() as broker:
        peer, connection = await broker.accept()
        peer.sendall(struct.pack(">i", 500_000) + b"x" * 1000)
        await until(lambda: broker.budget.bytes_reserved == 500_000)
        await trio.sleep(PROGRESS_S + WATCH_S)
        assert not is_open(connection)
        assert broker.budget.bytes_reserved == 0
        peer.close()


@in_virtual_time
async def test_waiting_for_memory_is_not_the_fault_of_the_peer() -> None:
    async with listening() as broker:
        assert broker.budget.reserve(broker.budget.bytes_max, lambda: None)
        peer, connection = await broker.accept()
        peer.sendall(struct.pack(">i", 100_000))
        await until(lambda: connection._body_waits)
        await trio.sleep(IDLE_S * 2)
        assert is_open(connection)
        # From now on it is.
        broker.budget.release(broker.budget.bytes_max)
        await trio.sleep(PROGRESS_S - 1)
        assert is_open(connection)
        await trio.sleep(1 + WATCH_S)
        assert not is_open(connection)
        peer.close()


@in_virtual_time
async def test_half_a_request_behind_one_that_takes_long_has_its_full_time() -> None:
    async with listening() as broker:
        peer, connection = await broker.accept()
        broker.on_request = lambda slot: slot.connection.hold()
        peer.sendall(framed(b"slow") + framed(b"x" * 100)[:50])
        await until(lambda: bool(broker.slots))
        broker.on_request = lambda slot: None
        await trio.sleep(PROGRESS_S * 3)
        broker.slots.pop(0).fill([b"done"])
        connection.proceed()
        await trio.sleep(PROGRESS_S - 1)
        assert is_open(connection)
        peer.sendall(framed(b"x" * 100)[50:])
        await answer(broker, b"reply")
        assert is_open(connection)
        peer.close()


@in_virtual_time
async def test_half_a_body_behind_a_reply_that_is_taken_slowly_has_its_full_time() -> None:
    body = framed(b"x" * 100_000)
    async with listening() as broker:
        peer, connection = await broker.accept(receive_buffer=4096)
        peer.sendall(framed(b"long poll") + body[:1000])
        await until(lambda: broker.budget.bytes_reserved == 100_000)
        # From now on nothing is read, because so much is unsent.
        await answer(broker, b"x" * 50_000_000)
        left = 50_000_000
        for seconds in (20, 20, 20, 0):
            goal = left - 10_000_000 if seconds else 0
            while left > goal:
                left -= len(peer.recv(min(left - goal, 1024 * 1024)))
                await trio.lowlevel.checkpoint()
            await trio.sleep(seconds)
        await until(lambda: not connection.is_sending)
        await trio.sleep(PROGRESS_S - 1)
        assert is_open(connection)
        peer.sendall(body[1000:])
        await answer(broker, b"reply")
        peer.close()


@in_virtual_time
async def test_a_reply_that_nobody_takes_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    async with listening() as broker:
        peer, connection = await broker.accept(receive_buffer=4096)
        peer.sendall(framed(b"fetch"))
        await answer(broker, b"x" * 50_000_000)
        assert connection.is_sending
        await trio.sleep(PROGRESS_S - 1)
        assert is_open(connection)
        await trio.sleep(1 + WATCH_S)
        assert not is_open(connection)
        peer.close()
    (record,) = caplog.records
    assert "takes none of its reply for 30 s" in record.getMessage()


@in_virtual_time
async def test_a_reply_that_is_taken_slowly_is_not_closed() -> None:
    async with listening() as broker:
        peer, connection = await broker.accept(receive_buffer=4096)
        peer.sendall(framed(b"fetch"))
        await answer(broker, b"x" * 50_000_000)
        for _ in range(6):
            unsent = connection._unsent_bytes
            while connection._unsent_bytes == unsent:
                assert peer.recv(1024 * 1024)
                await trio.lowlevel.checkpoint()
            await trio.sleep(PROGRESS_S - 5)
        assert is_open(connection)
        peer.close()


@in_virtual_time
async def test_the_time_for_a_request_is_the_configured_one() -> None:
    async with listening({"klamm.request.progress.timeout.ms": "1000"}) as broker:
        peer, connection = await broker.accept()
        peer.sendall(framed(b"x" * 100)[:50])
        await until(lambda: connection.partial_frame_bytes == 50)
        await trio.sleep(0.9)
        assert is_open(connection)
        await trio.sleep(0.5)
        assert not is_open(connection)
        peer.close()


@in_virtual_time
async def test_the_time_for_a_reply_is_the_configured_one() -> None:
    async with listening({"klamm.response.progress.timeout.ms": "1000"}) as broker:
        peer, connection = await broker.accept(receive_buffer=4096)
        peer.sendall(framed(b"fetch"))
        await answer(broker, b"x" * 50_000_000)
        await trio.sleep(0.9)
        assert is_open(connection)
        await trio.sleep(0.5)
        assert not is_open(connection)
        peer.close()


@in_virtual_time
async def test_two_thousand_requests_that_never_end_are_all_closed() -> None:
    async with listening() as broker:
        peers = []
        for _ in range(2000):
            peers.append(broker.connect())
            peers[-1].sendall(b"\0\0")
            if len(peers) % 500 == 0:
                await until(lambda: len(broker.connections) == len(peers))
        await until(lambda: all(each.has_partial_frame for each in broker.connections))
        await trio.sleep(PROGRESS_S + WATCH_S)
        assert broker.connections == set()
        for peer in peers:
            peer.close()
