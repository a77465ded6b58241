"""The zig-zag varints of record bodies, bounded to 5 and 10 bytes.

Kafka drops the bits of an overlong last byte instead of refusing it; so do we, because a record
that Kafka accepts must read the same here. A continuation bit on the last byte is refused by both.
"""

from klamm.wire.errors import WireError

VARINT_BYTES_MAX = 5
VARLONG_BYTES_MAX = 10

Buffer = bytes | bytearray | memoryview


def read_varint(data: Buffer, position: int) -> tuple[int, int]:
    """Return the int32 at position and the position behind it; WireError where there is none."""
    return _read_zigzag(data, position, VARINT_BYTES_MAX, 0xFFFFFFFF)


def read_varlong(data: Buffer, position: int) -> tuple[int, int]:
    """Return the int64 at position and the position behind it; WireError where there is none."""
    return _read_zigzag(data, position, VARLONG_BYTES_MAX, 0xFFFFFFFFFFFFFFFF)


def _read_zigzag(data: Buffer, position: int, bytes_max: int, mask: int) -> tuple[int, int]:
    value = 0
    for index in range(bytes_max):
        if position >= len(data):
            raise WireError("the data ends inside a varint")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            value &= mask
            return (value >> 1) ^ -(value & 1), position
    raise WireError(f"a varint of more than {bytes_max} bytes")


def encode_varint(value: int) -> bytes:
    """Return the zig-zag varint of an int32 or int64; both have the same form."""
    if -64 <= value < _SHORT_MAX:
        return _SHORT_VARINTS[value]
    assert -(2**63) <= value < 2**63, "the value does not fit 64 bits"
    raw = (value << 1) ^ (value >> 63)
    if raw < 1 << 14:
        return bytes((raw & 0x7F | 0x80, raw >> 7))
    encoded = bytearray()
    while raw >= 0x80:
        encoded.append(raw & 0x7F | 0x80)
        raw >>= 7
    encoded.append(raw)
    return bytes(encoded)


# Index -64 … 511, as most lengths and deltas are: Python's negative indexes make the end of the
# list the negative values.
_SHORT_MAX = 512
_SHORT_VARINTS = [
    *(bytes([value << 1]) for value in range(64)),
    *(bytes([value << 1 & 0x7F | 0x80, value >> 6]) for value in range(64, _SHORT_MAX)),
    *(bytes([(-value << 1) - 1]) for value in range(-64, 0)),
]
