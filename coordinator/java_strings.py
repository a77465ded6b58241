"""What Java's strings do and Python's do not: they are made of UTF-16 code units."""

from __future__ import annotations

import struct


def hash_code(text: str) -> int:
    """String.hashCode: a polynomial in 31 over the code units, as a signed number of 32 bits."""
    hashed = 0
    for (unit,) in struct.iter_unpack("<H", text.encode("utf-16-le")):
        hashed = (31 * hashed + unit) & 0xFFFFFFFF
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
