"""Error codes of transactions that older requests do not know."""

from __future__ import annotations

from klamm.wire.errors import ErrorCode


def known_code(code: ErrorCode, *, knows_fenced: bool) -> ErrorCode:
    """Before there was PRODUCER_FENCED, a fenced producer was told INVALID_PRODUCER_EPOCH."""
    if code is ErrorCode.PRODUCER_FENCED and not knows_fenced:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
