"""Who may connect: limits in all and by address, over all listeners."""

from __future__ import annotations

import errno
import socket

import pytest
import trio

from klamm.broker.listener import ACCEPT_PAUSE_S, bind
from klamm.broker.tests.in_trio import in_virtual_time
from klamm.broker.tests.listening import listening, until
from klamm.broker.tests.wired import framed


def is_closed(peer: socket.socket) -> bool:
    try:
        return peer.recv(1) == b""
    except ConnectionError:
        return True


@in_virtual_time
async def test_connections_over_the_limit_are_refused_and_others_stay(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with listening({"max.connections": "2"}) as broker:
        (first, _), (second, _) = await broker.accept(), await broker.accept()
        third = broker.connect()
        await until(lambda: len(caplog.records) == 1)
        assert is_closed(third)
        assert len(broker.connections) == 2
        first.sendall(framed(b"still here"))
        await until(lambda: len(broker.slots) == 1)
        # A place that becomes free is given again.
        second.close()
        await until(lambda: len(broker.connections) == 1)
        fourth, _ = await broker.accept()
        for peer in (first, third, fourth):
            peer.close()
    assert "max.connections=2 is reached" in caplog.records[0].getMessage()


@in_virtual_time
async def test_the_limit_counts_all_listeners() -> None:
    async with listening({"max.connections": "3"}, listeners=2) as broker:
        peers = [(await broker.accept(number))[0] for number in (0, 1, 0)]
        refused = broker.connect(1)
        await trio.sleep(1)
        assert is_closed(refused)
        for peer in (*peers, refused):
            peer.close()


@in_virtual_time
async def test_connections_of_one_address_are_limited(caplog: pytest.LogCaptureFixture) -> None:
    async with listening({"max.connections.per.ip": "2"}, listeners=2) as broker:
        peers = [(await broker.accept(number))[0] for number in (0, 1)]
        refused = broker.connect(1)
        await until(lambda: len(caplog.records) == 1)
        assert is_closed(refused)
        # Another address has a limit of its own.
        other = socket.socket()
        other.bind(("127.0.0.2", 0))
        other.connect(("127.0.0.1", broker.listeners[0].port))
        await until(lambda: len(broker.connections) == 3)
        for peer in (*peers, refused, other):
            peer.close()
    assert "max.connections.per.ip=2 is reached" in caplog.records[0].getMessage()


@in_virtual_time
async def test_an_address_can_have_a_limit_of_its_own() -> None:
    properties = {
        "max.connections.per.ip": "5",
        "max.connections.per.ip.overrides": "127.0.0.1:1",
    }
    async with listening(properties) as broker:
        peer, _ = await broker.accept()
        refused = broker.connect()
        await trio.sleep(1)
        assert is_closed(refused)
        assert len(broker.connections) == 1
        peer.close()
        refused.close()


@in_virtual_time
async def test_a_peer_that_has_gone_before_it_is_accepted_does_no_harm() -> None:
    async with listening() as broker:
        for _ in range(20):
            peer = broker.connect()
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            peer.close()
        peer, connection = await broker.accept()
        await until(lambda: broker.connections == {connection})
        peer.close()


@in_virtual_time
async def test_a_fault_with_one_peer_leaves_the_listener_open(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with listening() as broker:
        listener = broker.listeners[0]

        def fail(sock: socket.socket) -> None:
            raise OSError(errno.EINVAL, "gone")

        with monkeypatch.context() as patch:
            patch.setattr(listener, "_set_buffers", fail)
            refused = broker.connect()
            await until(lambda: len(caplog.records) == 1)
            assert is_closed(refused)
        peer, _ = await broker.accept()
        peer.close()
        refused.close()


@in_virtual_time
async def test_without_descriptors_accepting_pauses_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with listening() as broker:
        peer, _ = await broker.accept()
        listener = broker.listeners[0]
        with monkeypatch.context() as patch:
            patch.setattr(listener, "_descriptors_end", 0)
            refused = broker.connect()
            await until(lambda: len(caplog.records) == 1)
            assert is_closed(refused)
            # Nobody spins on the one that waits, and those that are there are served.
            waiting = broker.connect()
            peer.sendall(framed(b"served"))
            await until(lambda: len(broker.slots) == 1)
            assert len(broker.connections) == 1
        await trio.sleep(ACCEPT_PAUSE_S * 2)
        await until(lambda: len(broker.connections) == 2)
        for each in (peer, refused, waiting):
            each.close()
    assert [record.getMessage() for record in caplog.records] == [
        f"not accepting for now: [Errno {errno.EMFILE}] the open files limit is near"
    ]


@in_virtual_time
async def test_a_paused_listener_can_be_closed() -> None:
    async with listening() as broker:
        listener = broker.listeners[0]
        listener._pause(OSError(errno.EMFILE, "on purpose"))
        listener.close()
        # The end of the pause finds nothing to do.
        await trio.sleep(ACCEPT_PAUSE_S * 2)


def test_an_address_that_is_taken_is_refused_and_the_socket_closed() -> None:
    first = bind("127.0.0.1", 0)
    first.listen()
    try:
        with pytest.raises(OSError, match="in use"):
            bind("127.0.0.1", first.getsockname()[1])
    finally:
        first.close()


def test_localhost_is_what_most_clients_mean() -> None:
    """IPv4 where there is both, as Java binds it."""
    with bind("localhost", 0) as sock:
        assert sock.getsockname()[0] == "127.0.0.1"


def test_what_can_be_no_name() -> None:
    with pytest.raises(OSError, match="not the name of a host"):
        bind("a" * 64, 0)


@pytest.mark.parametrize(
    ("properties", "buffer"),
    [({}, 204_800), ({"socket.send.buffer.bytes": "50000"}, 50_000)],
    ids=["default", "given"],
)
@in_virtual_time
async def test_the_kernel_takes_no_more_of_a_reply_than_the_send_buffer(
    properties: dict[str, str], buffer: int
) -> None:
    reply = bytes(4 * 1024 * 1024)
    async with listening(properties) as broker:
        broker.on_request = lambda slot: slot.fill([reply])
        peer, connection = await broker.accept(receive_buffer=4_096)
        peer.sendall(framed(b"a request"))
        await until(lambda: connection.is_sending)
    taken = 0
    while part := peer.recv(65_536):
        taken += len(part)
    peer.close()
    # Linux doubles it, for its own use.
    assert buffer / 2 < taken < 2 * buffer + 65_536
