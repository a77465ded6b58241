"""Tests that are `async`: each runs in an event loop of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import ParamSpec

import trio
from trio.testing import MockClock

Arguments = ParamSpec("Arguments")

TIMEOUT_S = 20.0


def in_trio(test: Callable[Arguments, Awaitable[None]]) -> Callable[Arguments, None]:
    """Run a test in real time."""

    @wraps(test)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        async def main() -> None:
            with trio.fail_after(TIMEOUT_S):
                await test(*args, **kwargs)

        trio.run(main)

    return run


def in_virtual_time(test: Callable[Arguments, Awaitable[None]]) -> Callable[Arguments, None]:
    """Run a test whose clock jumps to the next deadline when there is nothing else to do."""

    @wraps(test)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        clock = MockClock(autojump_threshold=0)
        trio.run(partial(test, *args, **kwargs), clock=clock)

    return run
