"""Deadlines of groups: at their time, moved without cost, and gone when they are cancelled."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from klamm.broker.groups.timers import GroupTimers
from klamm.broker.tests.in_trio import in_virtual_time
from klamm.broker.timers import Timers


class Fired:
    """What has expired, and when, in milliseconds since the begin."""

    def __init__(self, timers: Timers) -> None:
        self.broker_timers = timers
        self.timers = GroupTimers(timers, lambda expire: expire())
        self.fired: list[tuple[str, int]] = []
        self._start = trio.current_time()

    def schedule(self, key: str, delay_ms: int, name: str | None = None) -> None:
        def expire() -> None:
            self.fired.append((name or key, round((trio.current_time() - self._start) * 1000)))

        self.timers.schedule(key, delay_ms, expire)


@asynccontextmanager
async def running() -> AsyncIterator[Fired]:
    timers = Timers()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(timers.run)
        yield Fired(timers)
        nursery.cancel_scope.cancel()


@in_virtual_time
async def test_each_key_fires_once_at_its_time() -> None:
    async with running() as world:
        world.schedule("b", 2000)
        world.schedule("a", 1000)
        await trio.sleep(10)
        assert world.fired == [("a", 1000), ("b", 2000)]


@in_virtual_time
async def test_a_later_deadline_replaces_an_earlier_one_and_the_other_way_round() -> None:
    async with running() as world:
        world.schedule("later", 1000, "old")
        world.schedule("later", 3000, "new")
        world.schedule("earlier", 4000, "old")
        world.schedule("earlier", 2000, "new")
        await trio.sleep(10)
        assert world.fired == [("new", 2000), ("new", 3000)]


@in_virtual_time
async def test_a_session_that_goes_on_costs_no_timer_each_time() -> None:
    async with running() as world:
        for _ in range(1000):
            world.schedule("session", 10_000)
            await trio.sleep(3)
        assert world.fired == []
        assert len(world.broker_timers._heap) == 1
        await trio.sleep(20)
        assert world.fired == [("session", 2997_000 + 10_000)]


@in_virtual_time
async def test_what_is_cancelled_does_not_fire() -> None:
    async with running() as world:
        world.schedule("a", 1000)
        world.schedule("b", 1000)
        world.timers.cancel("a")
        world.timers.cancel("unknown")
        await trio.sleep(2)
        assert world.fired == [("b", 1000)]
        world.schedule("a", 1000)
        world.schedule("b", 1000)
        world.timers.cancel_all()
        await trio.sleep(2)
        assert world.fired == [("b", 1000)]


@in_virtual_time
async def test_what_fires_may_set_its_own_key_again() -> None:
    async with running() as world:
        times = 0

        def again() -> None:
            nonlocal times
            times += 1
            if times < 3:
                world.timers.schedule("key", 1000, again)

        world.timers.schedule("key", 0, again)
        await trio.sleep(10)
        assert times == 3
