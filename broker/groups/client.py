"""Who sent a request, as groups remember their members."""

from __future__ import annotations

from typing import TYPE_CHECKING

from klamm.coordinator.ports import Client

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext


def client_of(context: RequestContext) -> Client:
    """The host is written as Java prints an address, with a slash in front: tools show it so."""
    host = context.connection.peer.rpartition(":")[0]
    return Client(context.header.client_id or "", f"/{host}", context.api_version)
