"""Letting go of long messages in steps.

A message of tens of thousands of structs is freed by Python in one go when its last user has gone,
and that takes as long as many a request. So whoever is done with it holds on to the structs, lets
the message go, and then lets go of them bit by bit (`steps.let_go`). Nothing is changed: others may
share any part of a message, and keep what they have.
"""

from __future__ import annotations

from functools import cache

from klamm.broker.steps import Stepwise
from klamm.wire.schema import Field, Primitive, Struct


def structs_of(*messages: Struct | None) -> Stepwise[list[Struct]]:
    """All structs within messages, each before those that it holds itself."""
    found: list[Struct] = []
    # It grows while it is walked along.
    holders = [message for message in messages if message is not None]
    for holder in holders:
        for declared in _struct_fields(type(holder)):
            value = getattr(holder, declared.name)
            if not value:
                continue
            held = value if declared.is_array else (value,)
            found.extend(held)
            assert not isinstance(declared.kind, Primitive)
            if _struct_fields(declared.kind):
                holders.extend(held)
        yield None
    return found


@cache
def _struct_fields(cls: type[Struct]) -> tuple[Field, ...]:
    return tuple([each for each in cls.FIELDS if not isinstance(each.kind, Primitive)])
