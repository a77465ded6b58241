"""Unsigned varints: the lengths, counts and tags of flexible versions, and of metadata records.

Seven bits in each byte, the lowest first, and never more than five bytes or 31 bits: what Kafka
reads beyond that turns negative and is refused there too.
"""

import struct
from typing import Any

from klamm.wire.errors import WireError

UVARINT_MAX = 0x7FFFFFFF

_pack_two = struct.Struct("BB").pack
_pack_three = struct.Struct("BBB").pack

# Index with a value below 128 to get it as a varint.
ONE_BYTE = [bytes([value]) for value in range(128)]


def read_uvarint(data: Any, position: int) -> tuple[int, int]:
    """Read the varint at a position of bytes or a view of them: its value and its end.

    Raises:
        WireError: the data ends inside it, or it is longer than five bytes or 31 bits.
    """
    try:
        byte = data[position]
        value = byte & 0x7F
        if byte < 0x80:
            return value, position + 1
        for shift in (7, 14, 21, 28):
            position += 1
            byte = data[position]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value > UVARINT_MAX:
                    raise WireError(f"varint {value} is out of range")
                return value, position + 1
    except IndexError:
        raise WireError("the data ends inside a varint") from None
    raise WireError("varint is longer than five bytes")


def write_uvarint(value: int) -> bytes:
    """Write a varint; values below two million go the short ways.

    Raises:
        WireError: the value is negative or takes more than 31 bits.
    """
    if 0 <= value < 0x80:
        return ONE_BYTE[value]
    if not 0 < value <= UVARINT_MAX:
        raise WireError(f"varint {value} is out of range")
    if value < 0x4000:
        return _pack_two(value & 0x7F | 0x80, value >> 7)
    if value < 0x200000:
        return _pack_three(value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
