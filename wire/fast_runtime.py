"""The few functions that generated decoders and encoders call when the short way does not do."""

from typing import Any, NoReturn
from uuid import UUID

from klamm.wire.errors import LimitExceeded, WireError
from klamm.wire.layout import STRING_BYTES_MAX
from klamm.wire.limits import Limits
from klamm.wire.uvarint import read_uvarint, write_uvarint

UUIDS_KEPT = 4096


class _KnownUuids(dict[bytes, UUID]):
    """UUIDs by their bytes: making one costs over a microsecond, and topic ids come again."""

    def __missing__(self, raw: bytes) -> UUID:
        if len(self) >= UUIDS_KEPT:
            self.clear()
        value = self[raw] = UUID(bytes=raw)
        return value


known_uuids = _KnownUuids()


def read_string_length(data: Any, position: int) -> tuple[int, int]:
    """Read the compact length of a string; Kafka's strings end at 32767 bytes."""
    value, position = read_uvarint(data, position)
    if value > STRING_BYTES_MAX + 1:
        raise WireError(f"string of {value - 1} bytes is too long")
    return value, position


def write_string_length(value: int) -> bytes:
    """Write the compact length (that is, length + 1) of a string."""
    if value > STRING_BYTES_MAX + 1:
        raise WireError(f"string of {value - 1} bytes is too long")
    return write_uvarint(value)


def skip_tags(
    data: Any, position: int, count: int, limits: Limits, misplaced: tuple[int, ...]
) -> int:
    """Pass over a tagged section of which no field is known; nothing of it is kept."""
    if count > 127:
        count, position = read_uvarint(data, position - 1)
    if count > limits.tagged_fields_max:
        refuse_tag_count(count)
    for _ in range(count):
        tag, position = read_uvarint(data, position)
        size, position = read_uvarint(data, position)
        position += size
        if tag in misplaced:
            refuse_tag(tag)
    return position


def refuse_tag(tag: int) -> NoReturn:
    raise WireError(f"tag {tag} does not exist in this version")


def refuse_tag_count(count: int) -> NoReturn:
    raise LimitExceeded(f"{count} tagged fields are too many")


def refuse_tag_size(tag: int) -> NoReturn:
    raise WireError(f"tagged field {tag} does not fill its size")


def refuse_null(name: str) -> NoReturn:
    raise WireError(f"{name} must not be null")


def refuse_length(name: str, length: int) -> NoReturn:
    raise WireError(f"{name} has the length {length}")


def refuse_count(name: str, count: int) -> NoReturn:
    raise WireError(f"{name} claims {count} items, more than the bytes left can hold")


def refuse_budget(name: str) -> NoReturn:
    raise LimitExceeded(f"{name} brings the message over its budget of array items")


def malformed(title: str, error: Exception) -> WireError:
    """Say which message an error was found in."""
    kind = LimitExceeded if isinstance(error, LimitExceeded) else WireError
    return kind(f"{title}: {error}")
