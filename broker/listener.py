"""Accepts connections, within limits, and ends those that stand still.

Every limit is finite: connections in all and from one address, the time a connection may be idle,
and the time in which a frame that was begun, or a reply that was begun, has to move on.
"""

from __future__ import annotations

import errno
import logging
import math
import socket
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import trio

from klamm.broker.config.listeners import host_and_port
from klamm.broker.connection import Connection
from klamm.broker.descriptors import connections_end, descriptors_max
from klamm.broker.reactor import READABLE, TURN_SECONDS_MAX

if TYPE_CHECKING:
    from klamm.broker.broker import Broker

logger = logging.getLogger(__name__)

ACCEPTS_PER_EVENT_MAX = 64
BACKLOG_MIN = 1024
# A request that takes longer than its deadline to arrive is let through at this rate: a large one
# over a slow line is not an attack.
ARRIVAL_BYTES_PER_S_MIN = 16 * 1024
# Out of descriptors: existing connections go on, new ones wait this long for one to be closed.
ACCEPT_PAUSE_S = 0.1
DESCRIPTORS_GONE = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def bind(host: str, port: int) -> socket.socket:
    """A socket that has its address and refuses connections until a Listener takes it.

    Raises:
        OSError: the address can't be used.
    """
    family, kind, address = _resolve(host, port)
    sock = socket.socket(family, kind)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, socket.SocketKind, Any]:
    try:
        found = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except ValueError as error:
        # No name looks like this: a label has at most 63 characters.
        raise OSError(errno.EINVAL, "not the name of a host") from error
    # As Java does: `localhost` is 127.0.0.1, where that exists, and not ::1 alone.
    family, kind, _, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
    return family, kind, address


class Listener:
    """One listening socket and the connections that came through it."""

    def __init__(self, name: str, sock: socket.socket, broker: Broker) -> None:
        self.name = name
        self._socket = sock
        self._broker = broker
        self._reactor = broker.reactor
        self.connections: set[Connection] = set()
        self._by_address: Counter[str] = Counter()
        self._addresses: dict[Connection, str] = {}
        self._paused = False
        self._descriptors_end = connections_end(descriptors_max())
        self.host, self.port = sock.getsockname()[:2]
        sock.listen(max(BACKLOG_MIN, broker.config.socket_listen_backlog_size))
        self._reactor.register(sock.fileno(), self, READABLE)

    def on_events(self, mask: int) -> None:
        for _ in range(ACCEPTS_PER_EVENT_MAX):
            try:
                sock, address = self._socket.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in DESCRIPTORS_GONE:
                    self._pause(error)
                    return
                # The peer has gone before it was accepted.
                continue
            if sock.fileno() >= self._descriptors_end:
                # The lowest free number is given, so all below it are in use.
                sock.close()
                self._pause(OSError(errno.EMFILE, "the open files limit is near"))
                return
            try:
                self._accepted(sock, address[0], address[1])
            except OSError as error:
                logger.warning("refusing %s: %s", host_and_port(*address[:2]), error)
                sock.close()

    def _accepted(self, sock: socket.socket, host: str, port: int) -> None:
        peer = host_and_port(host, port)
        reason = self._refusal(host)
        if reason is not None:
            logger.warning("refusing %s: %s", peer, reason)
            sock.close()
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._set_buffers(sock)
        connection = Connection(
            sock,
            peer,
            self.name,
            reactor=self._reactor,
            dispatch=self._broker.dispatcher,
            budget=self._broker.budget,
            frame_bytes_max=self._broker.config.socket_request_max_bytes,
            on_closed=self._closed,
        )
        self.connections.add(connection)
        self._by_address[host] += 1
        self._addresses[connection] = host

    def _set_buffers(self, sock: socket.socket) -> None:
        """A send buffer that ends makes the broker sleep between the pieces of a large reply.
        Without an end, all of it goes to a client on this machine at once, and where processors are
        few the client gets none before that is done."""
        config = self._broker.config
        for option, size in (
            (socket.SO_SNDBUF, config.socket_send_buffer_bytes),
            (socket.SO_RCVBUF, config.socket_receive_buffer_bytes),
        ):
            if size > 0:
                sock.setsockopt(socket.SOL_SOCKET, option, size)

    def _refusal(self, host: str) -> str | None:
        """Both limits count the connections of all listeners, as in Kafka."""
        config = self._broker.config
        listeners = self._broker.listeners
        if sum(len(each.connections) for each in listeners) >= config.max_connections:
            return f"max.connections={config.max_connections} is reached"
        per_ip = config.max_connections_per_ip_overrides.get(host, config.max_connections_per_ip)
        if sum(each.count_from(host) for each in listeners) >= per_ip:
            return f"max.connections.per.ip={per_ip} is reached"
        return None

    def count_from(self, host: str) -> int:
        """How many connections of this listener come from that address."""
        return self._by_address[host]

    def _closed(self, connection: Connection) -> None:
        self.connections.discard(connection)
        host = self._addresses.pop(connection)
        self._by_address[host] -= 1
        if not self._by_address[host]:
            del self._by_address[host]

    def _pause(self, error: OSError) -> None:
        if not self._paused:
            logger.warning("not accepting for now: %s", error)
            self._paused = True
            self._reactor.unregister(self._socket.fileno())
            self._broker.timers.call_after(ACCEPT_PAUSE_S, self._resume)

    def _resume(self) -> None:
        self._paused = False
        if self._socket.fileno() >= 0:
            self._reactor.register(self._socket.fileno(), self, READABLE)

    async def watch(self) -> None:
        """Close what stands still: idle connections silently, stalled ones with a line."""
        config = self._broker.config
        idle_ms = config.connections_max_idle_ms
        # As in Kafka: a negative number means never.
        idle_s = idle_ms / 1000 if idle_ms >= 0 else math.inf
        request_s = config.klamm_request_progress_timeout_ms / 1000
        response_s = config.klamm_response_progress_timeout_ms / 1000
        while True:
            await trio.sleep(min(5.0, max(0.05, min(idle_s, request_s, response_s) / 4)))
            now = trio.current_time()
            turn_ends_at = time.perf_counter() + TURN_SECONDS_MAX
            for connection in list(self.connections):
                self._end_if_still(connection, now, idle_s, request_s, response_s)
                if time.perf_counter() > turn_ends_at:
                    await trio.lowlevel.checkpoint()
                    turn_ends_at = time.perf_counter() + TURN_SECONDS_MAX

    def _end_if_still(
        self, connection: Connection, now: float, idle_s: float, request_s: float, response_s: float
    ) -> None:
        if connection.is_sending:
            if now - connection.sent_at > response_s:
                connection.fail(f"takes none of its reply for {response_s:g} s")
        elif connection.has_partial_frame:
            allowed_s = request_s + connection.partial_frame_bytes / ARRIVAL_BYTES_PER_S_MIN
            if now - connection.frame_begun_at > allowed_s:
                connection.fail(f"half a request after {allowed_s:.3g} s")
        elif connection.is_idle and now - connection.received_at > idle_s:
            logger.debug("closing %s: idle", connection.peer)
            connection.close()

    def stop_accepting(self) -> None:
        if not self._paused:
            self._reactor.unregister(self._socket.fileno())
        self._paused = True
        self._socket.close()

    def close(self) -> None:
        if self._socket.fileno() >= 0:
            self.stop_accepting()
        for connection in list(self.connections):
            connection.close()
