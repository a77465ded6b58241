"""Blocking sockets that send whole frames and read whole replies."""

from __future__ import annotations

import socket
import struct
import time

from benchmarks import group_frames
from benchmarks.loads import LoadError

TIMEOUT_S = 30
SIZE = struct.Struct(">i")
ERROR_CODE = struct.Struct(">h")


def connect(port: int, timeout_s: float = TIMEOUT_S) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout_s)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def read_reply(connection: socket.socket) -> bytes:
    """One reply without its size.

    Raises:
        LoadError: when the broker closed the connection.
    """
    prefix = _read_exactly(connection, SIZE.size)
    return _read_exactly(connection, SIZE.unpack(prefix)[0])


def ask(connection: socket.socket, request: bytes) -> bytes:
    """Send one request and read its reply."""
    connection.sendall(request)
    return read_reply(connection)


def check(reply: bytes | bytearray | memoryview, error_at: int | None) -> None:
    """Raise LoadError when the reply carries an error code at the given place."""
    if error_at is not None and (code := ERROR_CODE.unpack_from(reply, error_at)[0]) != 0:
        raise LoadError(f"the broker answered with error code {code}")


def wait_for_coordinator(port: int, group: str) -> None:
    """Until the broker coordinates the group; its first look at any group makes a topic."""
    request = group_frames.find_coordinator(group)
    ask_until_served(port, request, group_frames.FIND_COORDINATOR_ERROR_AT)


def ask_until_served(port: int, request: bytes, error_at: int) -> None:
    """Ask again and again until the reply is without error.

    Raises:
        LoadError: when that takes too long.
    """
    gives_up_at = time.monotonic() + TIMEOUT_S
    with connect(port) as connection:
        while (code := ERROR_CODE.unpack_from(ask(connection, request), error_at)[0]) != 0:
            if time.monotonic() > gives_up_at:
                raise LoadError(f"the broker goes on answering with error code {code}")
            time.sleep(0.05)


def _read_exactly(connection: socket.socket, count: int) -> bytes:
    data = connection.recv(count, socket.MSG_WAITALL)
    # A signal or a timeout may cut MSG_WAITALL short.
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise LoadError("the broker closed the connection")
        data += more
    return data
