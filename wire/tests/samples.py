"""Two messages of each kind, made without chance: one with everything in it, one with nothing."""

from typing import Any
from uuid import UUID
from zlib import crc32

from klamm.wire.layout import layout_of
from klamm.wire.schema import Field, Message, Primitive, Struct


def full_message(cls: type[Message], version: int) -> Any:
    """Give a message in which every field of this version is set, two items in every array."""
    return _full_struct(cls, version)


def sparse_message(cls: type[Message], version: int) -> Any:
    """Give a message in which everything is null that may be, and the rest has its default."""
    layout = layout_of(cls, version)
    nullable = [f.name for f in (*layout.plain, *layout.tagged) if version in f.nullable]
    return cls(**dict.fromkeys(nullable))


def _full_struct(cls: type[Struct], version: int) -> Any:
    layout = layout_of(cls, version)
    present = (*layout.plain, *layout.tagged)
    return cls(**{declared.name: _full_field(declared, version) for declared in present})


def _full_field(declared: Field, version: int) -> Any:
    if not declared.is_array:
        return _full_value(declared, version, salt=0)
    return [_full_value(declared, version, salt) for salt in (1, 2)]


def _full_value(declared: Field, version: int, salt: int) -> Any:
    """Give a value that differs from field to field, so that two in the wrong order show."""
    if not isinstance(declared.kind, Primitive):
        return _full_struct(declared.kind, version)
    number = crc32(f"{declared.name} {salt}".encode())
    match declared.kind.name:
        case "bool":
            return not declared.default_value()
        case "int8":
            return number % 0x80
        case "int16":
            return number % 0x8000
        case "int32":
            return -(number % 0x8000_0000)
        case "int64":
            return number << 31 | number >> 1
        case "uint16":
            return number % 0x1_0000
        case "uint32":
            return number
        case "float64":
            return number / 8
        case "uuid":
            return UUID(int=number << 96 | number << 32 | 1)
        case "string":
            return f"ü{number % 1000}"
        case _:
            return number.to_bytes(4, "big")
