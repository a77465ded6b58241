"""From bytes to frames: however the bytes arrive, the same frames are handled, or none."""

from __future__ import annotations

import logging
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.broker.connection import COPIED_BYTES_MAX, UNRESERVED_BYTES_MAX, ReplySlot
from klamm.broker.reactor import Reactor
from klamm.broker.tests.in_trio import in_trio
from klamm.broker.tests.wired import FRAME_BYTES_MAX, framed, settle, wired
from klamm.wire.errors import WireError

BODIES = [b"one", b"", b"three" * 20, b"4"]


@in_trio
async def test_a_stream_cut_at_any_byte_gives_the_same_frames_and_replies() -> None:
    stream = framed(*BODIES)
    for cut in range(len(stream) + 1):
        async with wired() as wire:
            wire.on_frame = lambda frame, slot: slot.fill([framed(frame)])
            await wire.send(stream[:cut])
            await wire.send(stream[cut:])
            assert wire.frames == BODIES
            assert await wire.receive() == stream


@in_trio
async def test_a_stream_that_comes_byte_by_byte() -> None:
    stream = framed(*BODIES)
    async with wired() as wire:
        wire.on_frame = lambda frame, slot: slot.fill([framed(frame)])
        for byte in stream:
            await wire.send(bytes([byte]))
        assert wire.frames == BODIES
        assert await wire.receive() == stream


@given(
    st.lists(st.binary(max_size=300) | st.just(b"x" * (UNRESERVED_BYTES_MAX + 17)), max_size=8),
    st.lists(st.integers(1, 50_000), max_size=12),
)
def test_any_frames_in_any_pieces(bodies: list[bytes], sizes: list[int]) -> None:
    stream = framed(*bodies)

    @in_trio
    async def run() -> None:
        async with wired() as wire:
            # Only the number of bytes comes back, so that nobody has to read much.
            wire.on_frame = lambda frame, slot: slot.fill([framed(b"%d" % len(frame))])
            position = 0
            for size in sizes:
                await wire.send(stream[position : position + size])
                position += size
            await wire.send(stream[position:])
            assert wire.frames == bodies
            assert await wire.receive() == framed(*(b"%d" % len(body) for body in bodies))

    run()


BAD_STARTS = {
    "negative size": (struct.pack(">i", -1), "negative frame size -1"),
    "most negative size": (struct.pack(">i", -(2**31)), "negative frame size -2147483648"),
    "too large": (
        struct.pack(">i", FRAME_BYTES_MAX + 1),
        f"frame of {FRAME_BYTES_MAX + 1} bytes, over socket.request.max.bytes={FRAME_BYTES_MAX}; "
        "raise that for larger requests",
    ),
    "largest size": (
        struct.pack(">i", 2**31 - 1),
        f"frame of 2147483647 bytes, over socket.request.max.bytes={FRAME_BYTES_MAX}; "
        "raise that for larger requests",
    ),
    "HTTP": (b"GET / HTTP/1.1\r\n\r\n", "an HTTP request on a Kafka listener"),
    "TLS": (
        bytes.fromhex("16030100c8010000c40303"),
        "a TLS handshake on a plaintext listener",
    ),
}


@pytest.mark.parametrize("name", BAD_STARTS)
def test_bytes_that_are_no_frame_end_the_connection_with_one_line(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    stream, reason = BAD_STARTS[name]

    @in_trio
    async def run() -> None:
        async with wired() as wire:
            await wire.send(stream)
            assert wire.is_hung_up()
            assert wire.frames == []
            assert wire.closed == 1

    run()
    assert [record.getMessage() for record in caplog.records] == [f"closing the peer: {reason}"]
    assert all(record.exc_info is None for record in caplog.records)


@in_trio
async def test_a_fault_of_the_broker_ends_the_connection_with_its_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def trip(frame: bytes, slot: ReplySlot) -> None:
        raise LookupError("on purpose")

    async with wired() as wire:
        wire.on_frame = trip
        await wire.send(framed(b"good"))
        assert wire.is_hung_up()
    (record,) = caplog.records
    assert record.getMessage() == "closing the peer after a fault in the broker"
    assert record.exc_info is not None


@in_trio
async def test_a_bad_frame_behind_good_ones_does_not_undo_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with wired() as wire:
        await wire.send(framed(b"good", b"good too") + struct.pack(">i", -5))
        assert wire.frames == [b"good", b"good too"]
        assert wire.is_hung_up()
        # Whoever works on them still may answer into the void.
        wire.answer(1, b"late")
        wire.answer(0, b"late")
    assert len(caplog.records) == 1


@in_trio
async def test_what_was_answered_before_a_bad_frame_is_sent() -> None:
    async with wired() as wire:
        wire.on_frame = lambda frame, slot: slot.fill([framed(frame)])
        await wire.send(framed(b"good", b"good too") + struct.pack(">i", -5))
        assert await wire.receive() == framed(b"good", b"good too")
        assert wire.connection.closed


@in_trio
async def test_a_request_that_cannot_be_read_ends_the_connection_with_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse(frame: bytes, slot: object) -> None:
        raise WireError("a varint does not end")

    async with wired() as wire:
        wire.on_frame = refuse
        await wire.send(framed(b"garbage", b"never looked at"))
        assert wire.is_hung_up()
        assert wire.frames == [b"garbage"]
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == "closing the peer: unreadable request: a varint does not end"
    assert record.exc_info is None


@in_trio
async def test_a_peer_that_goes_in_the_middle_of_a_frame_leaves_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for data in (b"\0", framed(b"abc")[:-1], framed(b"x" * UNRESERVED_BYTES_MAX * 2)[:-1]):
        async with wired() as wire:
            await wire.send(data)
            wire.peer.close()
            await settle()
            assert wire.closed == 1
            assert wire.connection.closed
    assert caplog.records == []


@in_trio
async def test_a_size_of_exactly_the_limit_is_a_frame() -> None:
    body = b"x" * FRAME_BYTES_MAX
    async with wired() as wire:
        await wire.send(framed(body))
        assert wire.frames == [body]


@pytest.mark.interpreted
@in_trio
async def test_what_is_large_is_not_asked_for_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame that the kernel has gathered is received by one call, and others in many pieces."""
    pieces: list[str] = []
    monkeypatch.setattr(Reactor, "let_it_come", lambda self: pieces.append("large"))
    async with wired() as connection:
        await connection.send(framed(b"x" * 100) * 5)
        assert pieces == []
        await connection.send(framed(b"x" * (COPIED_BYTES_MAX + 1)))
        assert pieces == ["large"]
        # The body of a frame that is kept apart, which comes in two pieces.
        frame = framed(b"x" * (UNRESERVED_BYTES_MAX + 1))
        await connection.send(frame[:1000])
        assert pieces == ["large"]
        await connection.send(frame[1000:2000])
        assert pieces == ["large"] * 2
        await connection.send(frame[2000:])
    assert len(pieces) > 2
