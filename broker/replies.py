"""What a handler may return instead of a response: a reply that comes later.

`Pending` is for the hot paths (a produce that waits for its sync, a fetch that waits for data): no
task, just a callback. Everything else that has to wait is an `async def handle` and runs in a task.

`Steps` is for handlers that do something for each of what may be thousands of partitions: a
generator that yields where others may have their turn (see steps.py), and returns what any other
handler returns. A short request is answered at once all the same.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeAlias, TypeVar

from klamm.broker.steps import Stepwise

Response = TypeVar("Response")

Steps: TypeAlias = Stepwise[Response | Awaitable[Response] | "Pending[Response]" | None]


class Pending(Generic[Response]):
    """A reply that somebody completes later, exactly once."""

    __slots__ = ("_deliver", "_fail", "_response", "abandoned", "on_abandon")

    def __init__(self) -> None:
        self._deliver: Callable[[Response], None] | None = None
        self._fail: Callable[[Exception], None] | None = None
        self._response: Response | None = None
        self.abandoned = False
        self.on_abandon: Callable[[], None] | None = None

    def complete(self, response: Response) -> None:
        if self.abandoned:
            return
        assert self._response is None, "a reply is completed once"
        self._response = response
        if self._deliver is not None:
            self._deliver(response)

    def fail(self, error: Exception) -> None:
        """There will be no response, because of a fault in the broker."""
        if not self.abandoned and self._fail is not None:
            self._fail(error)

    def deliver_to(
        self,
        deliver: Callable[[Response], None],
        fail: Callable[[Exception], None] | None = None,
    ) -> None:
        self._deliver = deliver
        self._fail = fail
        if self._response is not None:
            deliver(self._response)

    def abandon(self) -> None:
        """Nobody waits any more (the connection has gone): drop what the reply holds on to."""
        self.abandoned = True
        self._deliver = None
        self._fail = None
        if self.on_abandon is not None:
            self.on_abandon()
            self.on_abandon = None


def complete_after(
    response: Response, waits: Sequence[Callable[[Callable[[], None]], None]]
) -> Pending[Response]:
    """A reply that is completed when each of the waits, at least one, has called back."""
    pending: Pending[Response] = Pending()
    left = len(waits)
    assert left > 0, "nobody would ever complete it"

    def called_back() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            pending.complete(response)

    for wait in waits:
        wait(called_back)
    return pending
