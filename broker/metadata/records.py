"""Metadata records as bytes: a frame version, the record's type and version, then its body.

Kafka writes each of the three numbers as an unsigned varint and uses frame version 1.
"""

from __future__ import annotations

from typing import Any

from klamm.wire.codec import decode, encode
from klamm.wire.errors import WireError
from klamm.wire.messages.stored import metadata
from klamm.wire.schema import Message

FRAME_VERSION = 1

RECORD_TYPES: dict[int, type[Message]] = {
    record_type.API_KEY: record_type
    for record_type in vars(metadata).values()
    if isinstance(record_type, type)
    and issubclass(record_type, Message)
    and record_type is not Message
}


def encode_metadata_record(record: Message) -> bytes:
    version = type(record).VERSIONS.last
    header = uvarint(FRAME_VERSION) + uvarint(type(record).API_KEY) + uvarint(version)
    return header + encode(record, version)


def decode_metadata_record(data: bytes | memoryview) -> Any:
    """Raises WireError for anything that is not a record this version of klamm knows."""
    frame_version, position = read_uvarint(data, 0)
    if frame_version != FRAME_VERSION:
        raise WireError(f"metadata frame version {frame_version} is unknown")
    record_key, position = read_uvarint(data, position)
    version, position = read_uvarint(data, position)
    record_type = RECORD_TYPES.get(record_key)
    if record_type is None or version not in record_type.VERSIONS:
        raise WireError(f"metadata record type {record_key} version {version} is unknown")
    return decode(record_type, version, memoryview(data)[position:])


def uvarint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def read_uvarint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 35, 7):
        if position >= len(data):
            break
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise WireError("a varint does not end")
