"""The one way in which a coordinator refuses a request."""

from __future__ import annotations

from klamm.wire.errors import ErrorCode


class CoordinatorError(Exception):
    """A request is refused with a code of the protocol; the message goes where the reply has room
    for one."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or code.name)
        self.code = code
        self.message = message
