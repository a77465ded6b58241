"""What a handler knows besides the request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from klamm.wire.header import RequestHeader

if TYPE_CHECKING:
    from klamm.broker.broker import Broker
    from klamm.broker.connection import Connection


class RequestContext:
    """The broker, the connection and the header of one request."""

    __slots__ = ("broker", "connection", "header")

    def __init__(self, broker: Broker, connection: Connection, header: RequestHeader) -> None:
        self.broker = broker
        self.connection = connection
        self.header = header

    @property
    def api_version(self) -> int:
        return self.header.api_version
