"""What Java's strings do and Python's do not: they are made of UTF-16 code units."""

from __future__ import annotations

import struct
from operator import mul

# Code units that are hashed in one go, and the powers of 31 that they are multiplied with.
_UNITS_AT_ONCE = 64
_POWERS = [pow(31, exponent, 2**32) for exponent in range(_UNITS_AT_ONCE, -1, -1)]


def hash_code(text: str) -> int:
    """String.hashCode: a polynomial in 31 over the code units, as a signed number of 32 bits."""
    data = text.encode("utf-16-le")
    units = struct.unpack(f"<{len(data) // 2}H", data)
    hashed = 0
    for start in range(0, len(units), _UNITS_AT_ONCE):
        part = (hashed, *units[start : start + _UNITS_AT_ONCE])
        hashed = sum(map(mul, part, _POWERS[-len(part) :])) & 0xFFFFFFFF
    return hashed - 2**32 if hashed & 0x80000000 else hashed


def hash_map_slot(text: str, keys: int) -> int:
    """Where a HashMap that was made without a size and has so many keys keeps this one."""
    hashed = hash_code(text) & 0xFFFFFFFF
    slots = 16
    while keys > slots * 3 // 4:
        slots *= 2
    return (hashed ^ hashed >> 16) & (slots - 1)


def sort_key(text: str) -> bytes:
    """Sorts like String.compareTo, by code units: emojis come before some other characters."""
    return text.encode("utf-16-be")


def length(text: str) -> int:
    """String.length: the number of code units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2
