"""The reactor: everyone is served, nobody for too long, and a fault is one socket's own."""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from klamm.broker import reactor as reactor_module
from klamm.broker.reactor import READABLE, Reactor
from klamm.broker.tests.in_trio import in_trio


class Ear:
    """The receiving end of a socket pair; what it hears is handled by a function."""

    def __init__(self, reactor: Reactor, on_heard: Callable[[bytes], None]) -> None:
        self.mouth, self.socket = socket.socketpair()
        self.socket.setblocking(False)
        self.closed = False
        self._reactor = reactor
        self._on_heard = on_heard
        reactor.register(self.socket.fileno(), self, READABLE)

    def on_events(self, mask: int) -> None:
        assert mask & READABLE
        self._on_heard(self.socket.recv(100))

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._reactor.unregister(self.socket.fileno())
            self.socket.close()
            self.mouth.close()


@asynccontextmanager
async def running() -> AsyncIterator[Reactor]:
    reactor = Reactor()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(reactor.run)
        yield reactor
        nursery.cancel_scope.cancel()
    reactor.close()


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - what is waited for happens outside of trio
        await trio.sleep(0.001)


async def wait_until_served(heard: list[bytes]) -> None:
    before = len(heard)
    await until(lambda: len(heard) > before)


@in_trio
async def test_every_socket_is_served() -> None:
    heard: dict[int, bytes] = {}
    async with running() as reactor:
        ears = [Ear(reactor, partial(heard.__setitem__, number)) for number in range(100)]
        for number, ear in enumerate(ears):
            ear.mouth.send(b"%d" % number)
        await until(lambda: len(heard) == 100)
        for ear in ears:
            ear.close()
    assert heard == {number: b"%d" % number for number in range(100)}


@in_trio
async def test_a_fault_closes_one_socket_and_no_other(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[bytes] = []

    def fail(data: bytes) -> None:
        raise ValueError("on purpose")

    async with running() as reactor:
        faulty, healthy = Ear(reactor, fail), Ear(reactor, heard.append)
        faulty.mouth.send(b"x")
        await until(lambda: faulty.closed)
        healthy.mouth.send(b"y")
        await until(lambda: heard == [b"y"])
        healthy.close()
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


@in_trio
async def test_who_asked_is_called_once_after_the_sweep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reactor_module, "TURN_SECONDS_MAX", 60.0)
    order: list[str] = []
    async with running() as reactor:

        def hear(data: bytes) -> None:
            order.append("heard")
            reactor.call_after_sweep(lambda: order.append("called"))

        ears = [Ear(reactor, hear) for _ in range(3)]
        for ear in ears:
            ear.mouth.send(b"x")
        await until(lambda: len(order) == 6)
        for ear in ears:
            ear.close()
    assert order == ["heard"] * 3 + ["called"] * 3


@in_trio
async def test_a_call_from_another_task_wakes_the_reactor() -> None:
    called = trio.Event()
    async with running() as reactor:
        # It is waiting for sockets by now, of which there are none.
        await wait_all_tasks_blocked()
        reactor.call_after_sweep(called.set)
        await called.wait()
        again = trio.Event()
        await wait_all_tasks_blocked()
        reactor.call_after_sweep(again.set)
        await again.wait()


@in_trio
async def test_a_call_that_fails_does_not_keep_others_from_being_called(
    caplog: pytest.LogCaptureFixture,
) -> None:
    called = trio.Event()

    def fail() -> None:
        raise ValueError("on purpose")

    async with running() as reactor:
        reactor.call_after_sweep(fail)
        reactor.call_after_sweep(called.set)
        await called.wait()
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


@in_trio
async def test_other_tasks_have_their_turn_between_sockets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reactor_module, "TURN_SECONDS_MAX", 0.0)
    heard: list[bytes] = []
    seen: list[int] = []
    async with running() as reactor:
        ears = [Ear(reactor, heard.append) for _ in range(20)]
        for number, ear in enumerate(ears):
            ear.mouth.send(bytes([number]))
        while len(heard) < 20:
            seen.append(len(heard))
            await trio.lowlevel.checkpoint()
        for ear in ears:
            ear.close()
    # Each was served once, and in between somebody else could run.
    assert sorted(heard) == [bytes([number]) for number in range(20)]
    assert len(set(seen)) > 10


@in_trio
async def test_one_that_always_has_work_does_not_starve_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reactor_module, "TURN_SECONDS_MAX", 0.0)
    heard: list[str] = []
    async with running() as reactor:

        def talk_on(data: bytes) -> None:
            heard.append("talker")
            talker.mouth.send(b"x")
            reactor.call_after_sweep(lambda: heard.append("called"))

        talker = Ear(reactor, talk_on)
        quiet = Ear(reactor, lambda data: heard.append("quiet"))
        talker.mouth.send(b"x")
        await until(lambda: heard.count("talker") > 5)
        quiet.mouth.send(b"x")
        asked_at = len(heard)
        await until(lambda: "quiet" in heard)
        talker.close()
        quiet.close()
    assert heard.count("called") >= heard.count("talker") - 1
    assert heard[asked_at:].count("talker") < 1000


class Clock:
    """It goes on by a hundredth of a moment whenever somebody looks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.looks = 0
        self.on_look: Callable[[], None] = lambda: None
        monkeypatch.setattr(reactor_module, "perf_counter", self)

    def __call__(self) -> float:
        self.now += reactor_module.ASK_AGAIN_S / 100
        self.looks += 1
        self.on_look()
        return self.now


@in_trio
async def test_after_many_short_waits_the_next_request_is_awaited_for_a_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    heard: list[bytes] = []
    reactor = Reactor()
    ear = Ear(reactor, heard.append)
    for number in range(reactor_module.SHORT_WAITS_MIN):
        if number:
            reactor._take_turn()
        ear.mouth.send(b"x")
        await reactor._wait()
    heard.clear()

    def send_late() -> None:
        if clock.looks == 20:
            ear.mouth.send(b"late")

    clock.looks, clock.on_look = 0, send_late
    reactor._take_turn()
    assert heard == [b"x", b"late"]
    # Then nothing came for a moment, so the next turn ends at once.
    clock.looks, clock.on_look = 0, lambda: None
    reactor._take_turn()
    assert clock.looks < 20
    ear.close()
    reactor.close()


@in_trio
async def test_nobody_is_awaited_who_takes_some_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    heard: list[bytes] = []
    reactor = Reactor()
    ear = Ear(reactor, heard.append)
    for number in range(2 * reactor_module.SHORT_WAITS_MIN):
        ear.mouth.send(b"x")
        if number == reactor_module.SHORT_WAITS_MIN - 1:
            clock.on_look = lambda: setattr(clock, "now", clock.now + 1)
        await reactor._wait()
        clock.looks, clock.on_look = 0, lambda: None
        reactor._take_turn()
        assert clock.looks < 20 or number == 2 * reactor_module.SHORT_WAITS_MIN - 1
    assert heard == [b"x"] * 2 * reactor_module.SHORT_WAITS_MIN
    ear.close()
    reactor.close()


@in_trio
async def test_other_tasks_have_their_turn_beside_a_client_that_is_always_awaited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    heard: list[bytes] = []
    async with running() as reactor:

        def talk_on(data: bytes) -> None:
            heard.append(data)
            ear.mouth.send(b"x")

        reactor._short_waits = reactor_module.SHORT_WAITS_MIN
        ear = Ear(reactor, talk_on)
        ear.mouth.send(b"x")
        await wait_until_served(heard)
        served = len(heard)
        await wait_until_served(heard)
        assert served < len(heard)
        assert clock.now > 2 * reactor_module.TURN_SECONDS_MAX
        ear.close()


@in_trio
async def test_a_descriptor_that_was_used_again_does_not_get_the_events_of_the_old_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reactor_module, "TURN_SECONDS_MAX", 0.0)
    heard: list[str] = []
    async with running() as reactor:
        replaced: list[Ear] = []

        def replace(data: bytes) -> None:
            """Whoever is served first closes the other and makes a new one in its place."""
            other = second if data == b"first" else first
            number = other.socket.fileno()
            other.close()
            replaced.append(Ear(reactor, lambda data: heard.append("new")))
            assert replaced[0].socket.fileno() == number

        first, second = Ear(reactor, replace), Ear(reactor, replace)
        first.mouth.send(b"first")
        second.mouth.send(b"second")
        await until(lambda: bool(replaced))
        await wait_all_tasks_blocked()
        # Nobody has sent anything to the new one: reading from it would have failed.
        assert [ear.closed for ear in replaced] == [False]
        for ear in (first, second, *replaced):
            ear.close()
