"""Requests and replies as plain data: dicts, lists, ints, strings, bytes.

The bytes come from kio, a codec that shares no code with klamm. One description of a request
serves all versions: a field that a version does not have is left out, a field that the description
does not name takes its default. A name that no version has is a mistake in the test.
"""

from __future__ import annotations

import datetime
import enum
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from io import BytesIO
from typing import Any, get_args

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer

ZERO_UUID = uuid.UUID(int=0)
CLIENT_ID = "twin"

Plain = dict[str, Any]

_KEYS = {name: key for key, name in api_key_map.items()}
_MILLISECOND = datetime.timedelta(milliseconds=1)


class ReplyError(AssertionError):
    """A broker sent bytes that are not a reply of the expected form."""


def api_key(api: str) -> int:
    return _KEYS[api]


# Versions that the descriptors mark as unstable: a stock broker does not serve them.
_UNSTABLE = {"init_producer_id": 6}


@cache
def versions(api: str) -> list[int]:
    """All versions of an API that a stock Kafka serves."""
    return [version for version in sorted(schema_name_map[api]) if version != _UNSTABLE.get(api)]


def encode_request(api: str, version: int, body: Plain, *, correlation_id: int = 1) -> bytes:
    """The frame without its length prefix: header and body."""
    schema: Any = load_request_schema(api_key(api), version)
    header_type = schema.__header_schema__
    header = header_type(
        request_api_key=api_key(api),
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=CLIENT_ID,
    )
    buffer = BytesIO()
    entity_writer(header_type)(buffer, header)
    entity_writer(schema)(buffer, _build(schema, body, known=_field_names(api)))
    return buffer.getvalue()


def decode_response(
    api: str, version: int, frame: bytes, *, correlation_id: int = 1
) -> tuple[Plain, bool]:
    """The body of a reply, and whether its bytes are the one canonical encoding of it.

    Raises:
        ReplyError: when the frame has another correlation id or bytes that do not belong to it.
    """
    schema: Any = load_response_schema(api_key(api), version)
    try:
        header, offset = entity_reader(schema.__header_schema__)(frame, 0)
        body, size = entity_reader(schema)(frame, offset)
    except Exception as problem:
        raise ReplyError(f"{api} v{version}: kio cannot read {frame!r}: {problem!r}") from problem
    if offset + size != len(frame):
        rest = frame[offset + size :]
        raise ReplyError(f"{api} v{version}: {len(rest)} bytes after the body: {rest!r}")
    seen: Any = header
    if seen.correlation_id != correlation_id:
        raise ReplyError(f"correlation id {seen.correlation_id} instead of {correlation_id}")
    again = BytesIO()
    entity_writer(schema.__header_schema__)(again, header)
    entity_writer(schema)(again, body)
    plain = to_plain(body)
    assert isinstance(plain, dict)
    return plain, again.getvalue() == frame


def to_plain(value: Any) -> Any:
    """A kio value as plain data; error codes by name, durations in milliseconds."""
    if is_dataclass(value):
        return {
            field.name: _field_to_plain(field, getattr(value, field.name))
            for field in fields(value)
        }
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, datetime.timedelta):
        return value // _MILLISECOND
    if isinstance(value, datetime.datetime):
        return round(value.timestamp() * 1000)
    return value


def _field_to_plain(field: Any, value: Any) -> Any:
    kind = field.metadata.get("kafka_type")
    if kind == "uuid" and not isinstance(value, tuple):
        return value or ZERO_UUID
    if kind == "int16" and field.name.endswith("error_code"):
        return ErrorCode(value).name
    return to_plain(value)


@cache
def _field_names(api: str) -> frozenset[str]:
    """Every field name of any version of the request, at any depth."""
    names: set[str] = set()

    def collect(schema: Any) -> None:
        for field in fields(schema):
            names.add(field.name)
            nested = _nested(field.type)
            if nested is not None:
                collect(nested)

    for version in schema_name_map[api]:
        collect(load_request_schema(api_key(api), version))
    return frozenset(names)


def _nested(annotation: Any) -> Any:
    """The dataclass inside an annotation such as `tuple[X, ...] | None`, or None."""
    if is_dataclass(annotation):
        return annotation
    for argument in get_args(annotation):
        found = _nested(argument)
        if found is not None:
            return found
    return None


def _build(schema: Any, plain: Mapping[str, Any], known: frozenset[str]) -> Any:
    unknown = plain.keys() - known
    assert not unknown, f"no version of {schema.__name__} has {sorted(unknown)}"
    return schema(
        **{
            field.name: _build_field(field, plain[field.name], known)
            for field in fields(schema)
            if field.name in plain
        },
        **{
            field.name: _implicit_default(field)
            for field in fields(schema)
            if field.name not in plain and field.default is MISSING
        },
    )


def _build_field(field: Any, value: Any, known: frozenset[str]) -> Any:
    nested = _nested(field.type)
    if nested is not None and value is not None:
        if isinstance(value, Sequence):
            return tuple(_build(nested, item, known) for item in value)
        return _build(nested, value, known)
    kind = field.metadata.get("kafka_type")
    if isinstance(value, list):
        return tuple(value)
    if kind in ("timedelta_i32", "timedelta_i64"):
        return value * _MILLISECOND
    return value


_IMPLICIT_DEFAULTS: dict[str | None, Any] = {
    "string": "",
    "bytes": b"",
    "records": b"",
    "bool": False,
    "uuid": None,
    "timedelta_i32": datetime.timedelta(0),
    "timedelta_i64": datetime.timedelta(0),
}


def _implicit_default(field: Any) -> Any:
    text = str(field.type)
    if "None" in text:
        return None
    if text.startswith("tuple["):
        return ()
    nested = _nested(field.type)
    if nested is not None:
        return _build(nested, {}, frozenset())
    return _IMPLICIT_DEFAULTS.get(field.metadata.get("kafka_type"), 0)
