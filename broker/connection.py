"""One client connection: bytes in, frames to the dispatcher, replies out in the order of requests.

Requests are handled strictly in the order in which they came, and replies leave in that order. A
handler may answer later: then the next request is handled meanwhile, so that pipelined produce
requests fill one group commit, but its reply waits its turn. Reading stops (and TCP holds the peer
back) while too many replies are owed, too many bytes are unsent, or no memory is left for the next
body.
"""

from __future__ import annotations

import logging
import mmap
import os
import socket
import struct
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

import trio

from klamm.broker.reactor import HANG_UP, READABLE, WRITABLE
from klamm.wire.errors import WireError

if TYPE_CHECKING:
    from klamm.broker.budget import MemoryBudget
    from klamm.broker.reactor import Reactor

logger = logging.getLogger(__name__)

FRAME_SIZE = struct.Struct(">i")
# A larger frame needs a reservation of its own.
UNRESERVED_BYTES_MAX = 65_536
# So much is copied as soon as it is received, because parts of bytes are made faster than views.
COPIED_BYTES_MAX = 4096
# A larger body is kept in pages that the kernel gives as bytes come: a size that is only declared
# costs neither memory nor the time to clear it. Such pages are slower to fill, so the 1 MiB that
# producers send at most by default is not kept in them.
ZEROED_BODY_BYTES = 2 * 1024 * 1024
# What is received of such a body at a time: each of its pages is new, and costs some microseconds.
BODY_PART_BYTES = 1024 * 1024
# Replies owed on one connection before it is no longer read. Clients keep 5 requests in flight.
PIPELINE_MAX = 64
# Bytes of replies that the kernel has not taken before the connection is no longer read: in all,
# and in memory. A range of a file costs a descriptor, whatever its size.
UNSENT_BYTES_MAX = 64 * 1024 * 1024
UNSENT_MEMORY_MAX = 1024 * 1024
# Chunks of replies (two for each partition of a fetch) that are sent before others get their turn.
CHUNKS_AT_ONCE_MAX = 128
# Chunks in memory up to this size are copied together, which costs less than a call for each.
JOINED_BYTES_MAX = 8192
# Checking against a union makes a new one each time.
_IN_MEMORY = (bytes, memoryview)
# An attribute of a module is looked up anew each time.
_MORE = socket.MSG_MORE


class FileChunk(Protocol):
    """A range of a file that goes to the socket without passing through Python."""

    def __len__(self) -> int: ...
    def fileno(self) -> int: ...
    def release(self) -> None: ...
    def __getitem__(self, part: slice) -> FileChunk: ...
    @property
    def position(self) -> int: ...


class Dispatch(Protocol):
    """Handles one frame and fills the slot, now or later."""

    def __call__(self, frame: bytes | memoryview, slot: ReplySlot) -> None: ...


class ReplySlot:
    """The place of one reply in the order of its connection."""

    __slots__ = ("chunks", "connection", "on_close", "reserved")

    def __init__(self, connection: Connection, reserved: int) -> None:
        self.connection = connection
        self.reserved = reserved
        self.chunks: Sequence[Any] | None = None
        self.on_close: Callable[[], None] | None = None

    def fill(self, chunks: Sequence[Any]) -> None:
        """The reply is ready: an empty sequence means that the request gets no reply."""
        connection = self.connection
        if connection.closed:
            release(chunks)
            return
        self.chunks = chunks
        connection.count_unsent(chunks)
        connection.flush_soon()

    def fail(self, reason: str) -> None:
        self.connection.fail(reason)


def joined(chunks: Iterable[Any]) -> list[Any]:
    """The same bytes in fewer chunks: those of pipelined replies leave together."""
    result: list[Any] = []
    small: list[Any] = []
    for chunk in chunks:
        if isinstance(chunk, _IN_MEMORY) and len(chunk) <= JOINED_BYTES_MAX:
            small.append(chunk)
            continue
        if small:
            result.append(b"".join(small))
            small = []
        result.append(chunk)
    if small:
        result.append(b"".join(small))
    return result


def release(chunks: Iterable[Any]) -> None:
    """Give back the files of a reply that will not be sent."""
    for chunk in chunks:
        if not isinstance(chunk, _IN_MEMORY):
            chunk.release()


class Connection:
    """A socket registered with the reactor."""

    def __init__(
        self,
        sock: socket.socket,
        peer: str,
        listener_name: str,
        *,
        reactor: Reactor,
        dispatch: Dispatch,
        budget: MemoryBudget,
        frame_bytes_max: int,
        on_closed: Callable[[Connection], None],
    ) -> None:
        self.peer = peer
        self.listener_name = listener_name
        # Host and port, where the client has found the broker.
        self.local_address: Any = sock.getsockname()[:2]
        self.closed = False
        # The last sign of the peer, the begin of the frame that is not complete yet, and the last
        # time that the peer took bytes.
        self.received_at = self.frame_begun_at = self.sent_at = trio.current_time()
        self._socket = sock
        self._fd = sock.fileno()
        self._reactor = reactor
        self._dispatch = dispatch
        self._budget = budget
        self._frame_bytes_max = frame_bytes_max
        self._on_closed = on_closed
        self._buffer: bytes = b""
        self._body: memoryview | None = None
        self._body_filled = 0
        self._body_waits = False
        # What is in the buffer: the begin of a frame, or whole frames that wait for their turn.
        self._has_part_of_frame = False
        self._has_whole_frames = False
        self._resume_is_queued = False
        self._holds = 0
        self._replies: deque[ReplySlot] = deque()
        self._unsent: deque[Any] = deque()
        self._unsent_bytes = 0
        self._unsent_memory = 0
        self._is_blocked = False
        self._flush_is_queued = False
        self._mask = READABLE
        reactor.register(self._fd, self, READABLE)

    def __repr__(self) -> str:
        # As all lines of the log name it.
        return self.peer

    # What the janitor asks.

    @property
    def is_idle(self) -> bool:
        """Nothing is owed to the peer and nothing half has come from it."""
        return not (
            self._replies
            or self._unsent
            or self._body_waits
            or self._has_whole_frames
            or self.has_partial_frame
        )

    @property
    def has_partial_frame(self) -> bool:
        return self._body is not None or self._has_part_of_frame

    @property
    def partial_frame_bytes(self) -> int:
        return len(self._buffer) + self._body_filled

    @property
    def is_sending(self) -> bool:
        return bool(self._unsent)

    # Events.

    def on_events(self, mask: int) -> None:
        if mask & WRITABLE:
            self._send()
            self._go_on()
        if mask & READABLE:
            # What was ready when the kernel was asked may not be wanted any more.
            if self._mask & READABLE and not self.closed:
                self._receive()
        elif mask & HANG_UP:
            self.close()

    def _receive(self) -> None:
        try:
            if self._body is not None:
                filled = self._body_filled
                count = self._socket.recv_into(self._body[filled : filled + BODY_PART_BYTES])
                if count:
                    self._body_filled += count
                    self.received_at = self._reactor.now
                    self._reactor.let_it_come()
                    if self._body_filled == len(self._body):
                        self._body_received()
                    return
            else:
                received = self._reactor.receive_buffer
                count = self._socket.recv_into(received)
                if count:
                    self.received_at = self._reactor.now
                    data: bytes | memoryview = received[:count]
                    if self._buffer:
                        data = self._buffer + data
                    elif count <= COPIED_BYTES_MAX:
                        data = bytes(data)
                    if count > COPIED_BYTES_MAX:
                        self._reactor.let_it_come()
                    self._handle_frames(data)
                    return
        except BlockingIOError:
            return
        except OSError as error:
            logger.debug("%s: %s", self.peer, error)
        self.close()

    # Frames.

    def _handle_frames(self, data: bytes | memoryview) -> None:
        """Handle the whole frames in the data while it is our turn, keep the rest of it, and send
        what is ready."""
        available = len(data)
        position = 0
        was_partial = self._has_part_of_frame
        is_partial = False
        while position < available and not self._is_paused():
            start = position + 4
            if available < start:
                is_partial = True
                break
            (size,) = FRAME_SIZE.unpack_from(data, position)
            if size < 0 or size > self._frame_bytes_max:
                self.fail(self._explain_frame_size(size, bytes(data[position:start])))
                return
            end = start + size
            reserved = 0
            if size > UNRESERVED_BYTES_MAX:
                if end > available or not self._budget.reserve_now(size):
                    self._begin_body(size, data[start:end])
                    position = min(end, available)
                    break
                reserved = size
            elif end > available:
                is_partial = True
                break
            # A copy, because what was received is overwritten; the decoder also reads bytes faster.
            self._handle_frame(bytes(data[start:end]), reserved)
            if self.closed:
                return
            position = end
            if end < available and self._reactor.turn_is_over():
                break
        self._buffer = bytes(data[position:])
        self._has_part_of_frame = is_partial
        self._has_whole_frames = position < available and not is_partial
        if is_partial and (position or not was_partial):
            self.frame_begun_at = self._reactor.now
        if not self._flush_is_queued:
            self.flush_soon()

    def _handle_frame(self, frame: bytes | memoryview, reserved: int) -> None:
        slot = ReplySlot(self, reserved)
        self._replies.append(slot)
        try:
            self._dispatch(frame, slot)
        except WireError as error:
            self.fail(f"unreadable request: {error}")

    def _begin_body(self, size: int, start: bytes | memoryview) -> None:
        """Room for a large body comes from the budget; the part that came is kept aside."""
        head = bytes(start)

        def granted() -> None:
            if len(head) == size:
                # After those whose replies have made room.
                self._reactor.call_after_sweep(partial(self._handle_late, head))
                return
            self._body_waits = False
            body = memoryview(mmap.mmap(-1, size) if size > ZEROED_BODY_BYTES else bytearray(size))
            body[: len(head)] = head
            self._body = body
            self._body_filled = len(head)
            self.frame_begun_at = trio.current_time()
            self._update_interest()

        self._body_waits = True
        self._granted = granted
        if self._budget.reserve(size, granted):
            granted()

    def _handle_late(self, frame: bytes) -> None:
        """Handle a frame that had to wait for its room."""
        if self.closed:
            self._budget.release(len(frame))
            return
        self._body_waits = False
        self._handle_frame(frame, len(frame))
        self.flush_soon()

    def _body_received(self) -> None:
        body = self._body
        assert body is not None
        self._body = None
        self._body_filled = 0
        self._handle_frame(body, len(body))
        self.flush_soon()

    def _explain_frame_size(self, size: int, start: bytes) -> str:
        if start[:3] in (b"\x16\x03\x01", b"\x16\x03\x03"):
            return "a TLS handshake on a plaintext listener"
        if start in (b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTI", b"DELE"):
            return "an HTTP request on a Kafka listener"
        if size < 0:
            return f"negative frame size {size}"
        return (
            f"frame of {size} bytes, over socket.request.max.bytes={self._frame_bytes_max}; "
            "raise that for larger requests"
        )

    # Pausing.

    def hold(self) -> None:
        """Handle no further request until `proceed`: the current one must have ended first."""
        self._holds += 1

    def proceed(self) -> None:
        self._holds -= 1
        self._go_on()

    def _is_paused(self) -> bool:
        return (
            self._holds > 0
            or self._body_waits
            or len(self._replies) >= PIPELINE_MAX
            # All of them count, so that only one limit has to be looked at mostly.
            or (
                self._unsent_bytes > UNSENT_MEMORY_MAX
                and (
                    self._unsent_memory > UNSENT_MEMORY_MAX or self._unsent_bytes > UNSENT_BYTES_MAX
                )
            )
        )

    def _go_on(self) -> None:
        """Requests may have been left in the buffer while the connection was paused or its turn was
        over. They are handled after those of others: a peer that sends much must not keep the
        rest waiting."""
        if self._has_whole_frames and not self._resume_is_queued and not self._is_paused():
            self._resume_is_queued = True
            self._reactor.call_after_sweep(self._resume)
        self._update_interest()

    def _resume(self) -> None:
        self._resume_is_queued = False
        if self._has_whole_frames and not self._is_paused():
            self._handle_frames(self._buffer)

    def _update_interest(self) -> None:
        if self.closed:
            return
        mask = WRITABLE if self._unsent else 0
        if not self._has_whole_frames and not self._is_paused():
            mask |= READABLE
        if mask != self._mask:
            if mask & READABLE and not self._mask & READABLE:
                # The peer is not to blame for the time in which nobody read.
                self.frame_begun_at = trio.current_time()
            self._mask = mask
            self._reactor.modify(self._fd, mask)

    # Replies.

    def flush_soon(self) -> None:
        """Send what is ready: with all other replies at the end of a sweep, or now where there is
        none."""
        if not self._reactor.in_turn:
            self.flush()
        elif not self._flush_is_queued:
            self._flush_is_queued = True
            self._reactor.flush_after_sweep(self)

    def flush(self) -> None:
        """Hand every reply whose turn has come to the kernel."""
        self._flush_is_queued = False
        if self.closed:
            return
        replies = self._replies
        ready: list[Sequence[Any]] = []
        while replies and (chunks := replies[0].chunks) is not None:
            slot = replies.popleft()
            if slot.reserved:
                self._budget.release(slot.reserved)
            ready.append(chunks)
        if len(ready) == 1:
            self._unsent.extend(ready[0])
        elif ready:
            self._unsent.extend(joined(chain.from_iterable(ready)))
        if self._unsent:
            self._send()
        self._go_on()

    def count_unsent(self, chunks: Iterable[Any]) -> None:
        """A reply counts as soon as it is made, even while it waits for earlier ones."""
        for chunk in chunks:
            size = len(chunk)
            self._unsent_bytes += size
            if isinstance(chunk, _IN_MEMORY):
                self._unsent_memory += size

    def _send(self) -> None:
        unsent = self._unsent
        chunks_left = CHUNKS_AT_ONCE_MAX
        progressed = False
        try:
            while unsent and chunks_left:
                chunks_left -= 1
                chunk = unsent[0]
                if isinstance(chunk, _IN_MEMORY):
                    sent = self._socket.send(chunk, _MORE if len(unsent) > 1 else 0)
                    self._unsent_memory -= sent
                    if sent < len(chunk):
                        unsent[0] = memoryview(chunk)[sent:]
                    else:
                        unsent.popleft()
                else:
                    sent = self._send_file(chunk)
                self._unsent_bytes -= sent
                progressed = True
            self._is_blocked = False
            if unsent:
                # It is others' turn, and not the peer that does not read.
                self.sent_at = trio.current_time()
        except BlockingIOError:
            if progressed or not self._is_blocked:
                self._is_blocked = True
                self.sent_at = trio.current_time()
        except OSError as error:
            logger.debug("%s: %s", self.peer, error)
            self.close()

    def _send_file(self, chunk: FileChunk) -> int:
        sent = os.sendfile(self._fd, chunk.fileno(), chunk.position, len(chunk))
        if sent == 0:
            # The file is shorter than the log said: the frame can't be completed.
            raise OSError(f"{len(chunk)} bytes are missing from the segment")
        if sent < len(chunk):
            self._unsent[0] = chunk[sent:]
        else:
            self._unsent.popleft()
            chunk.release()
        return sent

    # The end.

    def fail(self, reason: str) -> None:
        """Close because of something the peer did; one line says what."""
        if not self.closed:
            # What was answered before it leaves first.
            self.flush()
            logger.warning("closing %s: %s", self.peer, reason)
            self.close()

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._reactor.unregister(self._fd)
        self._socket.close()
        if self._body_waits:
            self._budget.withdraw(self._granted)
        if self._body is not None:
            self._budget.release(len(self._body))
            self._body = None
        for slot in self._replies:
            if slot.reserved:
                self._budget.release(slot.reserved)
            if slot.on_close is not None:
                slot.on_close()
            release(slot.chunks or ())
        release(self._unsent)
        self._replies.clear()
        self._unsent.clear()
        self._buffer = b""
        self._has_whole_frames = False
        self._on_closed(self)
