"""Hooks by which a test fails, delays or drops a chosen request of a running broker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from klamm.wire.errors import ErrorCode
from klamm.wire.header import RequestHeader


@dataclass(frozen=True, slots=True)
class Action:
    """What happens to the request instead of its handler: an error, a delay, or (neither set) the
    connection is closed without a reply."""

    error: ErrorCode | None = None
    delay_s: float | None = None


@dataclass(slots=True)
class Interception:
    """One hook: which requests it takes and how many are left."""

    api_key: int
    action: Action
    times: int
    matches: Callable[[RequestHeader, Any], bool]


class Interceptors:
    """The hooks that are set, in the order in which they were set.

    Attributes:
        failure: the first exception of a `matches`, for the test that has written it.
    """

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self._hooks: list[Interception] = []
        # Read on every request: a plain attribute is cheaper than a call.
        self.active = False

    def add(self, hook: Interception) -> None:
        self._hooks.append(hook)
        self.active = True

    def clear(self) -> None:
        self._hooks.clear()
        self.active = False

    def action_for(self, header: RequestHeader, request: Any) -> Action | None:
        for hook in self._hooks:
            if hook.api_key == header.api_key and self._matches(hook, header, request):
                hook.times -= 1
                if hook.times == 0:
                    self._hooks.remove(hook)
                    self.active = bool(self._hooks)
                return hook.action
        return None

    def _matches(self, hook: Interception, header: RequestHeader, request: Any) -> bool:
        try:
            return hook.matches(header, request)
        except Exception as error:
            # Raised here, it would close the connection, and the client would try for ever.
            self.failure = self.failure or error
            return False
