"""Replies that leave one after the other: thousands of them would hold up the event loop."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

import trio

from klamm.broker.steps import StepRunner, Stepwise

logger = logging.getLogger(__name__)


class Outbox:
    """Makes calls soon, in their order, and lets others have their turn in between.

    Args:
        nursery: where that happens.
    """

    def __init__(self, nursery: trio.Nursery, steps: StepRunner) -> None:
        self._nursery = nursery
        self._steps = steps
        self._calls: deque[Callable[[], None]] = deque()

    def put(self, call: Callable[[], None]) -> None:
        self._calls.append(call)
        if len(self._calls) == 1:
            self._nursery.start_soon(self._steps.run, self._make_calls())

    def _make_calls(self) -> Stepwise[None]:
        while self._calls:
            try:
                self._calls[0]()
            except Exception:
                # One reply's fault must not keep back the others.
                logger.exception("a fault in the broker after a rebalance")
            self._calls.popleft()
            yield None
