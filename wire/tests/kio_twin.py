"""The same message as the independent codec kio knows it, and the way from its values to ours.

kio declares fields under nearly the same names in the same order. It turns error codes, durations
and points in time into objects of its own, so those fields can only hold what these objects can.
"""

import dataclasses
import importlib
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.schema.index import schema_name_map
from kio.serial._introspect import classify_field

from klamm.wire.layout import layout_of
from klamm.wire.schema import ZERO_UUID, Field, Message, Primitive, Struct
from klamm.wire.tests.values import Narrowing, messages

MILLISECOND = timedelta(milliseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# What every clock and calendar in Python can say: durations to a century, times from 1970 to 2200.
DURATIONS_MS = st.integers(-(10**12), 10**12)
TIMES_MS = st.integers(0, 7_258_118_400_000)

NARROWED: dict[str, st.SearchStrategy[int]] = {
    "error_code": st.sampled_from([int(code.value) for code in ErrorCode]),
    "timedelta_i64": DURATIONS_MS,
    "datetime_i64": TIMES_MS,
}

_paths = {
    (path.rpartition(":")[2], version): path
    for by_version in schema_name_map.values()
    for version, by_type in by_version.items()
    for path in by_type.values()
}


def has_twin(cls: type[Message], version: int) -> bool:
    return (cls.__name__, version) in _paths


def twin_of(cls: type[Message], version: int) -> Any:
    """Give kio's class for this message in this version."""
    module, _, name = _paths[cls.__name__, version].partition(":")
    return getattr(importlib.import_module(module), name)


def paired_fields(cls: type[Struct], twin: Any, version: int) -> list[tuple[Field, Any]]:
    """Pair our fields with kio's by position, and insist that the names agree."""
    layout = layout_of(cls, version)
    present = [f for f in cls.FIELDS if f in layout.plain or f in layout.tagged]
    pairs = list(zip(present, dataclasses.fields(twin), strict=True))
    for ours, theirs in pairs:
        assert ours.name.removesuffix("_ms") == theirs.name.rstrip("_").removesuffix("_ms")
    return pairs


def struct_of(kio_field: Any) -> Any:
    """Give kio's class of the structs that one of its fields holds."""
    return classify_field(kio_field).type_


@cache
def messages_for_both(cls: type[Message], version: int) -> st.SearchStrategy[Any]:
    """Give the messages that kio can hold too."""
    return messages(cls, version, _narrowing_to(cls, twin_of(cls, version), version))


def _narrowing_to(cls: type[Message], twin: Any, version: int) -> Narrowing:
    kio_types: dict[tuple[type[Struct], str], str] = {}

    def collect(owner: type[Struct], owner_twin: Any) -> None:
        for ours, theirs in paired_fields(owner, owner_twin, version):
            if isinstance(ours.kind, Primitive):
                kio_types[owner, ours.name] = theirs.metadata["kafka_type"]
            else:
                collect(ours.kind, struct_of(theirs))

    collect(cls, twin)
    return lambda owner, declared: NARROWED.get(kio_types[owner, declared.name])


def as_ours(cls: type[Struct], theirs: Any, version: int) -> Any:
    """Make our message of a kio entity."""
    return cls(
        **{
            ours.name: _value(ours, getattr(theirs, kio_field.name), version)
            for ours, kio_field in paired_fields(cls, type(theirs), version)
        }
    )


def _value(ours: Field, theirs: Any, version: int) -> Any:
    if not ours.is_array:
        return _single_value(ours, theirs, version)
    return None if theirs is None else [_single_value(ours, item, version) for item in theirs]


def _single_value(ours: Field, theirs: Any, version: int) -> Any:
    if not isinstance(ours.kind, Primitive):
        return None if theirs is None else as_ours(ours.kind, theirs, version)
    if theirs is None and ours.kind.name == "uuid":
        return ZERO_UUID
    if theirs is None and ours.kind.name == "int64":
        return -1  # kio's way to say that there is no such point in time.
    if isinstance(theirs, ErrorCode):
        return int(theirs.value)
    if isinstance(theirs, timedelta):
        return theirs // MILLISECOND
    if isinstance(theirs, datetime):
        return (theirs - EPOCH) // MILLISECOND
    if isinstance(theirs, UUID):
        return UUID(bytes=theirs.bytes)
    return theirs
