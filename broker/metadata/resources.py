"""How resources with configs are named."""

from __future__ import annotations

import re

from klamm.broker.config.errors import shown
from klamm.broker.metadata.topics import Refused
from klamm.wire.errors import ErrorCode


def check_named(name: str, what: str) -> None:
    if not name:
        raise Refused(ErrorCode.INVALID_REQUEST, f"The name of the {what} is empty.")


def check_broker_id(name: str, node_id: int) -> None:
    """Numbers as Java reads them: a sign and leading zeros are fine, spaces are not."""
    if not re.fullmatch(r"[+-]?\d{1,100}", name):
        raise Refused(ErrorCode.INVALID_REQUEST, f"{shown(name)!r} is not the id of a broker.")
    if int(name) != node_id:
        raise Refused(
            ErrorCode.INVALID_REQUEST, f"This is broker {node_id}; ask {shown(name)} itself."
        )
