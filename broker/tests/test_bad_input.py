"""Peers that mean harm or do not know better: closed with one line, and nobody else notices."""

from __future__ import annotations

import random
import resource
import socket
import struct
from collections.abc import Iterator

import pytest

from klamm.broker.descriptors import raise_limit
from klamm.broker.testing import RunningBroker
from klamm.broker.tests.raw_client import (
    PRODUCE_VERSION,
    RawClient,
    create_topic,
    fetch_from,
    frame,
    produce,
    produce_to,
)
from klamm.broker.tests.waiting import until
from klamm.wire.messages.api_versions import ApiVersionsRequest
from klamm.wire.messages.metadata import MetadataRequest

TLS_CLIENT_HELLO = bytes.fromhex("1603010200010001fc0303") + bytes(500)
BAD: dict[str, bytes] = {
    "TLS": TLS_CLIENT_HELLO,
    "HTTP": b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "negative size": struct.pack(">i", -1) + b"x" * 100,
    "too large": struct.pack(">i", 17 * 1024 * 1024) + b"x" * 100,
    "empty frame": struct.pack(">i", 0),
    "short header": struct.pack(">i", 3) + b"abc",
    "zeros": bytes(1000),
    "ones": b"\xff" * 1000,
    "text": b"hello, is anybody there?\n" * 10,
    "unknown API": struct.pack(">ihhih", 10, 999, 0, 1, -1),
    "unknown version": struct.pack(">ihhih", 10, 0, 999, 1, -1),
    "client id longer than the frame": struct.pack(">ihhih", 10, 3, 1, 1, 30_000),
    "client id of negative length": struct.pack(">ihhih", 10, 3, 1, 1, -2),
    "client id that is no text": struct.pack(">ihhih", 14, 3, 1, 1, 4) + b"\xff\xfe\xfd\xfc",
    "an array without items behind it": struct.pack(">ihhihi", 14, 3, 1, 1, -1, 2**31 - 1),
    "an array of negative length": struct.pack(">ihhihi", 14, 3, 1, 1, -1, -7),
    "tags without end": struct.pack(">ihhih", 30, 3, 9, 1, -1) + b"\xff" * 20,
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_request_is_closed_with_one_line_and_no_traceback(
    broker: RunningBroker, client: RawClient, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with RawClient(broker) as bad:
        bad.socket.sendall(BAD[name])
        assert bad.is_closed_by_peer()
    (record,) = caplog.records
    assert record.getMessage().startswith("closing 127.0.0.1:")
    assert record.exc_info is None
    assert client.call(ApiVersionsRequest(), 0).error_code == 0


def test_random_bytes_never_do_more_than_close_their_own_connection(
    broker: RunningBroker, client: RawClient, caplog: pytest.LogCaptureFixture
) -> None:
    create_topic(client, "topic")
    chance = random.Random(5)
    requests = [
        frame(produce("topic"), PRODUCE_VERSION),
        frame(MetadataRequest(topics=None), 12),
        frame(ApiVersionsRequest(), 4),
    ]
    for _ in range(150):
        damaged = bytearray(chance.choice(requests))
        for _ in range(chance.randint(1, 4)):
            # The size stays right, so that all of it is looked at.
            damaged[chance.randrange(4, len(damaged))] = chance.randrange(256)
        with RawClient(broker) as bad:
            bad.socket.sendall(damaged)
            bad.socket.shutdown(socket.SHUT_WR)
            while bad.socket.recv(65_536):
                pass
    assert [record for record in caplog.records if record.exc_info is not None] == []
    assert broker.broker.dispatcher.handler_failures == 0
    assert produce_to(client, "topic").error_code == 0


@pytest.fixture
def _many_descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    raise_limit()
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("_many_descriptors")
def test_two_thousand_connections_that_say_nothing_or_half_a_word(
    broker: RunningBroker, client: RawClient
) -> None:
    create_topic(client, "topic")
    (listener,) = broker.broker.listeners
    peers = []
    for number in range(2000):
        peer = socket.create_connection(("127.0.0.1", broker.port))
        if number % 2:
            peer.sendall(frame(MetadataRequest(topics=None), 12)[: number % 20 + 1])
        peers.append(peer)
    until(lambda: len(listener.connections) == 2001)
    # Whoever has something to say is served as before.
    for offset in range(20):
        assert produce_to(client, "topic").base_offset == offset
        assert fetch_from(client, "topic", offset).high_watermark == offset + 1
    for peer in peers:
        peer.close()
    until(lambda: len(listener.connections) == 1)


def resident_bytes() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def test_large_frames_that_are_announced_and_never_sent_cost_nothing(
    broker: RunningBroker, client: RawClient
) -> None:
    """Each announces the largest request there may be: together far more than the budget."""
    create_topic(client, "topic")
    budget = broker.broker.budget
    before = resident_bytes()
    size = broker.broker.config.socket_request_max_bytes
    peers = []
    for _ in range(3 * budget.bytes_max // size):
        peer = RawClient(broker)
        peer.socket.sendall(struct.pack(">i", size) + b"x" * 100)
        peers.append(peer)
    until(lambda: budget.bytes_reserved == budget.bytes_max // size * size)
    # It is reserved, but memory is used only for what has come.
    assert resident_bytes() - before < budget.bytes_max // 4
    # Requests of ordinary size need nothing of it.
    assert produce_to(client, "topic").error_code == 0
    for peer in peers:
        peer.close()
    until(lambda: budget.bytes_reserved == 0)
