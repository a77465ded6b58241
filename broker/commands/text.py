"""Values as people read them: one line each, without a character that a terminal would act on."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from klamm.log.check.text_files import uuid_text
from klamm.wire.schema import Struct

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The years that a date can be printed for.
_TIMESTAMP_MIN_MS = -62135596800000
_TIMESTAMP_MAX_MS = 253402300799999
# Part of a text, and written in JSON with a backslash.
_WHITE_SPACE = str.maketrans("", "", "\t\n\r")


def time_text(timestamp_ms: int) -> str:
    """Return a timestamp as a date and time; -1 stands for none."""
    if timestamp_ms == -1:
        return "none"
    if not _TIMESTAMP_MIN_MS <= timestamp_ms <= _TIMESTAMP_MAX_MS:
        return f"{timestamp_ms}ms"
    text = (_EPOCH + timedelta(milliseconds=timestamp_ms)).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def bytes_value(data: bytes | memoryview | None) -> str | None:
    """Return bytes as their text, or in hexadecimal where they are no text."""
    if data is None:
        return None
    raw = bytes(data)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return f"0x{raw.hex()}"
    if text.isprintable() or text.translate(_WHITE_SPACE).isprintable():
        return text
    return f"0x{raw.hex()}"


def json_text(value: Any) -> str:
    """Return a value as JSON in one line."""
    return json.dumps(value, ensure_ascii=False, default=_json_value)


def bytes_text(data: bytes | memoryview | None) -> str:
    """Return bytes as a quoted text; null where there are none."""
    return json_text(bytes_value(data))


def message_text(message: Struct) -> str:
    """Return the name of a message and its fields."""
    return f"{type(message).__name__}={json_text(message)}"


def _json_value(value: Any) -> Any:
    if isinstance(value, Struct):
        return {declared.name: getattr(value, declared.name) for declared in value.FIELDS}
    if isinstance(value, UUID):
        return uuid_text(value)
    if isinstance(value, bytes | memoryview):
        return bytes_value(value)
    raise TypeError(f"{type(value).__name__} has no text")


def hex_text(data: bytes | memoryview, count: int = 32) -> str:
    """Return the first bytes in hexadecimal."""
    shown = bytes(data[:count]).hex(" ")
    return f"{shown} ..." if len(data) > count else shown
