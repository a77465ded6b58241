"""The records of `__consumer_offsets` as bytes.

    key   = record type int16 | body of the key, in version 0
    value = version int16 | body of the value; a null value is a tombstone

A record type that klamm does not know is left alone: a newer broker, or a kind of group that this
one does not serve, may have written it. Bytes that do not fit their type are an error, because
the state behind them would be lost in silence.
"""

from __future__ import annotations

from collections.abc import Mapping

from klamm.coordinator.ports import CoordinatorRecord
from klamm.wire.codec import decode, encode
from klamm.wire.errors import WireError
from klamm.wire.messages.stored import classic_group, consumer_group
from klamm.wire.schema import Message

KEY_VERSION = 0
PREFIX_BYTES = 2

# Key and value by record type. Types 10 to 15 are share groups, 17 and 19 to 23 streams groups.
RECORD_TYPES: dict[int, tuple[type[Message], type[Message]]] = {
    key.API_KEY: (key, value)
    for key, value in (
        (classic_group.LegacyOffsetCommitKey, classic_group.LegacyOffsetCommitValue),
        (classic_group.OffsetCommitKey, classic_group.OffsetCommitValue),
        (classic_group.GroupMetadataKey, classic_group.GroupMetadataValue),
        (consumer_group.ConsumerGroupMetadataKey, consumer_group.ConsumerGroupMetadataValue),
        (
            consumer_group.ConsumerGroupPartitionMetadataKey,
            consumer_group.ConsumerGroupPartitionMetadataValue,
        ),
        (
            consumer_group.ConsumerGroupMemberMetadataKey,
            consumer_group.ConsumerGroupMemberMetadataValue,
        ),
        (
            consumer_group.ConsumerGroupTargetAssignmentMetadataKey,
            consumer_group.ConsumerGroupTargetAssignmentMetadataValue,
        ),
        (
            consumer_group.ConsumerGroupTargetAssignmentMemberKey,
            consumer_group.ConsumerGroupTargetAssignmentMemberValue,
        ),
        (
            consumer_group.ConsumerGroupCurrentMemberAssignmentKey,
            consumer_group.ConsumerGroupCurrentMemberAssignmentValue,
        ),
        (
            consumer_group.ConsumerGroupRegularExpressionKey,
            consumer_group.ConsumerGroupRegularExpressionValue,
        ),
    )
}


class UnknownRecordTypeError(Exception):
    """A record that this version of klamm has no use for."""

    def __init__(self, record_type: int) -> None:
        super().__init__(f"record type {record_type} is unknown")
        self.record_type = record_type


def encode_coordinator_record(record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
    """The key and the value of a record."""
    key = _prefixed(type(record.key).API_KEY, record.key, KEY_VERSION)
    if record.value is None:
        return key, None
    return key, _prefixed(record.value_version, record.value, record.value_version)


def _prefixed(prefix: int, message: Message, version: int) -> bytes:
    return prefix.to_bytes(PREFIX_BYTES, "big", signed=True) + encode(message, version)


def decode_coordinator_record(key: bytes | None, value: bytes | None) -> CoordinatorRecord:
    """
    Raises:
        UnknownRecordTypeError: klamm does not know the type.
        WireError: the bytes are not a record of their type.
    """
    return decode_record(RECORD_TYPES, key, value)


def decode_record(
    record_types: Mapping[int, tuple[type[Message], type[Message]]],
    key: bytes | None,
    value: bytes | None,
) -> CoordinatorRecord:
    """The same for the records of any coordinator's topic."""
    record_type = _read_prefix(key, "key")
    types = record_types.get(record_type)
    if types is None:
        raise UnknownRecordTypeError(record_type)
    assert key is not None
    key_type, value_type = types
    decoded_key = decode(key_type, KEY_VERSION, key, offset=PREFIX_BYTES)
    if value is None:
        return CoordinatorRecord(decoded_key, None)
    version = _read_prefix(value, "value")
    decoded_value = decode(value_type, version, value, offset=PREFIX_BYTES)
    return CoordinatorRecord(decoded_key, decoded_value, version)


def _read_prefix(data: bytes | None, name: str) -> int:
    if data is None or len(data) < PREFIX_BYTES:
        raise WireError(f"the {name} of a coordinator record has no version")
    return int.from_bytes(data[:PREFIX_BYTES], "big", signed=True)
