"""Hostile peers: one line each, bounded memory, and nobody else notices.

The 50 ms that the event loop may be held up are asserted by the broker's own tests, in CPU time.
Here a client of another process must only never wait for long.
"""

from __future__ import annotations

import random
import resource
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from compat_tests.clients import raw
from compat_tests.clients.fixtures import create_topic
from compat_tests.process.abuse import (
    ABUSES,
    IMPATIENT,
    UNSUPPORTED_VERSION,
    Abuse,
    Deaf,
    Peer,
)
from compat_tests.process.fixtures import StartKlamm
from compat_tests.process.steady import SteadyClient
from compat_tests.process.watched import WatchedKlamm, until
from compat_tests.twin.batches import R, batch

CONNECTIONS = 2_000
MEMORY_GROWTH_MAX = 64 * 1024 * 1024
WAIT_MAX_S = 1.0
# klamm's own default of socket.request.max.bytes.
FRAME_BYTES = 16 * 1024 * 1024


@pytest.fixture
def klamm(start_klamm: StartKlamm) -> WatchedKlamm:
    klamm = start_klamm(IMPATIENT)
    create_topic(klamm.bootstrap, "steady")
    create_topic(klamm.bootstrap, "large")
    for number in range(8):
        # Together more than the kernel keeps for one connection.
        assert raw.produce(klamm.bootstrap, "large", batch(R(bytes(900_000)))) == (0, number)
    return klamm


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = CONNECTIONS + 500
    assert hard >= needed, f"the hard limit of open files is {hard}: {needed} are needed"
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def lines_about(klamm: WatchedKlamm, peer: Peer) -> list[str]:
    return [line for line in klamm.complaints() if f"{peer.name}:" in line]


def check_line(klamm: WatchedKlamm, peer: Peer, says: str) -> None:
    until(lambda: bool(lines_about(klamm, peer)), f"a line about {says!r}")
    (line,) = lines_about(klamm, peer)
    assert line.startswith(f"closing {peer.name}: ")
    assert says in line


def test_each_abuse_is_closed_with_one_line(klamm: WatchedKlamm) -> None:
    with SteadyClient(klamm.bootstrap, "steady") as steady, ExitStack() as stack:
        for abuse in ABUSES.values():
            peer = Peer(klamm.bootstrap, abuse.data)
            stack.callback(peer.close)
            assert peer.is_closed_by_the_broker()
            check_line(klamm, peer, abuse.says)
            steady.wait_for_more(1)
    assert len(klamm.complaints()) == len(ABUSES)
    assert steady.longest_wait_s < WAIT_MAX_S


def test_unknown_version_of_api_versions_is_answered(klamm: WatchedKlamm) -> None:
    """In version 0, which every client can read (KIP-511); the connection goes on."""
    with raw.connect(klamm.bootstrap) as connection:
        # A header with tags, of which there are none, and the header of before they were.
        for version, rest in ((99, b"\x00"), (32767, b"\x00"), (-1, b"")):
            connection.sendall(raw.request_frame(raw.API_API_VERSIONS, version, rest))
            correlation_id, reply = raw.read_reply(connection)
            assert correlation_id == 7
            assert struct.unpack_from(">h", reply) == (UNSUPPORTED_VERSION,)
    assert klamm.complaints() == []


def test_peers_that_never_read(klamm: WatchedKlamm) -> None:
    before = klamm.memory_bytes()
    with SteadyClient(klamm.bootstrap, "steady") as steady, ExitStack() as stack:
        peers = [Deaf(klamm.bootstrap, "large") for _ in range(10)]
        for peer in peers:
            stack.callback(peer.close)
        for peer in peers:
            check_line(klamm, peer, "takes none of its reply for 0.6 s")
        steady.wait_for_more(5)
    assert len(klamm.complaints()) == len(peers)
    assert klamm.memory_peak_bytes() - before < MEMORY_GROWTH_MAX
    assert steady.longest_wait_s < WAIT_MAX_S


@pytest.mark.usefixtures("many_descriptors")
def test_connections_that_say_nothing(klamm: WatchedKlamm) -> None:
    before = klamm.memory_bytes()
    with SteadyClient(klamm.bootstrap, "steady") as steady, ExitStack() as stack:
        for _ in range(CONNECTIONS):
            stack.enter_context(raw.connect(klamm.bootstrap))
        steady.wait_for_more(20)
        # None was refused: the last one is served like the first.
        assert raw.is_alive(klamm.bootstrap)
        assert klamm.memory_bytes() - before < MEMORY_GROWTH_MAX
    assert klamm.complaints() == []
    assert steady.longest_wait_s < WAIT_MAX_S
    assert raw.is_alive(klamm.bootstrap)


@pytest.mark.usefixtures("many_descriptors")
def test_all_abuses_at_once(klamm: WatchedKlamm) -> None:
    """Shuffled, among connections that say nothing."""
    before = klamm.memory_bytes()
    acts: list[Abuse | str] = [*list(ABUSES.values()) * 20, *["deaf"] * 10, *["silent"] * 1000]
    random.Random(11).shuffle(acts)
    misbehaving: list[tuple[Peer, str]] = []
    with SteadyClient(klamm.bootstrap, "steady") as steady, ExitStack() as stack:
        for act in acts:
            if isinstance(act, Abuse):
                misbehaving.append((Peer(klamm.bootstrap, act.data), act.says))
                stack.callback(misbehaving[-1][0].close)
            elif act == "deaf":
                misbehaving.append((Deaf(klamm.bootstrap, "large"), "takes none of its reply"))
                stack.callback(misbehaving[-1][0].close)
            else:
                stack.enter_context(raw.connect(klamm.bootstrap))
        until(lambda: len(klamm.complaints()) >= len(misbehaving), "a line about each")
        steady.wait_for_more(5)
    lines = klamm.complaints()
    assert len(lines) == len(misbehaving)
    for peer, says in misbehaving:
        (line,) = (line for line in lines if f"{peer.name}:" in line)
        assert says in line
    assert klamm.memory_peak_bytes() - before < MEMORY_GROWTH_MAX
    assert steady.longest_wait_s < WAIT_MAX_S
    klamm.stop()


def test_large_frames_that_never_come(klamm: WatchedKlamm) -> None:
    """A declared size costs nothing: only bytes that came do."""
    before = klamm.memory_bytes()
    with SteadyClient(klamm.bootstrap, "steady") as steady, ExitStack() as stack:
        peers = [
            Peer(klamm.bootstrap, struct.pack(">i", FRAME_BYTES) + bytes(100)) for _ in range(20)
        ]
        for peer in peers:
            stack.callback(peer.close)
        steady.wait_for_more(10)
        for peer in peers:
            check_line(klamm, peer, "half a request")
    assert klamm.memory_peak_bytes() - before < MEMORY_GROWTH_MAX
    assert steady.longest_wait_s < WAIT_MAX_S


def test_connections_that_end_in_the_middle(klamm: WatchedKlamm) -> None:
    """Nothing is said about peers that go: that is no fault of theirs."""
    body = raw.produce_body("steady", batch())
    frame = raw.request_frame(raw.API_PRODUCE, raw.PRODUCE_VERSION, body)
    with SteadyClient(klamm.bootstrap) as steady:
        for size in range(len(frame)):
            connection = raw.connect(klamm.bootstrap)
            connection.sendall(frame[:size])
            if size % 2:
                # Ends with a reset.
                linger = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            connection.close()
        steady.wait_for_more(5)
    assert klamm.complaints() == []
    assert raw.list_offset(klamm.bootstrap, "steady", 0, -1) == (0, 0)
