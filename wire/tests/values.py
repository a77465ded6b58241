"""Hypothesis strategies for the values of any message in any version.

Values stay small, because there are hundreds of messages and versions; but strings, bytes and
arrays now and then are long enough for a length of two bytes, and the ends of each range come up.
"""

from collections.abc import Callable
from functools import cache
from typing import Any
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st

from klamm.wire.layout import layout_of
from klamm.wire.schema import Field, Message, Primitive, Struct

ITEMS_MAX = 2
# One more than a compact length of one byte can say.
LONG = 128

# Narrows what a primitive field may hold, or gives None to leave it as wide as its type.
Narrowing = Callable[[type[Struct], Field], st.SearchStrategy[Any] | None]


def some_examples(share: int) -> settings:
    """Give a share (1/share) of the profile's examples to each of many parametrised cases.

    Without a database of failures, which costs more than the examples when the cases are hundreds.
    """
    profile = settings()
    return settings(max_examples=max(1, profile.max_examples // share), database=None)


def _integers(bits: int, *, signed: bool = True) -> st.SearchStrategy[int]:
    if signed:
        return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return st.integers(0, 2**bits - 1)


_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(
    ["x" * (LONG - 1), "ü" * LONG]
)
_bytes = st.binary(max_size=6) | st.just(b"\x00" * LONG)

PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": _integers(8),
    "int16": _integers(16),
    "int32": _integers(32),
    "int64": _integers(64),
    "uint16": _integers(16, signed=False),
    "uint32": _integers(32, signed=False),
    "float64": st.floats(allow_nan=False),
    "uuid": st.binary(min_size=16, max_size=16).map(lambda raw: UUID(bytes=raw)),
    "string": _text,
    "bytes": _bytes,
    "records": _bytes,
}


def messages(
    cls: type[Message], version: int, narrowing: Narrowing | None = None
) -> st.SearchStrategy[Any]:
    """Give the messages that this version can hold; fields that it lacks have their default."""
    if narrowing is None:
        return _wide_structs(cls, version)
    return _structs(cls, version, narrowing)


@cache
def _wide_structs(cls: type[Struct], version: int) -> st.SearchStrategy[Any]:
    return _structs(cls, version, lambda owner, declared: None)


def _structs(cls: type[Struct], version: int, narrowing: Narrowing) -> st.SearchStrategy[Any]:
    layout = layout_of(cls, version)
    fields = {declared.name: _field(cls, declared, version, narrowing) for declared in layout.plain}
    for declared in layout.tagged:
        default = st.builds(declared.default_value)
        fields[declared.name] = default | _field(cls, declared, version, narrowing)
    return st.builds(cls, **fields)


def _field(
    owner: type[Struct], declared: Field, version: int, narrowing: Narrowing
) -> st.SearchStrategy[Any]:
    kind = declared.kind
    if isinstance(kind, Primitive):
        narrowed = narrowing(owner, declared)
        values = PRIMITIVES[kind.name] if narrowed is None else narrowed
    else:
        values = _structs(kind, version, narrowing)
    if declared.is_array:
        values = st.lists(values, max_size=ITEMS_MAX)
        if isinstance(kind, Primitive):
            values |= st.just([kind.default] * LONG)
    if version in declared.nullable:
        values |= st.none()
    return values


def same(one: object, other: object) -> bool:
    """Tell whether two values are equal, and count NaN as equal to itself."""
    if isinstance(one, Struct) and isinstance(other, Struct):
        return one.FIELDS == other.FIELDS and all(
            same(getattr(one, declared.name), getattr(other, declared.name))
            for declared in one.FIELDS
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other or (one != one and other != other)
