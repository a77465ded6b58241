"""Peers that mean harm or do not know better.

Each gets a connection closed, or Kafka's error code, and the broker says one line about it.
"""

from __future__ import annotations

import random
import socket
import struct
from dataclasses import dataclass

from compat_tests.clients import raw

UNSUPPORTED_VERSION = 35
TIMEOUT_S = 20.0

_CLIENT_HELLO = bytes.fromhex("16030102000100") + bytes.fromhex("01fc0303") + bytes(range(250))
_RANDOM = random.Random(3)


@dataclass(frozen=True)
class Abuse:
    """One way to misbehave.

    Attributes:
        data: what is sent, in one go; then the peer is silent.
        says: a part of the line in the broker's log.
    """

    data: bytes
    says: str


def _header(key: int, version: int, size: int = 10) -> bytes:
    return struct.pack(">ihhih", size, key, version, 1, -1)


# With the limits that Kafka has by default.
ABUSES: dict[str, Abuse] = {
    "too large": Abuse(struct.pack(">i", 104_857_601) + bytes(50), "socket.request.max.bytes"),
    "largest size": Abuse(struct.pack(">i", 2**31 - 1), "socket.request.max.bytes"),
    "size -1": Abuse(struct.pack(">i", -1), "negative frame size"),
    "smallest size": Abuse(struct.pack(">i", -(2**31)) + bytes(50), "negative frame size"),
    "garbage": Abuse(b"\xca\xfe" + _RANDOM.randbytes(5000), "negative frame size"),
    "garbage in a frame": Abuse(struct.pack(">i", 300) + _RANDOM.randbytes(300), "is not served"),
    "garbage behind a header": Abuse(
        _header(raw.API_METADATA, 12, 310) + _RANDOM.randbytes(300), "unreadable request"
    ),
    "empty frames": Abuse(bytes(400), "unreadable request"),
    "TLS": Abuse(_CLIENT_HELLO, "TLS handshake"),
    "HTTP": Abuse(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP request"),
    "unknown API": Abuse(_header(999, 0), "API key 999 version 0 is not served"),
    "unknown version": Abuse(_header(raw.API_METADATA, 99), "API key 3 version 99 is not served"),
    "an array without items": Abuse(
        _header(raw.API_METADATA, 1, 14) + struct.pack(">i", 2**31 - 1), "unreadable request"
    ),
    "half a size": Abuse(b"\x00\x00", "half a request"),
    "half a header": Abuse(_header(raw.API_METADATA, 1)[:9], "half a request"),
    "half a frame": Abuse(struct.pack(">i", 5000) + bytes(2500), "half a request"),
    "half a large frame": Abuse(struct.pack(">i", 900_000) + bytes(5000), "half a request"),
}

# Longer than a busy machine takes to deliver what was sent, shorter than a test may take.
IMPATIENT = {
    "klamm.request.progress.timeout.ms": "300",
    "klamm.response.progress.timeout.ms": "600",
}


class Peer:
    """A connection that does one thing and then waits for its end."""

    def __init__(self, bootstrap: str, data: bytes = b"") -> None:
        self.socket = raw.connect(bootstrap, TIMEOUT_S)
        host, port = self.socket.getsockname()
        self.name = f"{host}:{port}"
        if data:
            self.socket.sendall(data)

    def is_closed_by_the_broker(self) -> bool:
        """Wait for the end. The broker may have closed without reading all that was sent."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def close(self) -> None:
        self.socket.close()


class Deaf(Peer):
    """Asks for far more than fits into any buffer, and reads nothing of it."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        host, port = bootstrap.split(":")
        self.socket = socket.socket()
        # Must be set before the connection is made, which fixes the largest window.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.settimeout(TIMEOUT_S)
        self.socket.connect((host, int(port)))
        self.name = f"127.0.0.1:{self.socket.getsockname()[1]}"
        name = topic.encode()
        body = struct.pack(">iiiib", -1, 0, 1, 64 << 20, 0) + struct.pack(">ih", 1, len(name))
        body += name + struct.pack(">iiqi", 1, 0, 0, 64 << 20)
        self.socket.sendall(raw.request_frame(raw.API_FETCH, 4, body) * 40)
