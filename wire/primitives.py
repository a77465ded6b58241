"""The construct fields that every message is composed of, each bounded by what the bytes can hold.

construct's own VarInt reads for as long as the continuation bit is set and its PrefixedArray
believes any count, so neither ever sees bytes from the world. The fields here read at most five
bytes of a varint, spend the message's budget of array items before the first item is read, and
keep nothing of tagged fields that they do not know. Their errors are construct's own; the boundary
in construct_form.py makes WireError of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from io import BytesIO
from typing import Any, NamedTuple
from uuid import UUID

from construct import (
    Bytes,
    Construct,
    ExprAdapter,
    Flag,
    Float64b,
    Int8sb,
    Int16sb,
    Int16ub,
    Int32sb,
    Int32ub,
    Int64sb,
    IntegerError,
    RangeError,
    SizeofError,
    StringError,
    ValidationError,
    stream_read,
    stream_write,
)

from klamm.wire.layout import STRING_BYTES_MAX
from klamm.wire.uvarint import UVARINT_MAX

UVARINT_BYTES_MAX = 5
NULL_LENGTH = -1


class ItemBudget:
    """How many array items a message may still have; one for each message that is read."""

    def __init__(self, items: int) -> None:
        self.items_left = items

    def spend(self, items: int, path: str) -> None:
        self.items_left -= items
        if self.items_left < 0:
            raise RangeError("the message is over its budget of array items", path=path)


class VariableWidth(Construct):  # type: ignore[misc]  # construct has no types
    """A field whose width follows from its value."""

    def _sizeof(self, context: Any, path: str) -> int:
        raise SizeofError("the width depends on the value", path=path)


class UnsignedVarint(VariableWidth):
    """Seven bits in each byte, the lowest first; at most five bytes and 31 bits."""

    def _parse(self, stream: BytesIO, context: Any, path: str) -> int:
        value = 0
        for index in range(UVARINT_BYTES_MAX):
            byte: int = stream_read(stream, 1, path)[0]
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                if value > UVARINT_MAX:
                    raise IntegerError(f"varint {value} is out of range", path=path)
                return value
        raise IntegerError(f"varint is longer than {UVARINT_BYTES_MAX} bytes", path=path)

    def _build(self, value: int, stream: BytesIO, context: Any, path: str) -> int:
        if not 0 <= value <= UVARINT_MAX:
            raise IntegerError(f"varint {value} is out of range", path=path)
        left = value
        while left > 0x7F:
            stream_write(stream, bytes([left & 0x7F | 0x80]), 1, path)
            left >>= 7
        stream_write(stream, bytes([left]), 1, path)
        return value


Uvarint = UnsignedVarint()

# A compact length is one more than the length, so that null is 0.
CompactLength = ExprAdapter(
    Uvarint, lambda stored, context: stored - 1, lambda length, context: length + 1
)

Uuid = ExprAdapter(
    Bytes(16), lambda raw, context: UUID(bytes=raw), lambda value, context: value.bytes
)

FIXED_WIDTH: dict[str, Construct] = {
    "bool": Flag,
    "int8": Int8sb,
    "int16": Int16sb,
    "int32": Int32sb,
    "int64": Int64sb,
    "uint16": Int16ub,
    "uint32": Int32ub,
    "float64": Float64b,
    "uuid": Uuid,
}


class LengthPrefixed(VariableWidth, ABC):
    """A length, where -1 is null, and behind it what that length counts."""

    def __init__(self, length: Construct, *, nullable: bool) -> None:
        super().__init__()
        self.length = length
        self.nullable = nullable

    def _parse(self, stream: BytesIO, context: Any, path: str) -> Any:
        length = self.length._parsereport(stream, context, path)
        if length == NULL_LENGTH and self.nullable:
            return None
        if length < 0:
            raise RangeError(f"a length of {length}", path=path)
        return self.parse_content(length, stream, context, path)

    def _build(self, value: Any, stream: BytesIO, context: Any, path: str) -> Any:
        if value is None and self.nullable:
            self.length._build(NULL_LENGTH, stream, context, path)
        else:
            self.build_content(value, stream, context, path)
        return value

    @abstractmethod
    def parse_content(self, length: int, stream: BytesIO, context: Any, path: str) -> Any:
        """Read what that length counts."""

    @abstractmethod
    def build_content(self, value: Any, stream: BytesIO, context: Any, path: str) -> None:
        """Write the length and what it counts."""


class ByteString(LengthPrefixed):
    """Bytes and records, which are kept as they are."""

    def parse_content(self, length: int, stream: BytesIO, context: Any, path: str) -> Any:
        return stream_read(stream, length, path)

    def build_content(self, value: Any, stream: BytesIO, context: Any, path: str) -> None:
        self.length._build(len(value), stream, context, path)
        stream_write(stream, bytes(value), len(value), path)


class Text(LengthPrefixed):
    """A string in UTF-8, at most 32767 bytes long in either kind of length."""

    def parse_content(self, length: int, stream: BytesIO, context: Any, path: str) -> str:
        check_text_length(length, path)
        try:
            return str(stream_read(stream, length, path), "utf-8")
        except UnicodeDecodeError as error:
            raise StringError(str(error), path=path) from error

    def build_content(self, value: str, stream: BytesIO, context: Any, path: str) -> None:
        encoded = value.encode()
        check_text_length(len(encoded), path)
        self.length._build(len(encoded), stream, context, path)
        stream_write(stream, encoded, len(encoded), path)


def check_text_length(length: int, path: str) -> None:
    if length > STRING_BYTES_MAX:
        raise StringError(f"a string of {length} bytes is too long", path=path)


class Array(LengthPrefixed):
    """A count of items that the bytes left can hold, as far as the budget goes."""

    def __init__(
        self, length: Construct, item: Construct, *, item_bytes_min: int, nullable: bool
    ) -> None:
        super().__init__(length, nullable=nullable)
        self.item = item
        self.item_bytes_min = item_bytes_min

    def parse_content(self, length: int, stream: BytesIO, context: Any, path: str) -> list[Any]:
        if length * self.item_bytes_min > bytes_left(stream):
            raise RangeError(f"{length} items are more than the bytes left can hold", path=path)
        context._params.budget.spend(length, path)
        return [self.item._parsereport(stream, context, path) for _ in range(length)]

    def build_content(self, value: Any, stream: BytesIO, context: Any, path: str) -> None:
        self.length._build(len(value), stream, context, path)
        for item in value:
            self.item._build(item, stream, context, path)


def bytes_left(stream: BytesIO) -> int:
    return stream.getbuffer().nbytes - stream.tell()


class NullableStruct(VariableWidth):
    """A marker, then the struct if there is one.

    The marker is an int8 of which every negative value means null; in a tagged section it is a
    varint, and null is 0.
    """

    def __init__(self, struct: Construct, *, is_tagged: bool) -> None:
        super().__init__()
        self.struct = struct
        self.marker = Uvarint if is_tagged else Int8sb
        self.null = 0 if is_tagged else -1

    def _parse(self, stream: BytesIO, context: Any, path: str) -> Any:
        if self.marker._parsereport(stream, context, path) <= self.null:
            return None
        return self.struct._parsereport(stream, context, path)

    def _build(self, value: Any, stream: BytesIO, context: Any, path: str) -> Any:
        self.marker._build(self.null if value is None else 1, stream, context, path)
        if value is not None:
            self.struct._build(value, stream, context, path)
        return value


class TaggedField(NamedTuple):
    """A field of a tagged section: it is written where it differs from its default."""

    name: str
    form: Construct
    default: Any


class TaggedSection(VariableWidth):
    """A count, then for each field its tag, its size and its value.

    Read, it is a mapping of the known fields that are there. Unknown tags are skipped, except those
    of fields that another version of the same struct has.
    """

    def __init__(self, fields: Mapping[int, TaggedField], misplaced_tags: tuple[int, ...]) -> None:
        super().__init__()
        self.fields = fields
        self.misplaced_tags = misplaced_tags

    def _parse(self, stream: BytesIO, context: Any, path: str) -> dict[str, Any]:
        count = Uvarint._parsereport(stream, context, path)
        if count > context._params.limits.tagged_fields_max:
            raise RangeError(f"{count} tagged fields are too many", path=path)
        found = {}
        for _ in range(count):
            tag = Uvarint._parsereport(stream, context, path)
            size = Uvarint._parsereport(stream, context, path)
            if tag in self.misplaced_tags:
                raise ValidationError(f"tag {tag} does not exist in this version", path=path)
            field = self.fields.get(tag)
            if field is None:
                stream_read(stream, size, path)
                continue
            end = stream.tell() + size
            found[field.name] = field.form._parsereport(stream, context, f"{path} -> {field.name}")
            if stream.tell() != end:
                raise ValidationError(f"tagged field {tag} does not fill its size", path=path)
        return found

    def _build(
        self, values: Mapping[str, Any], stream: BytesIO, context: Any, path: str
    ) -> Mapping[str, Any]:
        present = [
            (tag, field)
            for tag, field in sorted(self.fields.items())
            if values[field.name] != field.default
        ]
        Uvarint._build(len(present), stream, context, path)
        for tag, field in present:
            content = BytesIO()
            field.form._build(values[field.name], content, context, f"{path} -> {field.name}")
            Uvarint._build(tag, stream, context, path)
            Uvarint._build(len(content.getvalue()), stream, context, path)
            stream_write(stream, content.getvalue(), len(content.getvalue()), path)
        return values
