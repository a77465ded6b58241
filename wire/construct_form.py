"""What every message looks like on the wire, as construct says it: the specification.

    message = its fields in the order of the declaration, without those that the version lacks;
              in flexible versions a tagged section ends it, and ends every struct inside it
    array   = count, items
    string, bytes, records = length, content
    count, length = a varint of one more in flexible versions (0 is null); else an int32, or an
              int16 for strings (-1 is null)

The broker reads and writes through codec.py, which does the same with generated code and twenty
times as fast or more; tests hold the two equal for every message and version, byte for byte and
refusal for refusal.
"""

from functools import cache
from io import BytesIO
from typing import Any, TypeVar

from construct import Adapter, Construct, ConstructError, Int16sb, Int32sb
from construct import Struct as Sequenced

from klamm.wire.codec import Data
from klamm.wire.errors import WireError
from klamm.wire.layout import is_compact, layout_of, least_width
from klamm.wire.limits import DEFAULT_LIMITS, Limits
from klamm.wire.primitives import (
    FIXED_WIDTH,
    Array,
    ByteString,
    CompactLength,
    ItemBudget,
    NullableStruct,
    TaggedField,
    TaggedSection,
    Text,
)
from klamm.wire.schema import Field, Message, Primitive, Struct

M = TypeVar("M", bound=Message)

TAGGED_SECTION = "tagged fields"


def decode(cls: type[M], version: int, data: Data, limits: Limits = DEFAULT_LIMITS) -> M:
    """Decode a whole message, as codec.decode does.

    Raises:
        WireError: the bytes are not exactly one message of this version, or exceed the limits.
    """
    stream = BytesIO(data)
    budget = ItemBudget(limits.array_items_max)
    try:
        message: M = form_of(cls, version).parse_stream(stream, limits=limits, budget=budget)
    except ConstructError as error:
        raise WireError(f"{cls.__name__} v{version}: {error}") from error
    left = len(stream.read())
    if left:
        raise WireError(f"{cls.__name__} v{version}: {left} bytes are left over")
    return message


def encode(message: Message, version: int) -> bytes:
    """Encode a message, as codec.encode does.

    Raises:
        WireError: a value does not fit its field.
    """
    cls = type(message)
    try:
        encoded: bytes = form_of(cls, version).build(message)
    except (ConstructError, AttributeError, TypeError, ValueError) as error:
        raise WireError(f"{cls.__name__} v{version}: {error}") from error
    return encoded


@cache
def form_of(cls: type[Message], version: int) -> Construct:
    """Give the construct form of a message in one version.

    Raises:
        WireError: the message has no such version.
    """
    if version not in cls.VERSIONS:
        raise WireError(f"{cls.__name__} has no version {version}")
    return struct_form(cls, version, flexible=version in cls.FLEXIBLE)


class InstanceOf(Adapter):  # type: ignore[misc]  # construct has no types
    """The fields of a struct, as an instance of its class."""

    def __init__(self, cls: type[Struct], fields: Construct) -> None:
        super().__init__(fields)
        self.cls = cls

    def _decode(self, values: Any, context: Any, path: str) -> Struct:
        names = [declared.name for declared in self.cls.FIELDS]
        plain = {name: values[name] for name in names if name in values}
        return self.cls(**plain, **values.get(TAGGED_SECTION, {}))

    def _encode(self, instance: Struct, context: Any, path: str) -> dict[str, Any]:
        values = {declared.name: getattr(instance, declared.name) for declared in self.cls.FIELDS}
        return values | {TAGGED_SECTION: values}


def struct_form(cls: type[Struct], version: int, *, flexible: bool) -> Construct:
    """Give the form of a struct: its plain fields, and where flexible its tagged section."""
    layout = layout_of(cls, version)
    parts = [
        declared.name / field_form(declared, version, flexible=flexible)
        for declared in layout.plain
    ]
    if flexible:
        tagged = {
            declared.tag: TaggedField(
                declared.name,
                field_form(declared, version, flexible=True, is_tagged=True),
                declared.default_value(),
            )
            for declared in layout.tagged
            if declared.tag is not None
        }
        parts.append(TAGGED_SECTION / TaggedSection(tagged, layout.misplaced_tags))
    return InstanceOf(cls, Sequenced(*parts))


def field_form(
    declared: Field, version: int, *, flexible: bool, is_tagged: bool = False
) -> Construct:
    """Give the form of one field."""
    kind = declared.kind
    compact = is_compact(declared, version, flexible)
    nullable = version in declared.nullable
    if declared.is_array:
        return Array(
            CompactLength if compact else Int32sb,
            primitive_form(kind, compact=compact, nullable=False)
            if isinstance(kind, Primitive)
            else struct_form(kind, version, flexible=flexible),
            item_bytes_min=least_width(kind, version, flexible),
            nullable=nullable,
        )
    if isinstance(kind, Primitive):
        return primitive_form(kind, compact=compact, nullable=nullable)
    form = struct_form(kind, version, flexible=flexible)
    return NullableStruct(form, is_tagged=is_tagged) if nullable else form


def primitive_form(kind: Primitive, *, compact: bool, nullable: bool) -> Construct:
    """Give the form of a value that is not a struct."""
    if kind.width:
        return FIXED_WIDTH[kind.name]
    if kind.name == "string":
        return Text(CompactLength if compact else Int16sb, nullable=nullable)
    return ByteString(CompactLength if compact else Int32sb, nullable=nullable)
