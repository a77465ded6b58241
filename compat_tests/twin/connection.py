"""A blocking socket that speaks frames, and nothing more: what is sent is what the test says."""

from __future__ import annotations

import socket
import struct

CONNECT_TIMEOUT_S = 10
REPLY_TIMEOUT_S = 30


class Connection:
    """One connection to one broker."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), CONNECT_TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are; a broker that has closed already is seen when receiving."""
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return

    def send_frame(self, payload: bytes) -> None:
        self.send_bytes(struct.pack(">i", len(payload)) + payload)

    def receive_frame(self, timeout_s: float = REPLY_TIMEOUT_S) -> bytes | None:
        """The next frame without its length, or None when the broker closed the connection.

        Raises:
            TimeoutError: when nothing came in time.
        """
        self._socket.settimeout(timeout_s)
        prefix = self._receive_exactly(4)
        if prefix is None:
            return None
        return self._receive_exactly(struct.unpack(">i", prefix)[0])

    def is_silent(self, duration_s: float) -> bool:
        """Whether the broker neither sends anything nor closes for this long."""
        self._socket.settimeout(duration_s)
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return True
        except ConnectionResetError:
            return False
        return False

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def _receive_exactly(self, size: int) -> bytes | None:
        received = bytearray()
        while len(received) < size:
            try:
                chunk = self._socket.recv(size - len(received))
            except ConnectionResetError:
                return None
            if not chunk:
                return None
            received += chunk
        return bytes(received)
