"""Metadata records as bytes: a frame version, the record's type and version, then its body.

Kafka writes each of the three numbers as an unsigned varint and uses frame version 1.
"""

from __future__ import annotations

from typing import Any

from klamm.wire.codec import decode, encode
from klamm.wire.errors import WireError
from klamm.wire.messages.stored import metadata
from klamm.wire.schema import Message
from klamm.wire.uvarint import read_uvarint, write_uvarint

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
    header = (
        write_uvarint(FRAME_VERSION) + write_uvarint(type(record).API_KEY) + write_uvarint(version)
    )
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
    return decode(record_type, version, data, offset=position)
